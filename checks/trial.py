"""Runs probes through parsers, one after the other, in full and streamed, on the real token ids of the prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..parsers import ROWS
from ..parsers.base import ParserUnsupportedError, Vocabulary
from ..parsers.engines import BuiltinEngine, ParserEngine
from ..parsers.feed import Chunking
from ..parsers.row import ParserRow
from ..parsers.run import ModeResult, Output, ParserRun
from ..parsers.target import Target
from .probes import Cell, Probe, at_odds, core_probe, stress_probes
from .thinking import Thinking

Symptom = Literal[
    "reasoning-null",
    "content-null",
    "marker-leak",
    "text-lost",
    "split-wrong",
    "stream-differs",
    "tool-call-lost",
    "parser-error",
]
Fit = Literal["pass", "fail", "unsupported"]

CORE_CHUNKINGS = (Chunking("tokens"),)
STRESS_CHUNKINGS = (*CORE_CHUNKINGS, Chunking("tokens", 3), Chunking("whole"))


@dataclass(frozen=True, slots=True)
class Failure:
    """One mode of one probe that went wrong. `symptoms` holds all that is wrong, the gravest first."""

    probe: Probe
    cell: Cell
    chunking: str | None
    symptoms: tuple[Symptom, ...]
    got: ModeResult

    @property
    def mode(self) -> Literal["full", "stream"]:
        return "full" if self.chunking is None else "stream"

    def as_json(self) -> dict[str, Any]:
        """The failure as the JSON report shows it."""
        return {
            "probe": self.probe.name,
            "conversation": self.cell.conversation,
            "variant": dict(self.cell.variant),
            "mode": self.mode,
            "chunking": self.chunking,
            "symptom": self.symptoms[0],
            "output": self.probe.text,
            "expected": {"reasoning": self.probe.reasoning, "content": self.probe.content},
            "got": {"reasoning": self.got.reasoning, "content": self.got.content},
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """One probe put to one cell. `raised` is what the parser's constructor raises there, `lost` why there is no run."""

    cell: Cell
    probe: Probe
    run: ParserRun | None
    failures: tuple[Failure, ...] = ()
    raised: str | None = None
    lost: str | None = None

    @property
    def passed(self) -> bool:
        return self.raised is None and self.lost is None and not self.failures

    @property
    def modes_differ(self) -> bool:
        """Full and streamed (one token a delta) say different things, white space at the ends aside."""
        run = self.run
        return run is not None and not _same(run.full, run.stream[0])


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one parser did with every probe.

    `unsupported` says why nothing could be run; `raised` is the constructor's own message where that is the reason.
    `hidden` holds the core probe again with special tokens left out of the text, as a server decodes by default.
    `switched_on` are cells whose failure is gone once the parser's own switch is turned on. `lost` are the probes whose
    results a crash or a hang cost; they are in none of the others. `refuted` says why it does not fit although the
    probes pass, which show what another release does.
    """

    name: str
    row: ParserRow
    unsupported: str | None = None
    raised: str | None = None
    trials: tuple[Trial, ...] = ()
    skipped: int = 0
    stress: tuple[Trial, ...] = ()
    hidden: tuple[Trial, ...] = ()
    switched_on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lost: tuple[Trial, ...] = ()
    refuted: str | None = None

    @property
    def deciding(self) -> tuple[Trial, ...]:
        """The core probes on requests that people send."""
        return tuple(trial for trial in self.trials if trial.cell.weighs)

    @property
    def elsewhere(self) -> int:
        """Core probes that failed only under kwargs the template does not read, or under an effort."""
        return sum(not trial.passed for trial in self.trials if not trial.cell.weighs)

    @property
    def fit(self) -> Fit:
        if self.unsupported is not None or not self.deciding:
            return "unsupported"
        passed = not self.lost and self.refuted is None and all(trial.passed for trial in self.deciding)
        return "pass" if passed else "fail"

    @property
    def passed(self) -> int:
        return sum(trial.passed for trial in self.deciding)

    @property
    def failed(self) -> int:
        return len(self.deciding) - self.passed

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(failure for trial in self.deciding for failure in trial.failures)

    def trial(self, conversation: str, variant: Mapping[str, Any]) -> Trial | None:
        """The core probe of this cell."""
        wanted = dict(variant)
        return next((t for t in self.trials if t.cell.conversation == conversation and t.cell.variant == wanted), None)


class Bench:
    """Tries parsers on the cells of one model. Equal runs (prompt, output, kwargs the parser reads) are made once.

    Args:
        cells: prompts to put probes to.
        thinking: how the model thinks.
        vocabulary: the model's tokenizer, or the assumed one.
        call: how the model opens a tool call, None where its template offers no tools.
        stop_ids: end-of-sequence ids; one ends every probe, as it ends a real answer.
        hides: decoding leaves special tokens out unless the parser asks to keep them.
        target: the server to judge by.
        engine: who runs the parsers; None: the built-in models of the target.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        thinking: Thinking,
        vocabulary: Vocabulary,
        *,
        call: str | None,
        stop_ids: frozenset[int],
        hides: bool,
        target: Target,
        engine: ParserEngine | None = None,
    ) -> None:
        self.cells = cells
        self.thinking = thinking
        self.vocabulary = vocabulary
        self.call = call
        self.stop_ids = stop_ids
        self.hides = hides
        self.engine = engine or BuiltinEngine(target)
        self._output_ids: dict[str, tuple[int, ...]] = {}
        self._outputs: dict[tuple[tuple[int, ...], str, bool], Output] = {}
        self._starts: dict[tuple[str, str, tuple[int, ...]], Hashable] = {}
        self._starters: dict[tuple[str, str], Callable[[Sequence[int]], Hashable]] = {}
        self._reads: dict[tuple[frozenset[str], str], str] = {}
        self._fed: dict[tuple[tuple[int, ...], str, bool], int] = {}
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._off_at_odds = {cell.key for cell in cells if at_odds(cell, cells)}

    def candidate(self, name: str) -> Candidate:
        """Run every probe through one parser."""
        table_row = known_row(name) or unknown_row(name)
        trials: list[Trial] = []
        skipped = 0
        runs: dict[tuple[Any, ...], Trial] = {}
        try:
            for cell in self.cells:
                probe = core_probe(cell, self.thinking, continued_off=cell.key in self._off_at_odds)
                if probe is None:
                    skipped += 1
                    continue
                trials.append(self._trial(name, cell, probe, CORE_CHUNKINGS, runs))
        except ParserUnsupportedError as why:
            return Candidate(name, table_row, unsupported=str(why), skipped=len(self.cells))
        if trials and all(trial.raised for trial in trials):
            return Candidate(
                name, table_row, unsupported=trials[0].raised, raised=trials[0].raised, skipped=len(self.cells)
            )
        answered, lost = _apart(trials)
        done = Candidate(name, table_row, trials=answered, skipped=skipped, lost=lost)
        if not answered:
            return done
        stress, lost_stress = _apart(self._stress(name))
        hidden, lost_hidden = _apart(self._hidden(table_row))
        return replace(
            done,
            stress=stress,
            hidden=hidden,
            switched_on=self._switched_on(done),
            lost=(*lost, *lost_stress, *lost_hidden),
        )

    def _trial(
        self,
        name: str,
        cell: Cell,
        probe: Probe,
        chunkings: tuple[Chunking, ...],
        runs: dict[tuple[Any, ...], Trial],
        *,
        skip_special_tokens: bool = False,
    ) -> Trial:
        start = self._start(name, cell)
        key = (*start, self._alike(cell.prompt_ids, probe.text, skip_special_tokens), chunkings, skip_special_tokens)
        known = runs.get(key)
        if known is None:
            known = runs[key] = self._run(name, cell, probe, chunkings, skip_special_tokens)
        failures = tuple(Failure(probe, cell, f.chunking, f.symptoms, f.got) for f in known.failures)
        return Trial(cell, probe, known.run, failures, known.raised, known.lost)

    def _run(self, name: str, cell: Cell, probe: Probe, chunkings: tuple[Chunking, ...], skip: bool) -> Trial:
        run = self.engine.run(
            name,
            self.vocabulary,
            cell.kwargs,
            self._output(cell.prompt_ids, probe.text, skip),
            chunkings=chunkings,
            request_kwargs=cell.request_kwargs,
        )
        if run.lost is not None:
            return Trial(cell, probe, None, lost=run.lost)
        if run.unsupported is not None:
            raise ParserUnsupportedError(run.unsupported)
        if all(mode.error is not None for mode in (run.full, *run.stream)):
            raised = self.engine.refusal(name, self.vocabulary, cell.kwargs, cell.request_kwargs)
            if raised is not None:
                return Trial(cell, probe, None, raised=raised)
        markers = self._markers(known_row(name) or unknown_row(name))
        failures = [
            Failure(probe, cell, mode.chunking, symptoms, mode)
            for mode in (run.full, *run.stream)
            if probe.judged and (symptoms := symptoms_of(mode, probe, markers))
        ]
        return Trial(cell, probe, run, tuple(failures))

    def _stress(self, name: str) -> Iterable[Trial]:
        """Stress probes on a plain prompt that thinks and on the first that does not, with larger deltas too."""
        runs: dict[tuple[Any, ...], Trial] = {}
        for cell in self._stress_cells():
            core = core_probe(cell, self.thinking)
            for probe in (*((core,) if core else ()), *stress_probes(cell, self.thinking, self.call)):
                yield self._trial(name, cell, probe, STRESS_CHUNKINGS, runs)

    def _hidden(self, table_row: ParserRow) -> Iterable[Trial]:
        if not self.hides or table_row.skip_special_tokens is False:
            return
        for cell in self._stress_cells():
            core = core_probe(cell, self.thinking)
            if core is not None:
                yield self._trial(table_row.name, cell, core, CORE_CHUNKINGS, {}, skip_special_tokens=True)

    def _stress_cells(self) -> list[Cell]:
        plain = [c for c in self.cells if c.conversation == "single_turn" and c.weighs and not c.unclear]
        on = [cell for cell in plain if cell.thinks][:1]
        off = [cell for cell in plain if not cell.thinks][:1]
        return [*on, *off]

    def _switched_on(self, candidate: Candidate) -> dict[str, Mapping[str, Any]]:
        """For a parser that is off unless asked: the cells that pass as soon as its switch is on."""
        switches = [kwarg for kwarg in candidate.row.kwargs if kwarg.switches_thinking]
        switch = next((kwarg for kwarg in switches if kwarg.default == "off"), None)
        if switch is None:
            return {}
        names = {kwarg.name for kwarg in switches}
        on = {"enable_thinking": True} if "enable_thinking" in names else {switch.name: _ON.get(switch.name, True)}
        healed: dict[str, Mapping[str, Any]] = {}
        for trial in candidate.trials:
            cell = trial.cell
            if trial.passed or not cell.thinks or any(name in cell.kwargs for name in names):
                continue
            turned = replace(cell, kwargs={**cell.kwargs, **on}, request_kwargs={**cell.request_kwargs, **on})
            again = self._run(candidate.name, turned, trial.probe, CORE_CHUNKINGS, False)
            if again.passed:
                healed[cell.key] = on
        return healed

    def _start(self, name: str, cell: Cell) -> tuple[Hashable, str]:
        """What decides what this parser does with an output in this cell: equal ones give equal runs."""
        reads = self._read_by(name, cell)
        key = name, reads, cell.prompt_ids
        if key not in self._starts:
            if (name, reads) not in self._starters:
                starter = self.engine.starter(name, self.vocabulary, cell.kwargs, cell.request_kwargs)
                self._starters[name, reads] = starter
            self._starts[key] = self._starters[name, reads](cell.prompt_ids)
        return self._starts[key], reads

    def _alike(self, prompt_ids: tuple[int, ...], text: str, skip: bool) -> int:
        """A number for what a server would feed a parser of this output behind this prompt; equal feeds have one."""
        key = prompt_ids, text, skip
        if key not in self._fed:
            output = self._output(*key)
            pieces = [output.pieces(leave_out) for leave_out in (True, False)]
            shape = tuple((tuple(each.texts), tuple(each.ids), tuple(each.cuts.items())) for each in pieces)
            self._fed[key] = self._shapes.setdefault(shape, len(self._shapes))
        return self._fed[key]

    def _read_by(self, name: str, cell: Cell) -> str:
        """The kwargs that this parser reads."""
        known = known_row(name)
        if known is None:  # what a plugin reads is not known
            return json.dumps([dict(cell.kwargs), dict(cell.request_kwargs)], sort_keys=True, default=repr)
        reads = frozenset(kwarg.name for kwarg in known.kwargs)
        key = reads, cell.key
        if key not in self._reads:
            ours = {name: value for name, value in cell.kwargs.items() if name in reads}
            own = {name: value for name, value in cell.request_kwargs.items() if name in reads}
            self._reads[key] = json.dumps([ours, own], sort_keys=True, default=repr)
        return self._reads[key]

    def _output(self, prompt_ids: tuple[int, ...], text: str, skip: bool) -> Output:
        key = (prompt_ids, text, skip)
        if key not in self._outputs:
            if text not in self._output_ids:
                self._output_ids[text] = (*self.vocabulary.encode(text), *sorted(self.stop_ids)[:1])
            self._outputs[key] = Output(
                self.vocabulary,
                ids=self._output_ids[text],
                prompt_ids=prompt_ids,
                stop_ids=self.stop_ids,
                skip_special_tokens=skip,
            )
        return self._outputs[key]

    def _markers(self, table_row: ParserRow) -> tuple[str, ...]:
        """Texts that must not reach a client: the model's markers and the parser's own."""
        ours = [self.thinking.start or "", self.thinking.end or ""]
        if self.thinking.harmony:
            ours += ["<|channel|>", "<|message|>"]
        theirs = [] if table_row.name == "minimax_m2_append_think" else [*table_row.start, *table_row.end]
        return tuple(sorted({marker.strip() for marker in (*ours, *theirs) if marker.strip()}))


