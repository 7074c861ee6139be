"""Pages for the tests of the HTML report, and a reader of their structure."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from reasonctl.checks.finding import Coverage, Finding, Location
from reasonctl.checks.report import DRAWN, Policy, Report, make_report

ENGINE = {"kind": "builtin", "models": "vllm==0.33.0"}
VOID = {"br", "hr", "input", "link", "meta"}
EVIL = "</script><script>alert(1)</script><img src=//x.invalid/a>'\"`&amp;\x1b[31m\u202eevil\u2028\x00\ud800\n</td>"
"""Text that would take over a page: ends of elements, a fetch, controls, a change of direction, a lone surrogate."""


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(one if isinstance(one, str) else one.text for one in self.children)

    def all(self, tag: str, class_: str | None = None) -> list[Node]:
        found = []
        for one in self.children:
            if isinstance(one, Node):
                classes = (one.attributes.get("class") or "").split()
                if one.tag == tag and (class_ is None or class_ in classes):
                    found.append(one)
                found += one.all(tag, class_)
        return found

    def by_id(self, name: str) -> Node:
        return next(one for one in self.everything() if one.attributes.get("id") == name)

    def everything(self) -> list[Node]:
        found = []
        for one in self.children:
            if isinstance(one, Node):
                found += [one, *one.everything()]
        return found


class Tree(HTMLParser):
    """Reads a document; an element that is not closed in its turn is a fault."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.top = Node("", {})
        self._open = [self.top]
        self.feed(text)
        self.close()
        assert self._open == [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        node = Node(tag, dict(attrs))
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("path", "rect")
        self._open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def tree(page: str) -> Node:
    return Tree(page).top


def strip(texts: list[str], rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    ids = [1000 + number for number, _ in enumerate(texts)]
    shape: dict[str, Any] = {"names": {}, "deltas": [], "prompt": "<think>\n", "state": "open", "left_out": 0}
    return {"texts": texts, "ids": ids, "rows": rows, **shape, **more}


def row(parsers: dict[str, list[str]], spans: list[tuple[str, int]], **more: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {"mixed": {}, "leaks": [], "own": 0, "error": None}
    return {"parsers": [list(pair) for pair in parsers.items()], "spans": [list(one) for one in spans], **shape, **more}


def drawn(name: str, drawing: dict[str, Any] | None, *results: dict[str, Any]) -> dict[str, Any]:
    return {
        "trace": name,
        "path": "capture.jsonl",
        "line": 1,
        "best": ["qwen3"],
        "why": "every check passes",
        "finish_reason": "stop",
        "results": list(results),
        "compared": {},
        "strip": drawing,
    }


def outcome(parser: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    split = {"reasoning": "Two and two.", "content": "It is 4."}
    checks = dict.fromkeys(("stream_equals_full", "chunk_invariant", "no_marker_leak", "text_conserved"), True)
    shape = {"full": split, "stream": [{"chunking": "token", **split}], "checks": checks, "reason": None}
    return {"parser": parser, "status": status, "matches_recorded": None, **shape, **more}


LEAK = drawn(
    "t1",
    strip(
        ["Two", " and", " two", ".", "</think>", "\n\n", "It is", " 4", ".", ""],
        [
            row({"recorded": [], "poolside_v1": []}, [("content", 9), ("marker", 1)], leaks=[[4, 1]]),
            row({"qwen3": []}, [("reasoning", 4), ("marker", 1), ("content", 4), ("marker", 1)]),
            row({"ernie45": ["full"]}, [("reasoning", 4), ("marker", 2), ("lost", 1), ("content", 2), ("marker", 1)]),
            row({"k2_horizon": []}, [], error="RuntimeError"),
        ],
        names={"9": "<|im_end|>"},
        deltas=[2, 3, 0, 1, 1, 1, 2],
    ),
    outcome("poolside_v1", "suspect"),
    outcome("qwen3"),
)


def replay_page(*traces: dict[str, Any], findings: tuple[Finding, ...] = (), number: int = 0) -> Report:
    return make_report(
        "replay",
        target="vllm==0.33.0",
        engine=ENGINE,
        facts={"traces": number or len(traces), "tokenizer": "model", DRAWN: list(traces)},
        findings=findings,
        coverage=[Coverage("trace", "examined")],
        policy=Policy(),
    )


LEAKED = Finding(
    rule="RPL403",
    slug="replay-marker-leak",
    severity="error",
    confidence="high",
    message="poolside_v1 leaves </think> in content",
    hint="serve with qwen3",
    subject={"trace": "t1", "parser": "poolside_v1"},
    location=Location("capture.jsonl", 1),
    evidence={"output": "Two and two.</think>\n\nIt is 4.", "chain": [["parser", "stays off"]]},
)


def evil_report() -> Report:
    """Every text of a replay and its finding is hostile."""
    trace = drawn(
        EVIL,
        strip([EVIL, "\\n", "\n"], [row({EVIL: [EVIL]}, [("reasoning", 2), ("lost", 1)])], prompt=EVIL),
        outcome(EVIL, "unsupported", reason=EVIL),
        outcome(EVIL, "suspect", reason=EVIL, full={"reasoning": EVIL, "content": EVIL}),
    )
    finding = Finding(
        rule="RPL403",
        slug="replay-marker-leak",
        severity="error",
        confidence="medium",
        message=EVIL,
        hint=EVIL,
        cause=EVIL,
        subject={"trace": EVIL, "parser": EVIL},
        location=Location(EVIL, 1),
        evidence={"output": EVIL, "chain": [[EVIL, EVIL]], "client": {"reasoning": EVIL, "content": None}, EVIL: EVIL},
    )
    report = replay_page(trace, findings=(finding, replace(finding, suppressed=EVIL)))
    return replace(report, target=EVIL, coverage=(Coverage(EVIL, "skipped", EVIL),))


def many(traces: int, tokens: int) -> Report:
    """Long traces of a large vocabulary: words as frequent as in a language, five outcomes each with a few changes."""
    chance = random.Random(6)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [" " + "".join(chance.choices(letters, k=chance.randint(1, 9))) for _ in range(30_000)]
    shares = [1 / (rank + 2) for rank in range(len(words))]
    cumulative = list(itertools.accumulate(shares))
    made = []
    for number in range(traces):
        picks = chance.choices(range(len(words)), cum_weights=cumulative, k=tokens)
        texts = [words[pick] for pick in picks]
        rows = []
        for place, name in enumerate(("recorded", "qwen3", "deepseek_r1", "glm45", "mistral")):
            spans: list[tuple[str, int]] = []
            left = tokens
            for kind in itertools.cycle(("reasoning", "marker", "content", "lost")):
                length = 1 if kind in ("marker", "lost") else chance.randint(50, 90 + 40 * place)
                spans.append((kind, min(length, left)))
                left -= spans[-1][1]
                if not left:
                    break
            rows.append(row({name: []}, spans))
        drawing = strip(texts, rows)
        drawing["ids"] = [int(pick * 4.7) + 100 for pick in picks]
        drawing["deltas"] = [1] * tokens
        full = {"reasoning": "".join(texts[: tokens // 2]), "content": "".join(texts[tokens // 2 :])}
        results = [outcome(name, full=full) for name in ("qwen3", "deepseek_r1", "glm45", "mistral")]
        made.append(drawn(f"long-{number}", drawing, *results))
    return replay_page(*made)
