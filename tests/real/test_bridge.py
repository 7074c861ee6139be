"""The bridge over the real vLLM: what its own parsers give is what the models give, and nothing a parser does is worse
than one lost result.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasonctl.checks.audit import audit
from reasonctl.fixtures import ROOT
from reasonctl.parsers.assumed import AssumedVocabulary
from reasonctl.parsers.base import Vocabulary
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.engines import BuiltinEngine, ParserEngine
from reasonctl.parsers.feed import parse_chunkings
from reasonctl.parsers.run import Output, ParserRun
from reasonctl.prompts.model import load_model
from reasonctl.traces.context import Context, Setting
from reasonctl.traces.read import read_traces
from reasonctl.traces.trace import Trace

from ..parsers.fake_vllm import UNRULY
from .driver import ENVIRONMENT

pytestmark = pytest.mark.vllm

CHUNKINGS = parse_chunkings("token,3,whole,holdback:5")
MODELS = sorted(path.name for path in (ROOT / "models").iterdir() if path.is_dir())
OLDER = ("gpt-oss", "qwen3-thinking")
"""Those that 0.32.0 is asked about too; the differential suite asks about everything else."""
OUTPUTS = (
    "Let me see.\n</think>\n\nIt is 4.",
    "<think>Let me see.</think>It is 4, été 🙂.",
    '<think>hm</think><tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>',
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>It is 4.",
)
PROMPTS = (None, "<|im_start|>assistant\n<think>\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n")


def value(version: str) -> str:
    overlay = ENVIRONMENT / f"vllm-{version}"
    return f"{overlay}:{ENVIRONMENT}" if overlay.exists() else str(ENVIRONMENT)


@pytest.fixture(scope="module", params=["0.33.0", "0.32.0"])
def bridge(request: pytest.FixtureRequest) -> Iterator[Bridge]:
    with Bridge(parse_engine(value(request.param))) as opened:
        assert opened.described["vllm_version"] == request.param
        yield opened


def outcome(engine: ParserEngine, name: str, vocabulary: Vocabulary, output: Output, **kwargs: Any) -> ParserRun | str:
    """What came out; of an error its class alone, since words may differ, and of what cannot be run that it cannot."""
    run = engine.run(name, vocabulary, kwargs, output, chunkings=CHUNKINGS)
    assert run.lost is None
    if run.unsupported is not None:
        return "unsupported"
    return replace(run, error=run.error.partition(":")[0] if run.error is not None else None)


def differing(bridge: Bridge, vocabulary: Vocabulary, outputs: Iterator[Output], **kwargs: Any) -> list[Any]:
    assert bridge.target is not None
    builtin = BuiltinEngine(bridge.target)
    found = []
    for output in outputs:
        for name in bridge.names():
            ours, theirs = (outcome(engine, name, vocabulary, output, **kwargs) for engine in (builtin, bridge))
            # A package that is missing on one side only says nothing about the parsers.
            missing = ours == "unsupported" or (isinstance(theirs, ParserRun) and theirs.error == "ImportError")
            if ours != theirs and not missing:
                found.append((name, output.pieces().text, ours, theirs))
    return found


@pytest.mark.parametrize("model", MODELS)
def test_every_parser_gives_what_its_model_gives_on_the_shipped_tokenizers(bridge: Bridge, model: str) -> None:
    outputs = OUTPUTS if bridge.described["vllm_version"] == "0.33.0" or model in OLDER else OUTPUTS[:1]
    loaded = load_model(f"fixture:{model}")
    vocabulary = loaded.tokenizer
    assert vocabulary is not None
    asked = (
        Output(
            vocabulary,
            ids=(*vocabulary.encode(text), *sorted(loaded.eos_ids)[:1]),
            prompt_ids=None if prompt is None else vocabulary.encode(prompt),
            stop_ids=loaded.eos_ids,
        )
        for text in outputs
        for prompt in PROMPTS
    )
    assert differing(bridge, vocabulary, asked) == []


@pytest.mark.parametrize("kwargs", [{}, {"enable_thinking": False}, {"thinking": True}])
def test_every_parser_gives_what_its_model_gives_on_the_assumed_tokenizer(
    bridge: Bridge, kwargs: dict[str, Any]
) -> None:
    vocabulary = AssumedVocabulary()
    outputs = (
        Output(vocabulary, text=text, prompt_ids=None if prompt is None else vocabulary.encode(prompt))
        for text in OUTPUTS
        for prompt in PROMPTS
    )
    assert differing(bridge, vocabulary, outputs, **kwargs) == []


@pytest.mark.parametrize("model", [None, "fixture:qwen3-thinking"])
def test_every_parser_gives_what_its_model_gives_on_the_shipped_traces(bridge: Bridge, model: str | None) -> None:
    with Context(Setting(model=model)) as context:
        for file in sorted((ROOT / "traces").iterdir()):
            for trace in read_traces(str(file)):
                assert isinstance(trace, Trace)
                prepared = context.prepare(trace)
                assert differing(bridge, prepared.vocabulary, iter([prepared.output])) == []


def test_the_tokenizer_is_checked_with_the_transformers_of_that_vllm(bridge: Bridge, tmp_path: Path) -> None:
    """transformers 5.19 drops every space of this folder's tokenizer; ours, 5.24 or later, does not (TPL014)."""
    folder = tmp_path / "model"
    shutil.copytree(ROOT / "models" / "deepseek-r1", folder)
    for name, change in (
        ("tokenizer_config.json", {"tokenizer_class": "LlamaTokenizerFast"}),
        ("config.json", {"model_type": "llama"}),
    ):
        value = json.loads((folder / name).read_text(encoding="utf-8")) | change
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    assert bridge.target is not None
    engines = (BuiltinEngine(bridge.target), bridge)
    ours, theirs = (
        audit(load_model(str(folder)), source="m", parser=None, target=bridge.target, engine=engine).tokenizer_faults
        for engine in engines
    )
    assert ours == ()
    assert [fault.evidence for fault in theirs] == [
        {
            "loader": "transformers 5.19.0",
            "class": "LlamaTokenizer",
            "text": "It is 4, I think. So the answer  is four.",
            "given_back": "Itis4,Ithink.Sotheanswerisfour.",
        }
    ]


