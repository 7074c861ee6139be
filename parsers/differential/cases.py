"""Outputs, prompts and requests to hold a parser model against the real one. A seed gives the same cases each time.

What is varied: the output (structured, or random out of whatever a parser may trip over), how the run ended (on a stop
token, on a stop string, cut), the prompt's state, the chat-template kwargs, how the markers are flagged or whether they
are tokens at all, and how the stream is cut into deltas, with text at once or held back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..feed import Chunking, Piece, chunk
from ..feed import pieces as decode
from .case import Case, Stream
from .families import FAMILIES
from .family import Family
from .vocabulary import Spec, SpecVocabulary

_WORDS = (
    "Hello",
    " world",
    " four",
    "The",
    " answer",
    " is",
    "\n\n",
    "  ",
    " \n",
    "</",
    "think",
    ">\n",
    "<th",
    "ink>",
    "ok.",
)
_WORDS += ("name", ' "', "tool", "_call", "\\n", "``", "$$", "é", "四", " 🙂", "\\\\", "\\(")
_BROKEN = (b"\xf0\x9f", b"\x99\x82", b"\xe4\xbd", b" \xe4", b"\xbd\xa0", b"\xff\xfe")
_TEXTS = (
    "Let me see.",
    "2 + 2 = 4\n",
    " ",
    "\n",
    "\n\n",
    "It is 4.",
    "naïve 你好 🙂👍",
    "a < b > c",
    "x",
    "  \n  ",
    "\t",
    "a\\nb",
)
_TEXTS += (
    "`\\n`",
    "$\\nu$",
    "\\\\n",
    "\\r\\n",
    "```py\\n```",
    "\\(\\nu\\)",
    "\\[\\n\\]",
    "\\",
    "$$\\n$$",
    "<",
    "</",
    "\\r",
    '"',
    "'",
)
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
                pieces=tuple(dict.fromkeys((*_WORDS, *_BROKEN, *family.pieces))),
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
            streams=tuple(self._cuts(pieces, stop)),
            stop=stop,
        )

    def _output(self, prompt: Sequence[int] | None, ending: str) -> tuple[list[Piece], tuple[str, ...]]:
        """What a server makes of the generated ids, and the request's stop strings."""
        rng, vocabulary = self._rng, self._vocabulary
        ids = self._generated()
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

    def _generated(self) -> list[int]:
        if self._family.outputs and self._rng.random() < 0.5:
            return self._mangled()
        return self._structured() if self._rng.random() < 0.6 else self._random()

    def _mangled(self) -> list[int]:
        """One or two of the family's own outputs, cut short, with something of it left out, doubled or thrown in."""
        rng = self._rng
        text = "".join(rng.choices(self._family.outputs, k=rng.choice((1, 1, 1, 2))))
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
            at = rng.randrange(len(text) + 1)
            until = min(len(text), at + rng.choice((0, 0, 0, 1, 2, 5, 20)))
            thrown = (*self._family.shards, *self._ends, *_TEXTS[:6], text[at : at + rng.randrange(1, 30)], "")
            text = text[:at] + rng.choice(thrown) + text[until:]
        if rng.random() < 0.2:
            text = text[: rng.randrange(len(text) + 1)]
        return self._vocabulary.encode(text) if rng.random() < 0.8 else self._vocabulary.spell(text)

    def _structured(self) -> list[int]:
        """A thought, its end, an answer, with now and then a marker or call where none belongs."""
        rng = self._rng
        ids: list[int] = []
        if rng.random() < 0.5:
            ids += self._marker(self._start)
        ids += self._thought()
        if rng.random() < 0.8:
            ids += self._marker(self._end)
            if rng.random() < 0.15:
                ids += self._marker(self._end)
            if rng.random() < 0.5:
                ids += self._vocabulary.spell(rng.choice(("\n", "\n\n", " ", "\n \n")))
        if rng.random() < 0.85:
            ids += self._thought()
        if rng.random() < 0.35:
            ids += self._call()
        if rng.random() < 0.2:
            ids += self._marker(self._start) + self._thought()
            if rng.random() < 0.6:
                ids += self._marker(self._end) + self._thought()
        return ids

    def _thought(self) -> list[int]:
        rng = self._rng
        ids: list[int] = []
        for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
            ids += self._vocabulary.spell(
                rng.choice(_TEXTS) if rng.random() < 0.6 else "".join(rng.choices(_WORDS, k=3))
            )
            if rng.random() < 0.07:
                ids += self._atom()
        return ids

    def _call(self) -> list[int]:
        text = self._rng.choice(self._family.calls)
        if self._rng.random() < 0.3:
            text = text[: self._rng.randrange(len(text) + 1)]
        return self._vocabulary.encode(text) if self._rng.random() < 0.8 else self._vocabulary.spell(text)

    def _marker(self, text: str) -> list[int]:
        """Mostly the token; now and then its text, spelled by other tokens."""
        return self._vocabulary.encode(text) if self._rng.random() < 0.9 else self._vocabulary.spell(text)

    def _random(self) -> list[int]:
        return [token_id for _ in range(self._rng.randrange(0, 24)) for token_id in self._atom()]

    def _atom(self) -> list[int]:
        """One thing a parser may trip over."""
        rng, vocabulary = self._rng, self._vocabulary
        markers = (self._start, self._end, *self._family.tools, *self._family.shards)
        atoms: tuple[Callable[[], list[int]], ...] = (
            lambda: vocabulary.spell(rng.choice(_TEXTS)),
            lambda: [rng.choice(list(vocabulary.markers.values()))],
            lambda: vocabulary.encode(rng.choice((self._start, self._end))),
            lambda: vocabulary.encode(rng.choice(markers)),
            lambda: vocabulary.spell(rng.choice(markers)),
            lambda: vocabulary.spell((marker := rng.choice(markers))[: rng.randrange(1, len(marker) + 1)]),
            lambda: [rng.randrange(256, 256 + len(vocabulary.spec.pieces))],
            lambda: [rng.randrange(256, 256 + len(vocabulary.spec.pieces))],
            lambda: list("🙂é你".encode()[: rng.randrange(1, 10)]),
            lambda: [rng.randrange(256)],
            self._call,
        )
        return rng.choice(atoms)()

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

    def _cuts(self, pieces: Sequence[Piece], stop: Sequence[str]) -> Iterator[Stream]:
        """The output as deltas: 1, 3, 7 tokens and all at once, at random, with text held back, with text alone."""
        rng = self._rng
        behind = max(map(len, stop), default=1) - 1
        for size in (1, 3, 7, max(1, len(pieces))):
            yield self._finish(_late(_groups(pieces, lambda size=size: size), behind))  # type: ignore[misc]
        groups = _groups(pieces, lambda: rng.choice((1, 1, 2, 5)))
        yield self._finish(_late(groups, behind))
        yield self._finish(_late(groups, rng.choice((1, 4, 12))))
        yield self._finish([*chunk(pieces, Chunking("holdback", rng.choice((0, 1, 5, 20))))])
        if rng.random() < 0.2:
            yield self._finish([(text, ()) for text, _ in _late(groups, 0)])
        if rng.random() < 0.1:
            yield self._finish([*chunk(pieces, Chunking("char"))])
        if rng.random() < 0.2:
            yield self._finish(self._scrambled(pieces))

    def _scrambled(self, pieces: Sequence[Piece]) -> list[tuple[str, tuple[int, ...]]]:
        """Text and ids cut apart from each other, so that either may be late by any amount."""
        [(text, ids)] = _late([pieces], 0)
        deltas: list[tuple[str, tuple[int, ...]]] = []
        while text or ids:
            characters, tokens = self._rng.choice((0, 0, 1, 3, 8, 20)), self._rng.choice((0, 0, 1, 2, 4))
            deltas.append((text[:characters], ids[:tokens]))
            text, ids = text[characters:], ids[tokens:]
        return deltas

    def _finish(self, deltas: Sequence[tuple[str, tuple[int, ...]]]) -> Stream:
        if not deltas or self._rng.random() < 0.1:
            return (*deltas, ("", ()))
        return tuple((text, ids) for text, ids in deltas)


def _groups(pieces: Sequence[Piece], size: Callable[[], int]) -> list[Sequence[Piece]]:
    groups: list[Sequence[Piece]] = []
    at = 0
    while at < len(pieces):
        many = size()
        groups.append(pieces[at : at + many])
        at += many
    return groups


def _late(groups: Sequence[Sequence[Piece]], behind: int) -> list[tuple[str, tuple[int, ...]]]:
    """One delta a group: ids at once, text `behind` characters late, the rest with the last: what stop strings cause.

    What a stop string cut off counts: it was there while the server held text back.
    """
    deltas = []
    text, sent, made = "", 0, 0
    for number, group in enumerate(groups):
        text += "".join(piece.text for piece in group)
        made += sum(len(piece.text) + len(piece.cut) for piece in group)
        until = len(text) if number == len(groups) - 1 else max(sent, min(len(text), made - behind))
        deltas.append((text[sent:until], tuple(piece.id for piece in group if piece.id is not None)))
        sent = until
    return deltas
