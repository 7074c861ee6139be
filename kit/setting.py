"""What a parser is put to the test with: a tokenizer, the prompts it will see, how the model writes its thoughts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..checks.probes import Cell, Weight, at_odds, cells_of
from ..checks.thinking import Thinking, read_thinking, switches
from ..parsers import ROWS, ParserRow, Vocabulary
from ..parsers.differential.cases import specs
from ..parsers.differential.families import FAMILIES
from ..parsers.differential.family import CHATML
from ..parsers.differential.outputs import WORDS
from ..parsers.differential.vocabulary import Spec, SpecVocabulary
from ..parsers.markers import MarkerPair
from ..parsers.target import Target
from ..prompts.model import Model
from ..prompts.state import prompt_state
from ..prompts.survey import Survey, survey

Origin = Literal["model", "table", "plugin"]


@dataclass(frozen=True)
class Setting:
    """Everything of a battery but the parser.

    Attributes:
        name: the parser's.
        row: what the parser table knows of it; of a plugin its markers alone.
        vocabulary: the tokenizer.
        thinking: what the model writes around a thought.
        cells: the prompts, no two alike, without those of requests that are at odds with themselves.
        switches: (kwarg, off value, on value) of the thinking switches; None where nobody knows.
        call: a tool call by which the model may end a thought; None where none is known.
        stop_ids: end-of-sequence ids; one ends every finished output.
        end_marker: the end marker alone, where the model writes more behind its thought.
        origin: `model`: its own tokenizer and template; `table`: a vocabulary of the parser table's markers; `plugin`:
            one of the markers that the plugin names.
        model: the folder that the tokenizer comes from, for tests written out; None without one.
        problem: why nothing can be put to the parser.
    """

    name: str
    row: ParserRow
    vocabulary: Vocabulary
    thinking: Thinking
    cells: tuple[Cell, ...]
    switches: tuple[tuple[str, Any, Any], ...] | None = None
    call: str | None = None
    stop_ids: frozenset[int] = frozenset()
    end_marker: str = ""
    origin: Origin = "model"
    model: Model | None = None
    problem: str | None = None

    @property
    def assumed(self) -> str | None:
        """What coverage says of the tokenizer; None where it is the model's own."""
        if self.origin == "model":
            return None
        whose = "of the parser table" if self.origin == "table" else "that the plugin names"
        return f"assumed: the markers {whose}, one token each, and prompts made of them (--model gives the real ones)"

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that must not reach a client; none of a parser that writes them itself."""
        if self.row.keeps_thought:
            return ()
        ours = (self.thinking.start, self.end_marker, *self.row.start, *self.row.end)
        return tuple(sorted({text.strip() for text in ours if text and text.strip()}, key=lambda t: (-len(t), t)))


def from_model(
    model: Model,
    name: str,
    row: ParserRow,
    *,
    pair: MarkerPair | None,
    target: Target,
    implicit: Sequence[str] = (),
) -> Setting:
    """The setting of a model: its own prompts under every variant and conversation.

    Args:
        model: with a template.
        name: the parser's.
        row: what is known of the parser.
        pair: markers of the plugin's own, which no table knows; None where the template's are known.
        target: the server to judge by.
        implicit: tool-call openings that the parser takes for the end of a thought.
    """
    rendered = survey(model, target=target, user_markers=pair)
    thinking = read_thinking(rendered, ROWS.values())
    if pair is not None:
        rendered = _read_by(rendered, pair)
        written = [s.after.partition(pair.end)[2] for s in rendered.states if s.state == "closed"]
        after = next((text[: len(text) - len(text.lstrip())] for text in written), "")
        thinking = Thinking(pair.start, pair.end, after, mentioned=True)
    vocabulary: Vocabulary = model.tokenizer or spelled(_markers(thinking))
    call = next((text for text in implicit if text in model.prompt_text), None)
    cells = cells_of(rendered, vocabulary)
    setting = Setting(
        name=name,
        row=row,
        vocabulary=vocabulary,
        thinking=thinking,
        cells=_distinct([cell for cell in cells if not at_odds(cell, cells)]),
        switches=tuple(switches(rendered)),
        call=None if call is None else f'{call}\n{{"name": "get_weather", "arguments": {{"city": "Rome"}}}}',
        stop_ids=model.eos_ids if model.tokenizer is not None else frozenset(),
        end_marker=(thinking.end or "").rstrip(),
        origin="model" if model.tokenizer is not None else "plugin",
        model=model if model.tokenizer is not None else None,
    )
    if not setting.cells:
        why = model.code_prompt or "the model has no chat template, or none of its prompts could be rendered"
        return replace(setting, problem=why)
    if thinking.start is None and not thinking.harmony:
        return replace(setting, problem="the template shows no thinking markers to try a parser with")
    return setting


def from_table(row: ParserRow) -> Setting:
    """The setting of a built-in name without a model: the markers its family writes, and prompts in each state."""
    family = FAMILIES[row.name]
    spec = specs(row.name)[f"{row.name}/0/plain"]
    # What is no byte and no token of harmony's own has an id there that means another text.
    vocabulary = SpecVocabulary(replace(spec, pieces=()) if row.family == "harmony" else spec)
    start, end = _WRITTEN.get(row.name, (family.start, family.end))
    thinking = Thinking(start, end, "" if row.name in _WRITTEN else "\n\n", True, row.family == "harmony")
    switch = next((kwarg for kwarg in row.kwargs if kwarg.switches_thinking and kwarg.name in SWITCHES), None)
    off, on = (
        (None, None) if switch is None else ("none", "high") if row.name == "k2_horizon" else SWITCHES[switch.name]
    )
    head = f"{family.turns[0]}hi{family.turns[-1]}{family.turns[0]}"
    made = _made(head, thinking, vocabulary)
    asked = {} if row.default_on or switch is None else {switch.name: on}
    cells = [made("none", asked)]
    if row.name not in _OPENS_ITSELF and not row.needs_start_in_output and row.family != "harmony":
        cells.insert(0, made("open", asked))
    if switch is not None and off is not None:
        cells += [made("closed", {switch.name: off}), made("none", {switch.name: off}, off=True)]
        # A template may close the block unasked. Few parsers can tell in full mode, so it is looked at and not judged.
        cells.append(made("closed", asked, weight="unread"))
    elif row.needs_start_in_output and row.name not in _ALWAYS_HEADED:
        cells.append(made("none", {}, off=True, unclear=True))
    elif row.name not in _ALWAYS_HEADED and row.family != "harmony":
        cells.append(made("closed", {}))
    call = next(iter(row.implicit_ends), None)
    return Setting(
        name=row.name,
        row=row if row.start else replace(row, start=(start,), end=(end,)),
        vocabulary=vocabulary,
        thinking=thinking,
        cells=tuple(cells),
        switches=((switch.name, off, on),) if switch is not None else (),
        call=None if call is None or thinking.harmony else f"{call}f(1)",
        stop_ids=frozenset({_RETURN if row.family == "harmony" else vocabulary.markers[_EOS]}),
        end_marker=end if row.name in _HEADERS_END else family.end,
        origin="table",
    )


def from_plugin(
    name: str,
    row: ParserRow,
    pair: MarkerPair,
    *,
    reads: Sequence[str],
    implicit: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> Setting:
    """The setting of a plugin without a model.

    Args:
        name: the parser's.
        row: its markers.
        pair: the same.
        reads: the switches that the plugin's text names.
        implicit: tool-call openings that it names.
        texts: whatever else in it looks like a marker.
    """
    thinking = Thinking(pair.start, pair.end, "\n\n", mentioned=True)
    vocabulary = spelled((*_markers(thinking), *implicit, *texts))
    made = _made(f"{CHATML[0]}user\nhi{CHATML[1]}\n{CHATML[0]}assistant\n", thinking, vocabulary)
    switch = next((each for each in reads if each in SWITCHES), None)
    cells = [made("open", {}), made("none", {})]
    if switch is None:
        cells.append(made("closed", {}))
    else:
        off = {switch: SWITCHES[switch][0]}
        cells += [made("closed", off), made("none", off, off=True)]
    return Setting(
        name=name,
        row=row,
        vocabulary=vocabulary,
        thinking=thinking,
        cells=tuple(cells),
        call=f"{implicit[0]}f(1)" if implicit else None,
        stop_ids=frozenset({vocabulary.markers[_EOS]}),
        end_marker=pair.end,
        origin="plugin",
    )


SWITCHES: Mapping[str, tuple[Any, Any]] = {
    "enable_thinking": (False, True),
    "thinking": (False, True),
    "thinking_mode": ("disabled", "enabled"),
    "reasoning_effort": ("no_think", "high"),
}
"""What turns thinking off and on, by the kwarg's name."""
_EOS = "<eos>"
_RETURN = 200002
"""Harmony's `<|return|>`, which ends an answer."""
_OPENS_ITSELF = ("gemma4", "mistral", "inkling")
"""Families whose prompts leave no block open: the model writes its start marker."""
_ALWAYS_HEADED = ("muse", "muse_glimmer", "musespark1x", "inkling", "cohere_command4")
"""Families that write a header before an answer without a thought too."""
_HEADERS_END = ("muse", "muse_glimmer", "musespark1x", "inkling")
"""Families whose thought is over with the header of the answer, not with the token before it."""
_MUSE = (" to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>")
_WRITTEN: Mapping[str, tuple[str, str]] = {
    "gemma4": ("<|channel>thought\n", "<channel|>"),
    "inkling": ("<|content_thinking|>", "<|end_message|><|message_model|><|content_text|>"),
    "muse": _MUSE,
    "muse_glimmer": _MUSE,
    "musespark1x": _MUSE,
    "hunyuan_a13b": ("<think>\n", "\n</think>\n<answer>\n"),
    "kimi_k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    "cohere_command3": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "cohere_command4": ("<|START_THINKING|>", "<|END_THINKING|><|START_TEXT|>"),
}
"""What stands before and behind a thought in an output, where that is more than the markers."""