def test_whatever_a_plugin_does_costs_one_result_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "unruly.py").write_text(UNRULY, encoding="utf-8")
    serve = tmp_path / "serve.sh"
    serve.write_text("vllm serve m --reasoning-parser unruly --reasoning-parser-plugin unruly.py\n", encoding="utf-8")
    words = ("daemon", "hang", "kill", "orphan", "exit", "segv", "chatter", "pids", "raise", "fork", "last")
    traces = tmp_path / "t.jsonl"
    lines = (json.dumps({"id": word, "output": {"text": f"|{word}|"}}) + "\n" for word in words)
    traces.write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "reasonctl", "replay", str(traces), "--serve", str(serve), "--format", "json"]
    done = subprocess.run(
        [*command, "--parser", "unruly", "--parser", "qwen3", "--vllm", value("0.33.0")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "REASONCTL_VLLM_SECONDS": "6"},
    )
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    lost = {f["subject"]["trace"]: f["message"] for f in report["findings"] if f["rule"] == "INT904"}
    assert lost == {
        "hang": "no answer within 6 s",
        "kill": "it was ended by SIGKILL",
        "exit": "its process ended with status 7",
        "segv": "its process was ended by SIGSEGV",
    }
    results = {(row["trace"], row["parser"]): row for row in report["facts"]["results"]}
    assert len(results) == 2 * len(words)
    assert all(results[word, "qwen3"]["full"]["reasoning"] == f"|{word}|" for word in words)
    said = {word: results[word, "unruly"]["full"].get("reasoning") for word in words}
    assert [said[word] for word in ("chatter", "fork", "last")] == ["|chatter|", "|fork|", "|last|"]
    for pid in (said["daemon"], said["orphan"], *said["pids"].split()):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
