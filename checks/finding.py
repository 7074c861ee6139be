"""What a rule says: a finding, the place it points at, and what could be looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
CoverageStatus = Literal["examined", "partial", "skipped", "absent"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
SUBJECT_KEYS = ("server", "model", "parser", "variant", "conversation", "trace", "key", "request")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. `path` is as the user wrote it; the report makes it relative. Line and column count from 1."""

    path: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect, with the evidence that shows it.

    `subject` uses the keys of SUBJECT_KEYS and no others, absent where not meant. `evidence` is free, JSON-valued.
    `suppressed` is the reason of the ignore or baseline entry that covers the finding, else None.
    """

    rule: str
    slug: str
    severity: Severity
    confidence: Confidence
    message: str
    hint: str
    cause: str | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    suppressed: str | None = None

    @property
    def fingerprint(self) -> str:
        """16 hex digits that stay the same when lines move, wording changes or the tool gets a new version."""
        import hashlib  # loads OpenSSL: not for `--help`

        path = self.location.path if self.location else None
        key = json.dumps([self.rule, path, dict(self.subject)], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()[:16]

    def as_json(self) -> dict[str, Any]:
        """The finding as the JSON report shows it (`reasonctl.report/1`)."""
        place = self.location
        return {
            "rule": self.rule,
            "slug": self.slug,
            "severity": self.severity,
            "confidence": self.confidence,
            "message": self.message,
            "hint": self.hint,
            "cause": self.cause,
            "subject": dict(self.subject),
            "location": {"path": place.path, "line": place.line, "column": place.column} if place else None,
            "evidence": dict(self.evidence),
            "fingerprint": self.fingerprint,
            "suppressed": self.suppressed,
        }


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether a surface (template, tokenizer, parser, server, trace, budget, ...) could be looked at, and if not, why.

    A `partial` or `skipped` surface makes the verdict `incomplete`; `absent` means there was nothing of the kind to
    look at, and nobody asked for it.
    """

    surface: str
    status: CoverageStatus
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"surface": self.surface, "status": self.status, "reason": self.reason}
