"""`--format sarif`: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for code scanning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from ..checks.finding import Finding, Location, Severity
from ..checks.report import Report
from ..checks.rule import Rule, all_rules
from .inputs import Owners, from_top, inputs, marks, runs
from .wording import about, counted, visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEM: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}
"""GitHub's words for the severity of a rule that is not about security (its "SARIF support for code scanning")."""
_TOP = "%SRCROOT%"
MOST = 25_000
"""Results of a run; GitHub refuses a file with more ("SARIF results exceed one or more limits"). Most severe first."""


def render(report: Report, below: str = "") -> str:
    """One run. Every result has a file and a line, so that code scanning shows it; coverage gaps are notifications.

    `partialFingerprints` leaves GitHub's own `primaryLocationLineHash` to its upload action: that computes it from the
    file and warns of every other value (`src/fingerprints.ts` of github/codeql-action, its issue 4052).

    Args:
        report: what to tell.
        below: where the folder of the report's paths is in the repository, `deploy/`.
    """
    from .. import __version__

    known = all_rules()
    owners = Owners(inputs(report))
    kept = report.findings[:MOST]
    places = [owners.place(report, finding) for finding in kept]
    places = [replace(place, path=from_top(place.path, below)) for place in places]
    ids = sorted({finding.rule for finding in kept})
    left_out = len(report.findings) - len(kept)
    run = {
        "tool": {
            "driver": {
                "name": "reasonctl",
                "fullName": f"reasonctl {__version__}",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(known[id_]) if id_ in known else {"id": id_} for id_ in ids],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not report.refused,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    *([_notification(f"{counted(left_out, 'result')} left out", "skipped")] if left_out else []),
                    *(
                        _notification(f"{row.surface}: {row.reason or 'not evaluated'}", row.status)
                        for row in report.coverage
                        if row.status in ("partial", "skipped")
                    ),
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            _TOP: {"description": {"text": "The top of the repository; without one, the folder of the settings file."}}
        },
        "results": [
            _result(finding, place, mark, ids.index(finding.rule))
            for finding, place, mark in zip(kept, places, marks(kept), strict=True)
        ],
        "properties": {
            "command": report.command,
            "target": report.target,
            "verdict": report.verdict,
            "runs": [
                {"name": run.name, "command": run.command, "target": run.target, "verdict": run.verdict}
                for run in runs(report)
                if run.name is not None
            ],
        },
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
        "properties": {"tags": ["reasonctl", rule.id[:3]], "problem.severity": _PROBLEM[rule.severity]},
    }


def _result(finding: Finding, place: Location, mark: str, index: int) -> dict[str, Any]:
    subject = about(finding)
    text = " ".join(visible(part) for part in (finding.message, f"({subject})" if subject else "") if part)
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": f"{text}. {visible(finding.hint)}" if finding.hint else text},
        "locations": [{"physicalLocation": _physical(place)}],
        "partialFingerprints": {"reasonctlFinding/v1": mark},
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


def _physical(place: Location) -> dict[str, Any]:
    return {
        "artifactLocation": _artifact(place.path),
        "region": {"startLine": max(place.line, 1), "startColumn": max(place.column, 1)},
    }


def _artifact(path: str) -> dict[str, str]:
    """A path as a URI reference: absolute ones become `file:`, the others hang below the repository's top.

    What is no file there (`fixture:NAME`, `-`, a folder beside it) stays relative to nothing.
    """
    pure = PurePath(path.encode("utf-8", "backslashreplace").decode())
    if pure.is_absolute():
        return {"uri": pure.as_uri()}
    outside = path == "-" or path.startswith("fixture:") or pure.parts[:1] == ("..",)
    return {"uri": quote(pure.as_posix())} | ({} if outside else {"uriBaseId": _TOP})


def _notification(text: str, status: str) -> dict[str, Any]:
    return {"level": "warning" if status == "skipped" else "note", "message": {"text": visible(text)}}


def _json(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()}


def _flat(text: str) -> str:
    return " ".join(text.split())
