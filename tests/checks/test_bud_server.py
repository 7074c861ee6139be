"""BUD310, 318, 319, 322, 324: whether the server reads the budget, by product, version, endpoint and place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonctl.budgets.config import parse_config
from reasonctl.budgets.facts import gather
from reasonctl.checks.bud import check_budget
from reasonctl.checks.finding import Finding
from reasonctl.parsers.target import Target, parse_target

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
OVERRIDE = "serve m --reasoning-parser qwen3 --override-generation-config '{\"thinking_token_budget\": 2000}'"


def found(rule: str, config: Any, *, dialect: str = "vllm", target: str | None = None, **how: Any) -> list[Finding]:
    """The findings of one rule for a configuration given as text or as what its JSON shall hold."""
    text = config if isinstance(config, str) else json.dumps(config)
    judged = parse_target(target) if target else Target("slimserve") if dialect == "slimserve" else Target()
    how.setdefault("limits", (12000,))
    facts = gather(parse_config(text, path="c"), dialect=dialect, target=judged, **how)  # type: ignore[arg-type]
    return [finding for finding in check_budget(facts) if finding.rule == rule]


@pytest.mark.parametrize(
    "config",
    [
        f"vllm {OVERRIDE}",
        "vllm serve m --override-generation-config.thinking_token_budget.medium 5",
        {"temperature": 0.5, "thinking_token_budget": 5},
        {"medium": 5},
        {"thinking_token_budget": 5},
    ],
)
def test_server_default_ignored(config: Any) -> None:
    (finding,) = found("BUD310", config)
    assert finding.severity == "error"
    assert "--target slimserve" in finding.hint
    assert found("BUD310", config, dialect="slimserve") == []
    assert len(found("BUD310", config, dialect="slimserve", target="vllm==0.33.0")) == 1


def test_no_server_default_nothing_ignored() -> None:
    assert found("BUD310", "vllm serve m --override-generation-config '{\"temperature\": 0}'") == []
    assert found("BUD310", CHAT | {"thinking_token_budget": 5}) == []
    assert found("BUD310", "5000", dialect="anthropic") == []


def test_the_models_own_generation_config_counts_for_a_serve_command() -> None:
    inherited = {"thinking_token_budget": {"low": 3, "medium": 4}}
    (finding,) = found("BUD310", "vllm serve m", inherited=inherited)
    assert finding.evidence["where"] == "the model's generation_config.json → thinking_token_budget"
    assert found("BUD310", "vllm serve m --generation-config vllm", inherited=inherited) == []
    (finding,) = found("BUD310", f"vllm {OVERRIDE}", inherited=inherited)
    assert finding.evidence["value"] == 2000
    facts = gather(
        parse_config("slimserve p --serve", path="c"),
        dialect="slimserve",
        target=Target("slimserve"),
        inherited=inherited,
        limits=(100,),
    )
    assert [row.resolution.cutoff for row in facts.rows] == [None, 4, 3, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"extra_body": {"thinking_token_budget": 5}}, "extra_body.thinking_token_budget"),
        ({"extra_args": {"thinking_token_budget": 5}}, "extra_args.thinking_token_budget"),
        ({"chat_template_kwargs": {"thinking_token_budget": 5}}, "chat_template_kwargs.thinking_token_budget"),
        ({"vllm_xargs": {"a": [{"thinking_token_budget": 5}]}}, "vllm_xargs.a.[0].thinking_token_budget"),
        ({"stop_sequences": [], "thinking_token_budget": 5}, "thinking_token_budget"),
    ],
)
def test_field_in_the_wrong_place(body: dict[str, Any], path: str) -> None:
    (finding,) = found("BUD318", CHAT | body)
    assert finding.severity == "error"
    assert finding.subject == {"key": path, "request": "#1"}


def test_the_anthropic_field_on_the_chat_endpoint_is_in_the_wrong_place() -> None:
    thinking = json.dumps(CHAT | {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 4096})
    (finding,) = found("BUD318", f"curl http://h/v1/chat/completions -d '{thinking}'")
    assert finding.subject["key"] == "thinking.budget_tokens"
    assert found("BUD318", f"curl http://h/v1/messages -d '{thinking}'") == []


def test_where_the_field_belongs_and_where_its_name_means_nothing() -> None:
    assert found("BUD318", CHAT | {"thinking_token_budget": 5}) == []
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"thinking_token_budget": {}}}}}
    assert found("BUD318", CHAT | {"tools": [tool]}) == []


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (
            "--default-chat-template-kwargs '{\"thinking_token_budget\": 5}'",
            "--default-chat-template-kwargs.thinking_token_budget",
        ),
        (
            '--override-generation-config \'{"extra_args": {"thinking_token_budget": 5}}\'',
            "--override-generation-config.extra_args.thinking_token_budget",
        ),
        ("--thinking-token-budget 5", "--thinking-token-budget"),
    ],
)
def test_flags_that_are_the_wrong_place(flags: str, key: str) -> None:
    (finding,) = found("BUD318", f"vllm serve m {flags}")
    assert finding.subject == {"key": key}
    assert found("BUD318", "vllm serve m --default-chat-template-kwargs '{\"enable_thinking\": true}'") == []


def test_bud319_the_responses_api_has_no_budget() -> None:
    (finding,) = found("BUD319", {"model": "m", "input": "hi", "thinking_token_budget": 512})
    assert finding.severity == "error"
    assert finding.evidence["endpoint"] == "responses"
    assert found("BUD319", {"model": "m", "input": "hi"}) == []
    assert found("BUD319", CHAT | {"thinking_token_budget": 512}) == []


def test_beam_search_ignores_budgets() -> None:
    assert len(found("BUD319", CHAT | {"thinking_token_budget": 512, "use_beam_search": True})) == 1
    assert found("BUD319", CHAT | {"thinking_token_budget": 512, "use_beam_search": False}) == []


@pytest.mark.parametrize(
    ("budget", "max_tokens", "fires"),
    [
        (1023, 4096, True),
        (1024, 4096, False),
        (4095, 4096, False),
        (4096, 4096, True),
        (9000, 4096, True),
        (-1, 4096, True),
    ],
)
def test_messages_wants_1024_and_less_than_max_tokens(budget: int, max_tokens: int, fires: bool) -> None:
    body = CHAT | {"max_tokens": max_tokens, "thinking": {"type": "enabled", "budget_tokens": budget}}
    hits = found("BUD319", body, dialect="anthropic")
    assert [finding.severity for finding in hits] == (["error"] if fires else [])
    hits = found("BUD319", str(budget), dialect="anthropic", limits=(max_tokens,))
    assert len(hits) == fires
    assert found("BUD306", body, dialect="anthropic") == []


@pytest.mark.parametrize("budget", [2048.0, "2048", 2048.5, "x", None, []])
def test_messages_converts_what_it_can(budget: Any) -> None:
    body = CHAT | {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": budget}}
    converted = budget in (2048.0, "2048")
    assert len(found("BUD304", body, dialect="anthropic")) == (not converted)
    assert found("BUD319", body, dialect="anthropic") == []
    assert found("BUD324", body, dialect="slimserve") == []


@pytest.mark.parametrize(
    ("body", "target", "fires"),
    [
        (CHAT, "vllm==0.18.0", True),
        (CHAT, "vllm==0.19.0", False),
        ({"prompt": "x", "model": "m"}, "vllm==0.21.0", True),
        ({"prompt": "x", "model": "m"}, "vllm==0.22.0", False),
        (CHAT, "vllm", False),
    ],
)
def test_bud322_versions_without_a_budget(body: dict[str, Any], target: str, fires: bool) -> None:
    hits = found("BUD322", body | {"thinking_token_budget": 64}, target=target)
    assert [(hit.severity, hit.confidence) for hit in hits] == ([("error", "medium")] if fires else [])
    assert found("BUD322", body, target=target) == []


@pytest.mark.parametrize(("target", "fires"), [("vllm==0.30.0", True), ("vllm==0.31.0", False)])
def test_messages_took_no_budget_before(target: str, fires: bool) -> None:
    body = CHAT | {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2048}}
    assert bool(found("BUD322", body, dialect="anthropic", target=target)) == fires


@pytest.mark.parametrize(
    ("env", "target", "fires"),
    [
        ("VLLM_USE_V2_MODEL_RUNNER=1 ", "vllm==0.23.0", True),
        ("VLLM_USE_V2_MODEL_RUNNER=1 ", "vllm==0.27.1", True),
        ("VLLM_USE_V2_MODEL_RUNNER=1 ", "vllm==0.28.0", False),
        ("VLLM_USE_V2_MODEL_RUNNER=0 ", "vllm==0.23.0", False),
        ("", "vllm==0.23.0", False),
        ("VLLM_USE_V2_MODEL_RUNNER=1 ", "slimserve", False),
    ],
)
def test_the_runner_that_refuses(env: str, target: str, fires: bool) -> None:
    request = parse_config(json.dumps(CHAT | {"thinking_token_budget": 64}), path="r").requests
    hits = found("BUD322", f"{env}vllm serve m --reasoning-parser qwen3", target=target, requests=request)
    assert bool(hits) == fires
    assert found("BUD322", f"{env}vllm serve m --reasoning-parser qwen3", target=target) == []


def test_null_differs() -> None:
    body = CHAT | {"thinking_token_budget": None}
    (finding,) = found("BUD324", body, dialect="slimserve")
    assert finding.severity == "warning"
    assert finding.location is not None
    assert finding.location.column == json.dumps(body).index("null") + 1
    assert found("BUD324", CHAT, dialect="slimserve") == []
    assert found("BUD324", body, dialect="vllm") == []
    assert found("BUD304", body, dialect="slimserve") == []