def _made(head: str, thinking: Thinking, vocabulary: Vocabulary) -> Callable[..., Cell]:
    """Makes prompts that begin with `head`, by the state they leave the model in and the request's kwargs."""
    start, end = thinking.start or "", thinking.end or ""
    tails = {"open": start, "closed": f"{start}\n\n{end}{thinking.after_end}", "none": ""}

    def made(
        state: str,
        kwargs: Mapping[str, Any],
        *,
        off: bool = False,
        unclear: bool = False,
        weight: Weight = "asked",
    ) -> Cell:
        ids = tuple(vocabulary.encode(head + tails[state]))
        return Cell("single_turn", kwargs, kwargs, kwargs, state, tails[state], ids, weight, off, unclear)

    return made


def spelled(texts: Sequence[str]) -> SpecVocabulary:
    """A byte-level vocabulary in which each of these texts is one token, and the turns' are."""
    markers = dict.fromkeys(text for text in (*texts, *CHATML, _EOS) if text)
    return SpecVocabulary(Spec(pieces=WORDS, markers=tuple((text, "plain") for text in markers)))


def _markers(thinking: Thinking) -> tuple[str, ...]:
    return tuple(text.strip() for text in (thinking.start, thinking.end) if text and text.strip())


def _read_by(rendered: Survey, pair: MarkerPair) -> Survey:
    """The survey with its states read by other markers."""
    states = []
    for state in rendered.states:
        if state.prompt is None:
            states.append(state)
            continue
        read = prompt_state(state.prompt, len(state.prompt) - len(state.after), (pair,))
        states.append(replace(state, state=read.state, marker=read.marker, tail=read.tail))
    return replace(rendered, states=tuple(states))


def _distinct(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Of cells with the same prompt and kwargs the first, those that people send before others."""
    kept: dict[str, Cell] = {}
    for cell in sorted(cells, key=lambda cell: not cell.weighs):
        kept.setdefault(repr((cell.prompt_ids, sorted(cell.kwargs.items(), key=repr))), cell)
    return tuple(cell for cell in cells if any(cell is other for other in kept.values()))