_ON: Mapping[str, Any] = {"thinking_mode": "enabled", "reasoning_effort": "high"}


def symptoms_of(mode: ModeResult, probe: Probe, markers: tuple[str, ...]) -> tuple[Symptom, ...]:
    """What is wrong with a split, the gravest first; nothing where it is right but for white space at the ends."""
    if mode.error is not None:
        return ("parser-error",)
    reasoning, content = _strip(mode.reasoning), _strip(mode.content)
    wanted, answer = _strip(probe.reasoning), _strip(probe.content)
    if (reasoning, content) == (wanted, answer):
        return ()
    everything = reasoning + content
    lost = any(part not in everything for part in (wanted, answer) if part)
    found: list[Symptom] = []
    if answer and not content and answer in reasoning:
        found.append("content-null")
    if wanted and not reasoning and wanted in content:
        found.append("reasoning-null")
    if any(marker in everything for marker in markers if marker not in wanted + answer):
        found.append("marker-leak")
    if lost:
        found.append("text-lost")
    return tuple(found) or ("split-wrong",)


def _same(one: ModeResult, other: ModeResult) -> bool:
    return (_strip(one.reasoning), _strip(one.content), one.error) == (
        _strip(other.reasoning),
        _strip(other.content),
        other.error,
    )


def _strip(text: str | None) -> str:
    return (text or "").strip()


def same_split(one: ModeResult, other: ModeResult) -> bool:
    """Equal after stripping white space at both ends, empty and null being one."""
    return _same(one, other)


def known_row(name: str) -> ParserRow | None:
    """The table row of a name, None for a name that no modelled version registers."""
    return ROWS.get(name)


def unknown_row(name: str) -> ParserRow:
    """What is known of a plugin's parser, or of one that is newer than the table: nothing."""
    unknown = "not known: no release that is modelled has it"
    return ParserRow(
        name=name,
        family="own",
        start=(),
        end=(),
        truncation=unknown,
        prompt_rule=unknown,
        gates_grammar=unknown,
        sources=(),
        counting="none",
    )


def _apart(trials: Iterable[Trial]) -> tuple[tuple[Trial, ...], tuple[Trial, ...]]:
    """Those with a result, and the lost ones."""
    found = tuple(trials)
    return tuple(t for t in found if t.lost is None), tuple(t for t in found if t.lost is not None)
