"""SRV214 and SRV215: each value as vLLM's own argument parser takes or refuses it (0.32.0 and 0.33.0)."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.checks.facts import AuditFacts
from reasonctl.checks.finding import Finding
from reasonctl.checks.fit_setup import ParserMissing, ParserUnknown
from reasonctl.checks.srv_flags import DefaultKwargUnread, PluginNotLoaded, ToolFlagsIncomplete
from reasonctl.checks.srv_values import ToolParserUnknown, ValueRefused
from reasonctl.serve.plugin import PluginFile

from .test_srv import facts as known


def facts(text: str, version: str = "0.33.0", **more: Any) -> AuditFacts:
    return known(text, version=version, forgiving=True, **more)


def values(flags: str, version: str = "0.33.0") -> list[Finding]:
    return list(ValueRefused.check(facts(f"vllm serve m {flags}", version)))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--enable-auto-tool-choice=true --tool-call-parser hermes", "takes no value"),
        ("--enable-chunked-prefill=False", "takes no value"),
        ("--no-enable-prefix-caching=true", "takes no value"),
        ("--headless=1", "takes no value"),
        ("--enable-auto-tool-choice true --tool-call-parser hermes", "'true' behind --enable-auto-tool-choice"),
        ('--reasoning-effort-map \'{"hi": "xhigh"}\'', "maps 'hi', which is no effort"),
        ("--reasoning-effort-map '{\"high\": 1}'", "must map reasoning efforts to strings"),
        ("--reasoning-effort-map x", "not JSON"),
        ("--reasoning-effort-map '[1]'", "takes a JSON object"),
        ('--reasoning-config \'{"think_start_str": "<think>"}\'', "has no key 'think_start_str'"),
        ("--reasoning-config.think_start_str x", "has no key 'think_start_str'"),
        ("--structured-outputs-config '{\"nonsense\": 1}'", "has no key 'nonsense'"),
        ("--default-chat-template-kwargs \"{'a': 1}\"", "not JSON"),
        ("--max-model-len lots", "takes a positive number"),
        ("--port 1 --reasoning-parser", "--reasoning-parser has no value"),
        ("--reasoning-pars x", "vLLM refuses it"),
    ],
)
def test_srv214_what_vllm_refuses(flags: str, message: str) -> None:
    (finding,) = values(flags)
    assert message in finding.message
    assert (finding.severity, finding.confidence) == ("error", "high")
    assert finding.location is not None and finding.location.path == "s.sh"


@pytest.mark.parametrize(
    "flags",
    [
        "--enable-auto-tool-choice --tool-call-parser hermes --no-enable-prefix-caching -tp=2 -dp 2",
        '--reasoning-effort-map \'{"high": "xhigh", "none": "off"}\'',
        "--reasoning-effort-map.high x",
        '--reasoning-config \'{"reasoning_start_str": "<a>", "reasoning_end_str": "</a>", "reasoning_parser": "p"}\'',
        "--structured-outputs-config.backend xgrammar --structured-outputs-config.enable_in_reasoning true",
        "--hf-token=abc --trust-remote-code",
        "--speculative-config '{\"nonsense\": 1}' --max-model-len auto",
        "--default-chat-template-kwargs '{\"a\": true}' --reasoning-parser $P --reasoning-config $C",
    ],
)
def test_srv214_is_silent_about_what_vllm_takes(flags: str) -> None:
    assert values(flags) == []


def test_srv214_knows_the_releases() -> None:
    assert values("--enable-chunked-prefill=False", "0.8.5") == []
    assert len(values("--enable-auto-tool-choice=true", "0.8.5")) == 1
    assert values('--reasoning-effort-map \'{"hi": "x"}\'', "0.32.0") == []  # SRV201: there is no such flag
    assert values('--reasoning-config \'{"think_start_str": "x"}\'', "0.25.0") == []


def test_srv214_a_key_given_twice_starts() -> None:
    (finding,) = values('--default-chat-template-kwargs \'{"a": 1, "a": 2}\'')
    assert finding.severity == "warning"


TOOLS = "vllm serve m --enable-auto-tool-choice --tool-call-parser "


def tools(text: str, version: str = "0.33.0", **more: Any) -> list[Finding]:
    return list(ToolParserUnknown.check(facts(text, version, **more)))


def test_srv215_names_and_releases() -> None:
    (finding,) = tools(f"{TOOLS}herms")
    assert "no tool parser 'herms'" in finding.message
    assert "hermes" in finding.hint
    (early,) = tools(f"{TOOLS}apertus", "0.21.0")
    assert "0.22 and later" in early.hint
    assert (
        tools(f"{TOOLS}hermes")
        == tools(f"{TOOLS}apertus", "0.22.0")
        == tools("vllm serve m --tool-call-parser x")
        == []
    )


def test_srv215_leaves_plugins_alone() -> None:
    text = f"{TOOLS}mine --tool-parser-plugin p.py"
    assert tools(text, tool_plugin=PluginFile("p.py")) == []
    assert tools(text, tool_plugin=PluginFile("p.py", ("mine",), certain=True)) == []
    (finding,) = tools(text, tool_plugin=PluginFile("p.py", ("yours",), certain=True))
    assert finding.hint == "p.py registers yours"


def test_fit102_and_srv202_are_one_finding() -> None:
    text = "vllm serve m --headless --reasoning-parser-plugin p.py --reasoning-parser wholly_mine"
    given = facts(text, "0.29.0", unknown="near")
    assert len(list(PluginNotLoaded.check(given))) == 1
    assert list(ParserUnknown.check(given)) == []
    assert (
        len(list(ParserUnknown.check(facts("vllm serve m --reasoning-parser qwen-3", "0.29.0", unknown="near")))) == 1
    )


def missing(text: str, version: str = "0.33.0") -> list[Finding]:
    return list(ParserMissing.check(facts(text, version, mode="none")))


def test_what_the_shell_may_add_is_not_missing_for_sure() -> None:
    for flags in ("--enable-auto-tool-choice", "--tool-call-parser hermes"):
        (plain,) = ToolFlagsIncomplete.check(facts(f"vllm serve m {flags}"))
        (unknown,) = ToolFlagsIncomplete.check(facts(f'vllm serve m {flags} "$@"'))
        assert (plain.confidence, unknown.confidence) == ("high", "low")


def test_fit101_where_a_parser_is_not_in_force_and_where_nobody_is_answered() -> None:
    (idle,) = missing("vllm serve m --reasoning-parser deepseek_r1", "0.8.5")
    assert "without --enable-reasoning" in idle.message
    assert missing("vllm serve m --headless") == []
    (plain,) = missing("vllm serve m")
    assert plain.confidence == "medium"
    (unknown,) = missing('vllm serve m "$@"')
    assert (unknown.confidence, "unless $@ names one" in unknown.message) == ("low", True)


def test_srv207_does_not_advise_a_key_that_stands_there() -> None:
    text = 'vllm serve m --default-chat-template-kwargs \'{"enable_thinking": false, "thinking": false}\''
    (finding,) = DefaultKwargUnread.check(facts(text))
    assert finding.hint == "take it away: enable_thinking, which the template reads, stands beside it"
