"""Which rule each failed probe belongs to: one defect, one blame, with every request that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .facts import AuditFacts
from .finding import Severity
from .probes import HISTORY_CONVERSATIONS, USER_MARKER_CONVERSATIONS, Cell
from .trial import Candidate, Failure, Trial

PRECEDENCE = ("FIT102", "FIT103", "FIT115", "FIT120", "FIT113", "FIT104", "FIT105", "FIT106", "FIT107", "FIT108")
"""Where several rules describe one defect, the first of these is the finding and the others go to `evidence.also`."""

_BY_SYMPTOM = {
    "content-null": "FIT105",
    "reasoning-null": "FIT104",
    "marker-leak": "FIT106",
    "parser-error": "FIT119",
}


@dataclass(frozen=True, slots=True)
class Blame:
    """One defect of a parser: the rule that names it, the trials that show it (most telling first), what else fits."""

    rule: str
    trials: tuple[Trial, ...]
    also: tuple[str, ...]
    severity: Severity | None

    @property
    def shown(self) -> Trial:
        return self.trials[0]

    @property
    def failure(self) -> Failure | None:
        """The failure to show: the full answer where that is wrong, else the stream."""
        return self.shown.failures[0] if self.shown.failures else None


def blames(facts: AuditFacts, candidate: Candidate) -> tuple[Blame, ...]:
    """The defects of a parser, by rule id.

    A failure under a kwarg that the template does not read is a warning, one for all such requests; where the server
    itself injects the kwarg (`reasoning_effort` brings `enable_thinking`) and nothing that is sent otherwise shows the
    defect, it is FIT114.
    """
    found: dict[str, list[tuple[Trial, tuple[str, ...]]]] = {}
    for trial in candidate.trials:
        if not trial.passed:
            rule, *also = _rules(facts, candidate, trial)
            found.setdefault(rule, []).append((trial, tuple(also)))
    weighty = {
        rule
        for rule, hits in found.items()
        if any(trial.cell.weighs and not _by_effort(facts, trial.cell) for trial, _ in hits)
    }
    split = [
        (rule, hit)
        for rule, hits in found.items()
        if rule not in weighty and rule in PRECEDENCE and rule not in ("FIT103", "FIT115", "FIT120")
        for hit in hits
        if _by_effort(facts, hit[0].cell)
    ]
    for rule, hit in split:
        found[rule].remove(hit)
        found.setdefault("FIT114", []).append((hit[0], (rule, *hit[1])))
    light = [rule for rule, hits in found.items() if rule in PRECEDENCE and rule not in weighty and hits]
    if len(light) > 1:
        gathered = [(trial, (rule, *also), rule) for rule in light for trial, also in found.pop(rule)]
        telling = min(gathered, key=lambda hit: _telling(hit[0]))[2]
        found[telling] = [(trial, also) for trial, also, _ in gathered]
    return tuple(
        _blame(rule, hits, light=rule not in weighty and rule != "FIT114")
        for rule, hits in sorted(found.items())
        if hits
    )


def _blame(rule: str, hits: list[tuple[Trial, tuple[str, ...]]], *, light: bool) -> Blame:
    trials = sorted((trial for trial, _ in hits), key=_telling)
    also = sorted({other for _, others in hits for other in others if other != rule}, key=_rank)
    return Blame(rule, tuple(trials), tuple(also), "warning" if light else None)


def _rules(facts: AuditFacts, candidate: Candidate, trial: Trial) -> list[str]:
    """The rules that describe a failed trial, the one that names the cause first."""
    if trial.raised is not None:
        return ["FIT103"]
    symptoms = _symptom_rules(trial)
    if facts.thinking.harmony:
        return ["FIT115", *symptoms]
    if not facts.thinking.mentioned and "FIT105" in symptoms:
        return ["FIT120", *symptoms]
    cell = trial.cell
    before = candidate.trial("single_turn", cell.variant)
    same_start = before is not None and before.passed and before.probe.text == trial.probe.text
    if same_start and cell.conversation in USER_MARKER_CONVERSATIONS:
        return ["TPL006", *symptoms]
    if same_start and cell.conversation in HISTORY_CONVERSATIONS:
        return ["FIT121", *symptoms]
    if cell.key in candidate.switched_on:
        return ["FIT113", *symptoms]
    return symptoms


def _symptom_rules(trial: Trial) -> list[str]:
    names: set[str] = set()
    for failure in trial.failures:
        for symptom in failure.symptoms:
            names.add(_BY_SYMPTOM.get(symptom, ""))
    # A block the output itself opens needs no help from the prompt: what is wrong is the markers that stay.
    if trial.cell.state != "open" and "FIT106" in names:
        names.discard("FIT104")
    if trial.modes_differ:
        names.add("FIT107")
    names.discard("")
    return sorted(names, key=_rank) or ["FIT106"]


def _rank(rule: str) -> tuple[int, str]:
    return (PRECEDENCE.index(rule) if rule in PRECEDENCE else len(PRECEDENCE), rule)


def _telling(trial: Trial) -> tuple[int, int, str]:
    """The request a reader understands best: one that is really sent, a plain conversation, few kwargs."""
    cell = trial.cell
    weights = ("asked", "effort", "unread")
    conversations = ("single_turn", "multi_turn", *USER_MARKER_CONVERSATIONS)
    order = conversations.index(cell.conversation) if cell.conversation in conversations else len(conversations)
    return (weights.index(cell.weight) * 100 + order * 10 + len(cell.variant), order, cell.key)


def _by_effort(facts: AuditFacts, cell: Cell) -> bool:
    """An effort, or the kwarg the server derives from one, sent by hand to a template that does not read it."""
    reads = facts.survey.reads if facts.survey is not None else frozenset()
    by_hand = set(cell.variant) == {"enable_thinking"} and "enable_thinking" not in reads
    return cell.weight == "effort" or by_hand


def cells_json(trials: Iterable[Trial]) -> list[dict[str, object]]:
    """The requests that show a defect, as JSON."""
    return [{"conversation": trial.cell.conversation, "variant": dict(trial.cell.variant)} for trial in trials]
