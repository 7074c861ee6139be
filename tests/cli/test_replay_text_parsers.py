"""`reasonctl replay --parser NAME` for the parsers that tell markers by text: an output of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = "replay"
Run = Callable[..., tuple[int, str, str]]

GRANITE = "Here is my thought process: Two and two. Here is my response: 4"
KIMI = "<|open|>think<|sep|>Two and two.<|close|>think<|sep|><|open|>response<|sep|>4<|close|>response<|sep|>"
MUSE = " to=self<|message|>Two and two.<|eom|><|start|>assistant to=user<|message|>4<|eot|>"
HUNYUAN = [14023, 771, 397, 5, 198, 524, 27963, 397, 27, 9399, 397, 6, 198, 524, 9399, 29]


def hunyuan_folder(folder: Path) -> str:
    """A model folder whose tokens have the ids they have in Hunyuan's vocabulary."""
    own = {5: "Two", 6: "4", 27: "<", 29: ">", 198: "Ċ", 397: ">Ċ", 524: "</", 771: "ink", 9399: "answer", 14023: "<th"}
    vocab = {own.get(number, f"token{number}"): number for number in range(27963)} | {"think": 27963}
    model = {"type": "BPE", "vocab": vocab, "merges": []}
    spelled = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    folder.mkdir()
    tokenizer = {"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": spelled, "decoder": spelled}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
    return str(folder)


def replayed(run: Run, folder: Path, name: str, output: dict[str, Any], *arguments: str) -> dict[str, Any]:
    path = folder / "trace.jsonl"
    path.write_text(json.dumps({"id": "sum", "output": output, "recorded": {"finish_reason": "stop"}}) + "\n")
    code, out, err = run(str(path), "--parser", name, *arguments, "--format", "json")
    assert code in (0, 1), err
    (result,) = json.loads(out)["facts"]["results"]
    return dict(result)


@pytest.mark.parametrize(
    ("name", "text", "reasoning", "content"),
    [
        ("granite", GRANITE, " Two and two. ", " 4"),
        ("olmo3", "<think>Two and two.</think>4", "Two and two.", "4"),
        ("k2_horizon", "<ifm|think>Two and two.</ifm|think>4", "Two and two.", "4"),
        ("minimax_m3", "<mm:think>Two and two.</mm:think>4", "Two and two.", "4"),
        ("kimi_k3", KIMI, "Two and two.", "4"),
        ("muse", MUSE, "Two and two.", "4"),
        ("musespark1x", MUSE, "Two and two.", "4"),
        ("muse_glimmer", MUSE, "Two and two.", "4"),
    ],
)
def test_an_output_is_split(run: Run, tmp_path: Path, name: str, text: str, reasoning: str, content: str) -> None:
    result = replayed(run, tmp_path, name, {"text": text}, "--chunking", "token")
    assert (result["parser"], result["status"]) == (name, "ok")
    for mode in (result["full"], *result["stream"]):
        assert (mode["reasoning"], mode["content"]) == (reasoning, content)


def test_hunyuan_needs_its_own_tokenizer(run: Run, tmp_path: Path) -> None:
    result = replayed(run, tmp_path, "hunyuan_a13b", {"text": "<think>\nTwo\n</think>\n<answer>\n4\n</answer>"})
    assert (result["status"], result["stream"]) == ("unsupported", [])


def test_hunyuan_streams_by_its_own_ids(run: Run, tmp_path: Path) -> None:
    folder = hunyuan_folder(tmp_path / "hunyuan")
    result = replayed(run, tmp_path, "hunyuan_a13b", {"token_ids": HUNYUAN}, "--model", folder, "--chunking", "token,2")
    assert (result["status"], result["tokenizer"]) == ("error", "model")
    assert (result["full"]["reasoning"], result["full"]["content"]) == ("Two", "4")
    by_token, by_two = result["stream"]
    assert (by_token["reasoning"], by_token["content"]) == ("Two", "4\n</answer>")
    assert by_two == {"chunking": "2", "deltas": 0, "error": "AssertionError"}
