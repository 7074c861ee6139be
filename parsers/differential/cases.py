"""Outputs, prompts and requests to hold a parser model against the real one. A seed gives the same cases each time.

What is varied: the output (structured, or random out of whatever a parser may trip over), how the run ended (on a stop
token, on a stop string, cut), the prompt's state, the chat-template kwargs, how the markers are flagged or whether they
are tokens at all, and how the stream is cut into deltas, with text at once or held back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from ..feed import Piece
from ..feed import pieces as decode
from .case import Case
from .cuts import cuts
from .families import FAMILIES
from .family import Family
from .outputs import BROKEN, WORDS, Outputs
from .vocabulary import Spec, SpecVocabulary

_PROMPTS = (
    "silent",
    "open",
    "open_newline",
    "closed",
    "closed_newlines",
    "old_turn_closed",
    "bare_close",
    "old_turn_open",
    "call",
    "empty",
    "none",
)
_ENDINGS = ("stop token", "stop string", "length")
_STOPS = ("\n\nObservation:", "User:", "<|im_end|>", "</s>", "\n\n", "four", "</think>")
_KWARGS: tuple[dict[str, Any], ...] = (
    {},
    {"enable_thinking": True},
    {"enable_thinking": False},
    {"thinking": True},
    {"thinking": False},
    {"enable_thinking": None},
    {"thinking": None, "enable_thinking": None},
    {"thinking": False, "enable_thinking": True},
    {"enable_thinking": []},
    {"other": 1},
)


def specs(name: str) -> dict[str, Spec]:
    """The tokenizers a parser is tried with, by key: markers plain, flagged, declared, mixed, or absent."""
    family = FAMILIES[name]
    found: dict[str, Spec] = {}
    for place, init_kwargs in enumerate(family.init_kwargs):
        suffix = init_kwargs.get("token_suffix", "")
        think = [_suffixed(text, suffix) for text in _think_tokens(family)]
        others = [*family.turns, *family.tool_tokens]
        for number, (label, chosen) in enumerate(
            {
                "plain": _flagged(think, "plain") + _flagged(others, "plain"),
                "flagged": _flagged(think, "flagged") + _flagged(others, "flagged"),
                "declared": _flagged(think, "declared") + _flagged(others, "declared"),
                "mixed": _flagged(think, "plain") + _flagged(others, "declared"),
                "no_think": _flagged(others, "flagged"),
                "no_end": _flagged([*think[:1], *others], "plain"),
                "no_tools": _flagged([*think, *family.turns], "flagged"),
                "bare": [],
            }.items()
        ):
            found[f"{name}/{place}/{label}"] = Spec(
                pieces=tuple(dict.fromkeys((*WORDS, *BROKEN, *family.pieces))),
                markers=(*chosen, ("<eos>", "declared"), ("<|reserved|>", "declared"), ("<|pad|>", "flagged")),
                chat_template=family.templates[number % len(family.templates)],
                init_kwargs=init_kwargs,
                fixed=family.fixed,
                placed=family.placed,
                printable_first=family.printable_first,
            )
    return found


def _think_tokens(family: Family) -> tuple[str, ...]:
    return (family.start, family.end) if family.think_tokens is None else family.think_tokens


def _flagged(texts: Sequence[str], flag: str) -> list[tuple[str, str]]:
    return [(text, flag) for text in texts]


def _suffixed(marker: str, suffix: str) -> str:
    return f"{marker[:-1]}{suffix}>" if suffix else marker


def cases(name: str, count: int, *, seed: int = 0) -> Iterator[Case]:
    """`count` cases for one parser name. Their `tokenizer` is a key of `specs(name)`.

    Of any three in a row one ends on a stop token, one has stop strings and one is cut; each has a stream held back.
    """
    rng = random.Random(f"{name}:{seed}")  # noqa: S311
    vocabularies = {key: SpecVocabulary(spec) for key, spec in specs(name).items()}
    keys = sorted(vocabularies)
    for number in range(count):
        key = keys[number % len(keys)] if rng.random() < 0.5 else rng.choice([k for k in keys if "no_" not in k])
        yield _Maker(rng, FAMILIES[name], vocabularies[key]).case(name, key, _ENDINGS[number % len(_ENDINGS)])


class _Maker:
    """Makes one case out of one random state."""

    def __init__(self, rng: random.Random, family: Family, vocabulary: SpecVocabulary) -> None:
        self._rng = rng
        self._family = family
        self._vocabulary = vocabulary
        suffix = vocabulary.init_kwargs.get("token_suffix", "")
        self._start, self._end = self._ends = _suffixed(family.start, suffix), _suffixed(family.end, suffix)
        self._outputs = Outputs(rng, family, vocabulary, self._ends)

    def case(self, name: str, key: str, ending: str) -> Case:
        rng = self._rng
        kwargs = rng.choice((*_KWARGS[:5], *_KWARGS, *self._family.switches * 3))
        request_kwargs: dict[str, Any] | None = kwargs
        if rng.random() < 0.15:
            request_kwargs = rng.choice((None, {}, {"enable_thinking": False}, {"force_nonempty_content": True}))
        prompt = self._prompt()
        pieces, stop = self._output(prompt, ending)
        return Case(
            parser=name,
            tokenizer=key,
            kwargs=kwargs,
            request_kwargs=request_kwargs,
            prompt_ids=prompt,
            pieces=tuple((piece.text, piece.id) for piece in pieces if piece.id is not None),
            streams=tuple(cuts(rng, pieces, stop)),
            stop=stop,
        )

    def _output(self, prompt: Sequence[int] | None, ending: str) -> tuple[list[Piece], tuple[str, ...]]:
        """What a server makes of the generated ids, and the request's stop strings."""
        rng, vocabulary = self._rng, self._vocabulary
        ids = self._outputs.generated()
        shown = rng.random() >= 0.15
        stop_ids: frozenset[int] = frozenset()
        stop: tuple[str, ...] = ()
        if ending == "stop token":
            markers = [token_id for text, token_id in vocabulary.markers.items() if text not in self._ends]
            ids.append(rng.choice(markers))
            stop_ids = frozenset(ids[-1:])
        elif ending == "stop string":
            stop = self._stop_strings(vocabulary.decode(ids, skip_special_tokens=not shown))
        made = decode(
            vocabulary,
            ids,
            prompt_ids=prompt,
            skip_special_tokens=not shown,
            stop_ids=stop_ids,
            stop=stop,
            # Text on a stop token is what `include_stop_str_in_output` gives.
            include_stop=ending == "stop token" and rng.random() < 0.1,
        )
        return list(made), stop

    def _stop_strings(self, text: str) -> tuple[str, ...]:
        """One or two, mostly one that the text holds, in its later half."""
        rng = self._rng
        at = rng.randrange(len(text) // 2, len(text)) if text else 0
        held = text[at : at + rng.choice((1, 2, 4, 10))]
        chosen = [held] if held and rng.random() < 0.8 else []
        if not chosen or rng.random() < 0.4:
            chosen.append(rng.choice((*_STOPS, *self._ends)))
        return tuple(chosen)

    def _prompt(self) -> list[int] | None:
        state = self._rng.choice(_PROMPTS)
        if state == "none":
            return None
        if state == "empty":
            return []
        turn, start, end = self._family.turns[0], self._start, self._end
        call = self._family.tool_tokens[0] if self._family.tool_tokens else ""
        tail = {
            "silent": "",
            "open": start,
            "open_newline": f"{start}\n",
            "closed": f"{start}{end}",
            "closed_newlines": f"{start}\n\n{end}\n\n",
            "old_turn_closed": f"{start}x{end}y{self._family.turns[-1]}{turn}",
            "bare_close": end,
            "old_turn_open": f"{start}x{self._family.turns[-1]}{turn}",
            "call": f"{start}x{call}",
        }[state]
        return self._vocabulary.encode(f"{turn}hi{self._family.turns[-1]}{turn}{tail}")
