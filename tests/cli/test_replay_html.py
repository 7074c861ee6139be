"""`reasonctl replay --format html`: drawn where it is asked for, of the worst traces, and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasonctl.cli import replay_kept

COMMAND = "replay"
TRACES = Path(__file__).resolve().parents[2] / "fixtures" / "traces"
Run = Callable[..., tuple[int, str, str]]


def drawing(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="drawing">(.*?)</script>', page)
    assert found is not None
    made: dict[str, Any] = json.loads(found.group(1))
    return made


def test_every_format_beside_it_is_what_it_is_alone(run: Run, tmp_path: Path) -> None:
    traces = [str(TRACES / "qwen3-open.jsonl"), "--model", "fixture:qwen3-thinking"]
    page = tmp_path / "page.html"
    _, alone, _ = run(*traces, "--format", "json")
    _, beside, _ = run(*traces, "--format", "json", "--format", f"html={page}")
    assert beside == alone
    strips = drawing(page.read_text("utf-8"))["strips"]
    assert [one["r"][0][0] for one in strips] == ["r37", "r40m1c13", "r45m1c15"]
    _, text, _ = run(*traces)
    _, beside, _ = run(*traces, "--format", "text", "--format", f"html={page}")
    assert beside == text


def test_several_processes_draw_the_same_page(run: Run, tmp_path: Path) -> None:
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for jobs, page in enumerate(pages, 1):
        run(str(TRACES / "mentions-marker.jsonl"), "--jobs", str(jobs), "--format", f"html={page}")
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_of_many_traces_the_worst_are_drawn_and_the_others_counted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_kept, "_DRAWN", 7)
    right = {"reasoning": "Hm.", "content": "4", "parser": "qwen3"}
    lines = [{"id": f"t{one}", "output": {"text": "Hm.</think>4"}, "recorded": right} for one in range(9)]
    lines[8] = {"id": "bad", "output": {"text": "Hm."}, "recorded": {**right, "reasoning": "Hm.", "content": "5"}}
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"schema": "reasonctl.trace/1", **line}) + "\n" for line in lines), "utf-8")
    code, page, _ = run(str(file), "--format", "html")
    assert code == 1
    assert len(drawing(page)["strips"]) == 7
    names = re.findall(r"<details class=\"card trace\".*?<strong>(.*?)</strong>", page)
    assert names == ["bad", "t0", "t1", "t2", "t3", "t4", "t5"]
    assert "2 more traces" in page


def test_a_trace_that_cannot_be_read_has_a_card_without_a_drawing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ids.jsonl"
    file.write_text(json.dumps({"schema": "reasonctl.trace/1", "id": "ids", "output": {"token_ids": [1, 2]}}), "utf-8")
    _, page, _ = run(str(file), "--parser", "qwen3", "--format", "html")
    assert 'id="drawing"' not in page
    assert "this trace holds token ids alone: --model is needed to read them" in page
