"""What `new-parser` writes, on real vLLMs: the battery and its own tests on both versions, and servers that load it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reasonctl.checks.plg_run import run_findings
from reasonctl.engine.lab import build_lab
from reasonctl.engine.lab_families import ANSWER, THINKING, family, spoken
from reasonctl.engine.server import Launch, VllmServer, engine_named
from reasonctl.kit.battery import run_battery
from reasonctl.kit.bench import BridgeBench
from reasonctl.kit.pytest_file import snippet
from reasonctl.kit.source import read_plugin_source
from reasonctl.kit.starting import Started, write_parser
from reasonctl.kit.subject import subject_of
from reasonctl.kit.traits import read_traits
from reasonctl.parsers import ROWS
from reasonctl.parsers.bridge.bridge import Bridge
from reasonctl.parsers.bridge.plugin import Plugin
from reasonctl.parsers.bridge.spec import parse_engine
from reasonctl.parsers.target import Target
from reasonctl.prompts.model import Model, load_model

from ..kit.styles import STYLES
from .driver import ENVIRONMENT

pytestmark = pytest.mark.vllm
PYTHON = ENVIRONMENT / "bin" / "python"
ENGINES = {"0.32.0": str(PYTHON), "0.33.0": f"{ENVIRONMENT / 'vllm-0.33.0'}:{PYTHON}"}
EXAMPLES = 150
TEST_RUNNER = ("pytest", "_pytest", "pluggy", "iniconfig", "py")
THOUGHT = "".join(spoken((THINKING,)))
SAID = "".join(spoken((ANSWER,)))


@dataclass(frozen=True)
class Written:
    """The models and the parsers for them, each under the name of its style; `together` holds them all."""

    models: dict[str, Model]
    started: dict[str, Started]
    together: Plugin


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("new")
    models = {name: load_model(make(folder / f"model-{name}")) for name, make in STYLES.items()}
    started = {name: write_parser(name, read_traits(model), folder / "parsers") for name, model in models.items()}
    texts = [one.plugin.read_text(encoding="utf-8") for one in started.values()]
    return Written(models, started, Plugin("all_reasoning_parsers.py", "\n\n".join(texts)))


@pytest.fixture(scope="module", params=ENGINES)
def bridge(request: pytest.FixtureRequest, written: Written) -> Iterator[Bridge]:
    with Bridge(parse_engine(ENGINES[request.param]), plugin=written.together) as bridge:
        assert bridge.plugin_problem is None
        assert bridge.described["vllm_version"] == request.param
        yield bridge


@pytest.mark.parametrize("style", STYLES)
def test_the_battery_passes(bridge: Bridge, written: Written, style: str) -> None:
    subject = subject_of(read_plugin_source(written.started[style].plugin), style)
    setting = subject.setting(written.models[style], bridge.target or Target())
    assert (setting.problem, setting.origin) == (None, "model")
    bench = BridgeBench(bridge, style, setting.vocabulary)
    battery = run_battery(bench, setting, bridge.described, examples=EXAMPLES)
    assert run_findings(battery, subject, snippet=snippet) == []
    assert (battery.failed, battery.lost, dict(battery.generated.failing), battery.shared) == ([], [], {}, ())
    assert len(battery.outcomes) > 30


@pytest.mark.parametrize("version", ENGINES)
def test_its_own_tests_pass(version: str, written: Written, tmp_path: Path) -> None:
    """With vLLM's Python, which has no pytest of its own here."""
    for name in TEST_RUNNER:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        found = Path(spec.origin)
        found = found.parent if found.name == "__init__.py" else found
        (tmp_path / found.name).symlink_to(found)
    path = [str(ENVIRONMENT / f"vllm-{version}"), str(tmp_path)]
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(one.tests for one in written.started.values())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "VLLM_LOGGING_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
    assert " failed" not in done.stdout


@dataclass(frozen=True)
class Spoken:
    """What a lab model says: reasoning and content with thinking on, and the kwargs of that; content with it off."""

    reasoning: str
    content: str
    on: dict[str, Any]
    off: dict[str, Any] | None = None
    like: str | None = None


LABS = {
    # The prompt opens the block, a switch closes it.
    "qwen3": Spoken(THOUGHT, f"\n\n{SAID}", {}, {"enable_thinking": False}),
    # Several tokens a marker.
    "plamo3": Spoken(THOUGHT, SAID, {}, {"enable_thinking": False}),
    # The model opens the block itself, with tokens that are not special.
    "deepseek_r1": Spoken(f"\n{THOUGHT}", f"\n\n{SAID}", {}, {"enable_thinking": False}),
    # Special tokens.
    "mistral": Spoken(THOUGHT, SAID, {}),
    # A tool call ends the block.
    "glm45": Spoken(
        THOUGHT,
        "<tool_call>weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>",
        {},
        like="glm45",
    ),
}


@pytest.mark.parametrize("lab", LABS)
def test_a_server_loads_it_and_splits_rightly(lab: str, tmp_path: Path) -> None:
    wanted = LABS[lab]
    build_lab(tmp_path / "model", lab)
    row = ROWS[wanted.like] if wanted.like is not None else None
    made = write_parser("new_lab", read_traits(load_model(str(tmp_path / "model")), like=row), tmp_path)
    launch = Launch(
        engine_named(str(PYTHON)),
        tmp_path / "model",
        "lab",
        "new_lab",
        tmp_path / "server.log",
        arguments=("--reasoning-parser-plugin", str(made.plugin), *family(lab).arguments),
    )
    with VllmServer(launch) as server:
        on = (wanted.reasoning, wanted.content)
        assert asked(server.url, wanted.on) == on
        assert streamed(server.url, wanted.on) == on
        assert asked(server.url, wanted.on, max_tokens=20)[1] is None
        budgeted = asked(server.url, wanted.on, thinking_token_budget=9)
        assert budgeted[0] is not None
        assert len(budgeted[0]) < len(wanted.reasoning)
        if wanted.off is not None:
            off = asked(server.url, wanted.off)
            assert off[0] is None
            assert off[1] is not None
            assert off[1].strip() == SAID.strip()
            assert streamed(server.url, wanted.off) == off


def body(kwargs: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": "What is 2 + 2?"}]
    return {"model": "lab", "messages": messages, "temperature": 0, "chat_template_kwargs": kwargs, **more}


def asked(url: str, kwargs: dict[str, Any], **more: Any) -> tuple[str | None, str | None]:
    answer = httpx.post(f"{url}/v1/chat/completions", json=body(kwargs, more), timeout=120)
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    return message["reasoning"], message["content"]


def streamed(url: str, kwargs: dict[str, Any], **more: Any) -> tuple[str | None, str | None]:
    reasoning, content = [], []
    more["stream"] = True
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body(kwargs, more), timeout=120) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    reasoning.append(choice["delta"].get("reasoning") or "")
                    content.append(choice["delta"].get("content") or "")
    return "".join(reasoning) or None, "".join(content) or None
