"""Every fixture of canitoolcall with expected reasoning: the outcome is listed, and it is real vLLM's."""

from __future__ import annotations

import pytest

from reasonctl.parsers.bridge.bridge import open_bridge
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.engines import BuiltinEngine
from reasonctl.parsers.target import Target

from .canitoolcall_outcomes import PAGE, Contexts, fixtures, outcome_of, page, rows, said
from .driver import ENVIRONMENT

ENGINE = f"{ENVIRONMENT / 'vllm-0.33.0'}:{ENVIRONMENT / 'bin' / 'python'}"


def test_the_page_lists_what_comes_of_every_fixture() -> None:
    found = list(rows(BuiltinEngine(Target())))
    assert len(found) == 173
    assert not [row for row in found if row.outcome.startswith("not run")]
    assert PAGE.read_text(encoding="utf-8") == page(found), "run python tests/real/canitoolcall_outcomes.py"


@pytest.mark.vllm
def test_the_outcome_is_vllms_on_every_fixture() -> None:
    ours = BuiltinEngine(Target())
    wrong = []
    with Contexts() as contexts, open_bridge(parse_engine(ENGINE)) as bridge:
        assert bridge.described["vllm_version"] == "0.33.0"
        for trace in fixtures():
            got, expected = said(outcome_of(trace, contexts, ours)), said(outcome_of(trace, contexts, bridge))
            if got != expected:
                wrong.append((trace.id, got, expected))
    assert not wrong, f"{len(wrong)} differ, the first: {wrong[0]}"
