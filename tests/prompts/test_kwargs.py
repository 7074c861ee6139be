"""The seven rules by which vLLM derives a request's chat-template kwargs."""

from __future__ import annotations

from typing import Any

import pytest

from reasonctl.prompts.kwargs import effective_kwargs, refused, template_kwargs, variant_kwargs, without_effect


def test_the_effort_field_beats_one_inside_the_kwargs() -> None:
    got = effective_kwargs(request_kwargs={"reasoning_effort": "low"}, reasoning_effort="high")
    assert got == {"reasoning_effort": "high", "enable_thinking": True}


def test_an_effort_inside_the_kwargs_implies_nothing() -> None:
    assert effective_kwargs(request_kwargs={"reasoning_effort": "none"}) == {"reasoning_effort": "none"}


@pytest.mark.parametrize(("effort", "thinks"), [("none", False), ("minimal", True), ("max", True)])
def test_the_field_implies_enable_thinking_and_never_thinking(effort: str, thinks: bool) -> None:
    got = effective_kwargs(request_kwargs={}, reasoning_effort=effort)
    assert got == {"reasoning_effort": effort, "enable_thinking": thinks}


@pytest.mark.parametrize("own", [True, False, None])
def test_an_enable_thinking_of_the_request_stays_even_as_null(own: bool | None) -> None:
    got = effective_kwargs(request_kwargs={"enable_thinking": own}, reasoning_effort="none")
    assert got == {"enable_thinking": own, "reasoning_effort": "none"}


@pytest.mark.parametrize("unset", [None, "auto"])
def test_null_and_auto_do_not_override_a_server_default(unset: str | None) -> None:
    got = effective_kwargs(request_kwargs={"enable_thinking": unset}, default_kwargs={"enable_thinking": False})
    assert got == {"enable_thinking": False}


def test_without_server_defaults_a_null_stays() -> None:
    assert effective_kwargs(request_kwargs={"thinking": None}) == {"thinking": None}


def test_what_the_field_implies_beats_the_server_default() -> None:
    got = effective_kwargs(
        request_kwargs={}, reasoning_effort="high", default_kwargs={"enable_thinking": False, "x": 1}
    )
    assert got == {"enable_thinking": True, "x": 1, "reasoning_effort": "high"}


def test_the_effort_map_applies_to_the_field_only() -> None:
    renamed = {"minimal": "none", "low": "high"}
    field = effective_kwargs(request_kwargs={}, reasoning_effort="minimal", effort_map=renamed)
    assert field == {"reasoning_effort": "none", "enable_thinking": False}
    inside = effective_kwargs(request_kwargs={"reasoning_effort": "low"}, effort_map=renamed)
    assert inside == {"reasoning_effort": "low"}


def test_the_template_gets_only_what_it_declares() -> None:
    effective = {"enable_thinking": False, "reasoning_effort": "none"}
    assert template_kwargs(effective, {"reasoning_effort", "tools"}) == {"reasoning_effort": "none"}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ({}, {}),
        ({"thinking": True}, {"thinking": True}),
        ({"reasoning_effort": "none"}, {"reasoning_effort": "none", "enable_thinking": False}),
    ],
)
def test_in_a_variant_the_effort_is_the_request_field(variant: dict[str, Any], expected: dict[str, Any]) -> None:
    assert variant_kwargs(variant) == expected


@pytest.mark.parametrize(
    ("kwargs", "names"),
    [
        ({"chat_template": "x", "messages": [], "enable_thinking": False}, ["chat_template", "messages"]),
        ({"chat_template": None, "messages": "auto"}, []),
        (
            {"self": 1, "tokenizer": 0, "model_config": {}, "conversation": []},
            ["conversation", "model_config", "self", "tokenizer"],
        ),
        ({"return_assistant_tokens_mask": True}, ["return_assistant_tokens_mask"]),
        ({"return_assistant_tokens_mask": False, "tools": [], "documents": []}, []),
    ],
)
def test_names_that_collide_with_vllms_own_arguments_are_refused(kwargs: dict[str, Any], names: list[str]) -> None:
    assert refused(kwargs) == names


def test_names_that_the_requests_own_fields_beat_have_no_effect() -> None:
    assert without_effect({"tokenize": True, "add_generation_prompt": None, "x": 1}) == [
        "add_generation_prompt",
        "tokenize",
    ]
