"""SRV rules: each fires on a serve command that has the fault, and stays silent on its neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reasonctl.checks.facts import AuditFacts, Gate, SentRequest, ServerFacts
from reasonctl.checks.finding import Finding, Location
from reasonctl.checks.fit_mode import MistralTokenizerMode
from reasonctl.checks.srv import ROOMS
from reasonctl.checks.srv_client import ClientReadsOldField
from reasonctl.checks.srv_flags import (
    DefaultKwargUnread,
    ParserOnlyInStructuredOutputsConfig,
    ParserPairRefused,
    PluginNotLoaded,
    RemovedFlag,
    TemplateOverridden,
    ToolFlagsIncomplete,
    WrapperIgnored,
)
from reasonctl.checks.srv_grammar import (
    EndpointUnconstrained,
    GrammarFromFirstToken,
    GrammarInReasoning,
    GrammarNeverStarts,
)
from reasonctl.parsers.target import parse_target
from reasonctl.serve.command import ServeCommand
from reasonctl.serve.read import servers_in

from .models import OPEN_SWITCH, chatml, lone

HYBRID = chatml(OPEN_SWITCH)
_KNOWN: dict[tuple[str, str | None], AuditFacts] = {}


def facts(
    text: str,
    template: str = HYBRID,
    *,
    version: str | None = None,
    path: str = "s.sh",
    forgiving: bool = False,
    **more: Any,
) -> AuditFacts:
    """What an audit of this serve command knows."""
    (command,) = servers_in(text, path=path, forgiving=forgiving)
    assert isinstance(command, ServeCommand)
    parser = command.reasoning_parser
    if (template, parser) not in _KNOWN:
        _KNOWN[template, parser] = lone(template, parser).facts
    known = _KNOWN[template, parser]
    server = ServerFacts(
        name=command.name,
        location=command.location,
        reasoning_parser=parser,
        reasoning_parser_at=command.place("reasoning-parser"),
        tools=command.enable_auto_tool_choice,
        default_kwargs=command.default_chat_template_kwargs or {},
        command=command,
    )
    target = parse_target(f"vllm=={version}") if version else command.target or known.target
    return replace(known, server=server, target=target, configured=parser, **more)


def found(rule: Any, given: AuditFacts) -> list[Finding]:
    return list(rule.check(given))


def one(rule: Any, given: AuditFacts) -> Finding:
    (finding,) = found(rule, given)
    return finding


def test_the_family_is_whole() -> None:
    assert len(ROOMS) == 4


@pytest.mark.parametrize(
    ("flag", "version", "message", "hint"),
    [
        ("--enable-reasoning", "0.33.0", "removed in 0.10", "take it away"),
        ("--guided-decoding-backend xgrammar", "0.30.0", "removed in 0.11", "--structured-outputs-config.backend"),
        ("--reasoning-effort-map '{}'", "0.32.0", "it came with 0.33", "use vLLM 0.33"),
        ("--default-chat-template-kwargs.a 1", "0.13.0", "it came with", "or take it away"),
        ("--reasoning-praser qwen3", "0.33.0", "no release from 0.7 to 0.33 knows it", "--reasoning-parser"),
    ],
)
def test_srv201_names_the_release(flag: str, version: str, message: str, hint: str) -> None:
    finding = one(RemovedFlag, facts(f"vllm serve m {flag}", version=version))
    assert (finding.severity, finding.confidence) == ("error", "high")
    assert message in finding.message
    assert hint in finding.hint
    assert finding.location == Location("s.sh", 1, 14)


@pytest.mark.parametrize(
    ("flag", "version"),
    [
        ("--enable-reasoning", "0.9.2"),
        ("--no-enable-prefix-caching --enable-log-requests --structured-outputs-config.backend x", "0.33.0"),
        ("--reasoning-parser qwen3 -tp 2 --port 1 --no-enable-auto-tool-choice --disable-log-stats", "0.33.0"),
        ("--reasoning-effort-map '{}'", "0.33.0"),
        ("--task generate", "0.12.0"),
    ],
)
def test_srv201_is_silent_where_the_release_has_the_flag(flag: str, version: str) -> None:
    assert found(RemovedFlag, facts(f"vllm serve m {flag}", version=version)) == []


def test_srv202_headless_and_missing_plugins_before_030() -> None:
    headless = "vllm serve m --headless --reasoning-parser-plugin p.py --reasoning-parser wholly_mine"
    assert "headless" in one(PluginNotLoaded, facts(headless, version="0.29.0")).message
    assert found(PluginNotLoaded, facts(headless, version="0.30.0")) == []
    bare = "vllm serve m --reasoning-parser wholly_mine"
    assert "no plugin is loaded" in one(PluginNotLoaded, facts(bare, version="0.29.0")).message
    assert found(PluginNotLoaded, facts(bare, version="0.33.0")) == []
    assert found(PluginNotLoaded, facts(headless.replace("--headless ", ""), version="0.29.0")) == []
    assert found(PluginNotLoaded, facts("vllm serve m --reasoning-parser qwen3", version="0.29.0")) == []


def test_srv205_tool_flags() -> None:
    alone = one(ToolFlagsIncomplete, facts("vllm serve m --enable-auto-tool-choice"))
    assert (alone.severity, alone.location) == ("error", Location("s.sh", 1, 14))
    assert one(ToolFlagsIncomplete, facts("vllm serve m --tool-call-parser hermes")).severity == "warning"
    assert found(ToolFlagsIncomplete, facts("vllm serve m --tool-call-parser hermes --enable-auto-tool-choice")) == []
    assert found(ToolFlagsIncomplete, facts("vllm serve m")) == []


def test_srv206_is_an_error_where_a_budget_is_used() -> None:
    text = "vllm serve m --structured-outputs-config.reasoning_parser qwen3"
    assert one(ParserOnlyInStructuredOutputsConfig, facts(text)).severity == "warning"
    sent = (SentRequest("r1", Location("r.json", 1, 1), budget=64),)
    assert one(ParserOnlyInStructuredOutputsConfig, facts(text, requests=sent)).severity == "error"
    assert found(ParserOnlyInStructuredOutputsConfig, facts(f"{text} --reasoning-parser qwen3")) == []
    assert found(ParserOnlyInStructuredOutputsConfig, facts("vllm serve m")) == []


def test_srv207_points_at_the_key() -> None:
    finding = one(DefaultKwargUnread, facts("vllm serve m --default-chat-template-kwargs '{\"thinking\": false}'"))
    assert "does not read thinking" in finding.message
    assert "enable_thinking" in finding.hint
    assert finding.location == Location("s.sh", 1, 47)
    good = "vllm serve m --default-chat-template-kwargs '{\"enable_thinking\": false}'"
    assert found(DefaultKwargUnread, facts(good)) == []


def test_srv209_and_srv210() -> None:
    assert one(TemplateOverridden, facts("vllm serve m --chat-template t.jinja")).severity == "info"
    assert found(TemplateOverridden, facts("vllm serve m")) == []
    pair = "vllm serve m --reasoning-parser hf --enable-auto-tool-choice --tool-call-parser hermes"
    assert "cannot be combined" in one(ParserPairRefused, facts(pair, version="0.33.0")).message
    assert found(ParserPairRefused, facts(pair.replace("hermes", "hf"), version="0.33.0")) == []
    assert found(ParserPairRefused, facts(pair.replace("--enable-auto-tool-choice ", ""))) == []
    assert found(ParserPairRefused, facts(pair.replace("parser hf", "parser qwen3"))) == []


def test_srv213_names_the_variable() -> None:
    compose = (
        "services:\n  a:\n    image: 1.dkr.ecr.eu-west-1.amazonaws.com/vllm:0.20.0-gpu\n    environment:\n"
        "      SM_VLLM_MODEL: m\n      OPTION_REASONING_PARSER: qwen3\n"
    )
    finding = one(WrapperIgnored, facts(compose, path="compose.yaml"))
    assert "OPTION_REASONING_PARSER" in finding.message
    assert finding.location is not None and finding.location.line == 6
    assert found(WrapperIgnored, facts(compose.replace("OPTION_", "SM_VLLM_"), path="compose.yaml")) == []


def gate(
    ended: bool, *, thinks: bool, variant: Mapping[str, Any] | None = None, conversation: str = "single_turn"
) -> Gate:
    return Gate(conversation, variant or {}, thinks, ended, "…", "asked")


def json_request(**more: Any) -> SentRequest:
    at = Location("r.json", 1, 20)
    return SentRequest("r1", Location("r.json", 1, 1), structured_at=at, structured_by="response_format", **more)


OFF = {"enable_thinking": False}


def test_srv203_where_the_parser_does_not_read_an_off_prompt_as_ended() -> None:
    text = "vllm serve m --reasoning-parser qwen3"
    stuck = (gate(False, thinks=False, variant=OFF), gate(False, thinks=True))
    assert one(GrammarNeverStarts, facts(text, gates=stuck)).severity == "warning"
    sent = (json_request(kwargs=OFF),)
    finding = one(GrammarNeverStarts, facts(text, gates=stuck, requests=sent))
    assert (finding.severity, finding.location) == ("error", Location("r.json", 1, 20))
    assert found(GrammarNeverStarts, facts(text, gates=stuck, requests=(json_request(),))) == []
    read = (gate(True, thinks=False, variant=OFF), gate(False, thinks=True))
    assert found(GrammarNeverStarts, facts(text, gates=read, requests=sent)) == []
    inside = f"{text} --structured-outputs-config.enable_in_reasoning true"
    assert found(GrammarNeverStarts, facts(inside, gates=stuck, requests=sent)) == []


def test_srv204_without_a_parser_with_hidden_reasoning_and_with_history() -> None:
    sent = (json_request(),)
    assert "add --reasoning-parser" in one(GrammarFromFirstToken, facts("vllm serve m", requests=sent)).hint
    text = "vllm serve m --reasoning-parser qwen3"
    open_gate = (gate(False, thinks=True),)
    assert found(GrammarFromFirstToken, facts(text, gates=open_gate, requests=sent)) == []
    hidden = (json_request(include_reasoning=False),)
    assert "include_reasoning" in one(GrammarFromFirstToken, facts(text, gates=open_gate, requests=hidden)).message
    assert found(GrammarFromFirstToken, facts(text, gates=open_gate, requests=hidden, version="0.15.0")) == []
    read = (gate(True, thinks=True),)
    assert "reads the prompt" in one(GrammarFromFirstToken, facts(text, gates=read, requests=sent)).message
    off = (json_request(kwargs=OFF),)
    assert found(GrammarFromFirstToken, facts("vllm serve m", requests=off)) == []
    assert found(GrammarFromFirstToken, facts("vllm serve m", chatml(), requests=sent)) == []


def test_srv211_and_srv212() -> None:
    text = "vllm serve m --reasoning-parser qwen3 --structured-outputs-config.enable_in_reasoning=true"
    assert one(GrammarInReasoning, facts(text)).location == Location("s.sh", 1, 39)
    assert found(GrammarInReasoning, facts(text.replace("=true", "=false"))) == []
    assert found(GrammarInReasoning, facts(text, chatml())) == []
    sent = (json_request(endpoint="responses"),)
    assert one(EndpointUnconstrained, facts("vllm serve m --reasoning-parser qwen3", requests=sent)).severity == "info"
    assert found(EndpointUnconstrained, facts("vllm serve m", requests=(json_request(),))) == []


def test_srv208_by_release(tmp_path: Any) -> None:
    from reasonctl.checks.clients import read_clients

    client = tmp_path / "client.py"
    client.write_text("def go(r):\n    return r.choices[0].message.reasoning_content\n")
    clients = read_clients([str(client)])
    text = "vllm serve m --reasoning-parser qwen3"
    finding = one(ClientReadsOldField, facts(text, clients=clients, version="0.17.1"))
    assert (finding.severity, finding.confidence) == ("error", "high")
    assert finding.location is not None and (finding.location.line, finding.location.column) == (2, 33)
    assert found(ClientReadsOldField, facts(text, clients=clients, version="0.15.1")) == []
    assert found(ClientReadsOldField, facts(text, clients=(), version="0.17.1")) == []


def test_fit116_without_mistral_commons_tokenizer() -> None:
    text = "vllm serve m --reasoning-parser mistral"
    finding = one(MistralTokenizerMode, facts(text))
    assert (finding.severity, finding.location) == ("warning", Location("s.sh", 1, 14))
    assert "--tokenizer-mode auto" in finding.message
    assert found(MistralTokenizerMode, facts(f"{text} --tokenizer-mode mistral")) == []
    assert len(found(MistralTokenizerMode, facts(f"{text} --tokenizer-mode hf"))) == 1
    assert found(MistralTokenizerMode, facts("vllm serve m --reasoning-parser qwen3")) == []
