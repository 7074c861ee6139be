"""`--format sarif`: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for code scanning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ..checks.finding import Finding, Severity
from ..checks.report import Report
from ..checks.rule import Rule, all_rules
from .wording import about, input_name, visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def render(report: Report) -> str:
    """One run. Every result has a file and a line, so that code scanning shows it; coverage gaps are notifications."""
    from .. import __version__

    known = all_rules()
    ids = sorted({finding.rule for finding in report.findings})
    run = {
        "tool": {
            "driver": {
                "name": "reasonctl",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(known[id_]) if id_ in known else {"id": id_} for id_ in ids],
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    _notification(f"{row.surface}: {row.reason or 'not evaluated'}", row.status)
                    for row in report.coverage
                    if row.status in ("partial", "skipped")
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, finding, ids.index(finding.rule)) for finding in report.findings],
        "properties": {"command": report.command, "target": report.target, "verdict": report.verdict},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _rule(rule: type[Rule]) -> dict[str, Any]:
    sections = (("What it does", rule.what), ("Why it matters", rule.why), ("Instead", rule.instead))
    sources = "\n".join(f"- {source}" for source in rule.sources)
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.slug.split("-")),
        "shortDescription": {"text": rule.slug},
        "fullDescription": {"text": _flat(rule.what)},
        "help": {
            "text": "\n\n".join(f"{title}: {_flat(text)}" for title, text in sections),
            "markdown": "\n\n".join(
                [
                    *(f"**{title}.** {_flat(text)}" for title, text in sections[:2]),
                    f"```\n{rule.example.strip()}\n```",
                    f"**Instead.** {_flat(rule.instead)}",
                    f"Affected: {_flat(rule.versions)}",
                    *([f"Sources:\n{sources}"] if sources else []),
                ]
            ),
        },
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
        "properties": {"tags": ["reasonctl", rule.id[:3]]},
    }


def _result(report: Report, finding: Finding, index: int) -> dict[str, Any]:
    subject = about(finding)
    text = " ".join(visible(part) for part in (finding.message, f"({subject})" if subject else "") if part)
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": f"{text}. {visible(finding.hint)}" if finding.hint else text},
        "locations": [{"physicalLocation": _physical(report, finding)}],
        "partialFingerprints": {"reasonctlFinding/v1": finding.fingerprint},
        "suppressions": [],
        "properties": {
            "confidence": finding.confidence,
            "cause": finding.cause,
            "subject": _json(finding.subject),
            "evidence": _json(finding.evidence),
        },
    }
    if finding.suppressed is not None:
        result["suppressions"] = [{"kind": "external", "justification": visible(finding.suppressed)}]
    return result


def _physical(report: Report, finding: Finding) -> dict[str, Any]:
    """Where to show it: the finding's place, else line 1 of what was examined."""
    where = finding.location
    line, column = (where.line, where.column) if where else (1, 1)
    return {
        "artifactLocation": {"uri": _uri(where.path if where else input_name(report, finding))},
        "region": {"startLine": max(line, 1), "startColumn": max(column, 1)},
    }


def _uri(path: str) -> str:
    """A path as a URI reference: relative ones stay so, absolute ones become `file:`."""
    pure = PurePath(path.encode("utf-8", "backslashreplace").decode())
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())


def _notification(text: str, status: str) -> dict[str, Any]:
    return {"level": "warning" if status == "skipped" else "note", "message": {"text": visible(text)}}


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()}


def _flat(text: str) -> str:
    return " ".join(text.split())
