"""Words and escapes that every report shares. Text of users, models and servers is shown through `visible` only."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..checks.finding import Finding, Severity
from ..checks.report import Report

SEVERITY_WORD: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """`text` with everything that could move a cursor, colour a terminal or reorder a line written as an escape.

    Control and format characters, line separators and lone surrogates become `\\n`, `\\x1b`, `\\u202e`; the joiners
    inside emoji and Indic words stay. The result is one line.
    """
    if text.isprintable():
        return text
    return text.translate(_SHOWN)


class _Shown(dict[int, str]):
    """What each character is shown as, by its code; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _shown(chr(code))
        return shown


_SHOWN = _Shown()


def _shown(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    moves = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in _JOINERS
    if not moves and not noncharacter:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(text: str | None, limit: int | None = 160) -> str:
    """`"text"` on one line, at most `limit` characters of it (its head and its tail), `null` for None."""
    return "null" if text is None else f'"{shortened(visible(text), limit)}"'


def shortened(text: str, limit: int | None) -> str:
    """At most `limit` characters: two thirds from the head, the rest from the tail, `…` between."""
    if limit is None or len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"


def compact(value: Any) -> str:
    """A JSON value on one line; a plain string without its quotes."""
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))


def variant_name(variant: Mapping[str, Any]) -> str:
    """`plain` for no kwargs, else `enable_thinking=false, reasoning_effort=low`."""
    return ", ".join(f"{visible(key)}={compact(value)}" for key, value in variant.items()) or "plain"


def subject_name(subject: Mapping[str, Any]) -> str:
    """What a finding is about: `parser deepseek_r1, enable_thinking=false, multi_turn`; empty for no subject."""
    parts = []
    for key, value in subject.items():
        if key == "variant" and isinstance(value, Mapping):
            parts.append(f"{variant_name(value)} request" if not value else variant_name(value))
        elif key == "conversation":
            parts.append(compact(value))
        else:
            parts.append(f"{key} {compact(value)}")
    return ", ".join(parts)


def about(finding: Finding) -> str:
    """The finding's subject, without the model where its place already names it."""
    subject = dict(finding.subject)
    model, where = subject.get("model"), finding.location
    if where and model and (where.path == model or where.path.startswith(f"{model}/")):
        del subject["model"]
    return subject_name(subject)


def place(finding: Finding) -> str | None:
    """`path:line:column`, or None for a finding without a place."""
    where = finding.location
    return f"{visible(where.path)}:{where.line}:{where.column}" if where else None


def input_name(report: Report, finding: Finding | None = None) -> str:
    """What a finding without a place belongs to: its own model or server, else what was examined."""
    subject = finding.subject if finding else {}
    model = report.facts.get("model")
    named = (
        subject.get("model") or subject.get("server") or (model.get("source") if isinstance(model, Mapping) else None)
    )
    return visible(str(named or report.facts.get("source") or report.command))


def counted(number: int, word: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def judged_as(report: Report, server: Mapping[str, Any] | None = None) -> str:
    """Which server's behaviour the report goes by, and whose parsers showed it.

    Args:
        report: the report.
        server: the facts of one of several servers, each of which has a target of its own; None: all of them.
    """
    given = report.facts.get("servers")
    servers = [server] if server is not None else given if isinstance(given, Sequence) else []
    told = [str(each["target"]) for each in servers if isinstance(each, Mapping) and each.get("target")]
    targets = ", ".join(dict.fromkeys(told)) or report.target
    engine = report.engine
    if engine.get("kind") == "vllm":
        return f"{targets}, with the parsers of vLLM {engine.get('vllm_version')} itself"
    return f"{targets}, with built-in models of the parsers of {engine.get('models')}"


def tally(report: Report, *, hidden: bool = False) -> str:
    """`1 error, 0 warnings, 4 notes, 2 suppressed`; `hidden` says how to see the notes where they are not shown."""
    summary = report.summary
    notes = counted(summary["info"], "note") + (" (--verbose)" if hidden and summary["info"] else "")
    words = [counted(summary["error"], "error"), counted(summary["warning"], "warning"), notes]
    return ", ".join(words + ([f"{summary['suppressed']} suppressed"] if summary["suppressed"] else []))


def verdict_line(report: Report, *, hidden: bool = False) -> str:
    """The last line of a report: the verdict, what it is made of, and what a stricter call would have said."""
    return f"{report.verdict.upper()}  {'; '.join(verdict_words(report, hidden=hidden))}"


def verdict_words(report: Report, *, hidden: bool = False) -> list[str]:
    """The tally, and what there is to say besides."""
    words = [tally(report, hidden=hidden)]
    skipped = dict.fromkeys(row.surface for row in report.coverage if row.status in ("partial", "skipped"))
    if skipped:
        words.append(f"not fully evaluated: {', '.join(map(visible, skipped))}")
    below = report.verdict != "fail" and report.policy.fail_on == "error" and report.summary["warning"]
    if below and any(_would_count(report, finding) for finding in report.findings):
        words.append("--fail-on warning would fail")
    unsure = [f for f in report.findings if f.severity == "error" and f.suppressed is None]
    if (
        report.verdict != "fail"
        and unsure
        and any(replace(report.policy, min_confidence="low").counts(f) for f in unsure)
    ):
        words.append("--min-confidence low would fail")
    if report.verdict == "incomplete" and report.exit_code == 0:
        words.append("exit 0, --fail-on-incomplete makes it 1")
    if report.counting and report.exit_code == 0:
        words.append("exit 0 by --exit-zero")
    return words


def _would_count(report: Report, finding: Finding) -> bool:
    return replace(report.policy, fail_on="warning").counts(finding)


def live_said(live: Mapping[str, Any]) -> str:
    """The running server, what it answered, and which parsers give exactly that."""
    where = f"{live['server']} at {live['url']}, model {live['model']}"
    if live.get("problem"):
        return f"{where}: not evaluated: {live['problem']}"
    answers = [answer for answer in live["answers"] if answer["explained_by"] is not None]
    told = f"{where}: {counted(len(answers), 'answer')}"
    names = ["no parser" if name == "none" else name for name in live.get("explained_by") or []]
    if not names:
        return f"{told}, and no one parser gives them all"
    shown = f"{', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"
    untold = "" if live["parser_known"] else "; which parser runs there is not told"
    return f"{told}, exactly what {shown} {'gives' if len(names) == 1 else 'give'}{untold}"
