"""Prompts that make the same of a parser are run once: nothing in an audit may differ from running every one."""

from __future__ import annotations

import json

import pytest

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.audit_json import facts_json
from reasonctl.parsers import Target
from reasonctl.parsers.engines import BuiltinEngine
from reasonctl.prompts.model import load_model


def judged(name: str) -> tuple[str, list[str]]:
    facts = audit(load_model(name), source=name, parser="auto", target=Target())
    return json.dumps(facts_json(facts), sort_keys=True), [repr(finding) for finding in findings(facts)]


@pytest.mark.parametrize("name", ["fixture:deepseek-v31", "fixture:glm47", "fixture:split-markers"])
def test_an_audit_is_what_it_is_with_every_prompt_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = judged(name)
    monkeypatch.setattr(BuiltinEngine, "starter", lambda *_, **__: tuple)
    assert judged(name) == short


def test_a_prompt_that_reads_otherwise_starts_otherwise() -> None:
    model = load_model("fixture:qwen3")
    assert model.tokenizer is not None
    start = BuiltinEngine(Target()).starter("qwen3", model.tokenizer, {})
    open_, closed, silent = (
        tuple(model.tokenizer.encode(text)) for text in ("hi<think>", "hi<think>\n\n</think>", "hello")
    )
    assert start(open_) == start(silent) != start(closed)
    assert BuiltinEngine(Target()).starter("hf", model.tokenizer, {})(silent) == silent
