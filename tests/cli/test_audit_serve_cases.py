"""Faults of a deployment in other spellings and other files, and beside the version where they begin or end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = "audit"
Run = Callable[..., tuple[int, str, str]]


def found(run: Run, *arguments: str) -> dict[str, str]:
    """Severity by rule."""
    _, out, _ = run(*arguments, "--format", "json")
    return {finding["rule"]: finding["severity"] for finding in json.loads(out)["findings"]}


def manifest(flags: str, image: str = "vllm/vllm-openai:latest") -> str:
    items = ", ".join(json.dumps(flag) for flag in flags.split())
    return (
        "kind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: c, "
        f"image: '{image}', args: [m, {items}]}}]}}}}}}\n"
    )


FORMS: dict[str, Callable[[str], str]] = {
    "run.sh": lambda flags: f"vllm serve m \\\n  {flags}\n",
    "api.sh": lambda flags: f"exec python3 -m vllm.entrypoints.openai.api_server --model m {flags}\n",
    "compose.yaml": lambda flags: f"services:\n  a:\n    image: vllm/vllm-openai:latest\n    command: m {flags}\n",
    "deploy.yaml": manifest,
    "vllm.service": lambda flags: f"[Service]\nExecStart=/usr/bin/vllm serve m {flags}\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", ["--reasoning-parser seed_oss", "--reasoning_parser=seed_oss"])
def test_a_parser_of_other_markers_in_every_form_and_spelling(
    run: Run, tmp_path: Path, form: str, spelling: str
) -> None:
    path = tmp_path / form
    path.write_text(FORMS[form](spelling))
    rules = found(run, "--serve", str(path), "--model", "fixture:qwen3")
    assert rules["FIT105"] == "error"
    path.write_text(FORMS[form](spelling.replace("seed_oss", "qwen3")))
    assert "error" not in found(run, "--serve", str(path), "--model", "fixture:qwen3").values()


@pytest.mark.parametrize(
    ("version", "fires"), [("0.10.0", True), ("0.16.0", True), ("0.17.0", False), ("0.33.0", False)]
)
@pytest.mark.parametrize("given", ["target", "image"])
def test_a_parser_that_wanted_both_markers_up_to_016(
    run: Run, tmp_path: Path, version: str, fires: bool, given: str
) -> None:
    path = tmp_path / "deploy.yaml"
    image = f"vllm/vllm-openai:v{version}" if given == "image" else "vllm/vllm-openai:latest"
    path.write_text(manifest("--reasoning-parser qwen3", image))
    target = ("--target", f"vllm=={version}") if given == "target" else ()
    rules = found(run, "--serve", str(path), "--model", "fixture:qwen3-thinking", *target)
    assert ("FIT104" in rules) is fires


@pytest.mark.parametrize(
    ("body", "flags", "fires"),
    [
        ({"response_format": {"type": "json_object"}}, "", True),
        ({"structured_outputs": {"regex": "a+"}}, "", True),
        ({"response_format": {"type": "text"}}, "", False),
        ({"response_format": {"type": "json_object"}}, "--reasoning-parser qwen3", False),
        (
            {"response_format": {"type": "json_object"}, "include_reasoning": False},
            "--reasoning-parser qwen3",
            True,
        ),
        (
            {"response_format": {"type": "json_object"}, "chat_template_kwargs": {"enable_thinking": False}},
            "",
            False,
        ),
    ],
)
def test_a_grammar_from_the_first_token(
    run: Run, tmp_path: Path, body: dict[str, Any], flags: str, fires: bool
) -> None:
    request = tmp_path / "r.json"
    request.write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}))
    rules = found(run, "--serve", f"vllm serve m {flags}", "--model", "fixture:qwen3", "--requests", str(request))
    assert ("SRV204" in rules) is fires


@pytest.mark.parametrize(
    ("kwargs", "fires"), [({"enable_thinking": True}, True), ({"thinking": True}, False), ({}, False)]
)
def test_a_switch_of_another_name_moves_the_parser_alone(
    run: Run, tmp_path: Path, kwargs: dict[str, Any], fires: bool
) -> None:
    request = tmp_path / "r.json"
    request.write_text(
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": kwargs})
    )
    serve = ("--serve", "vllm serve m --reasoning-parser deepseek_v3", "--model", "fixture:deepseek-v31")
    _, out, _ = run(*serve, "--requests", str(request), "--format", "json")
    told = [f for f in json.loads(out)["findings"] if f["rule"] == "FIT114"]
    sent = [f for f in told if f["subject"].get("variant") == kwargs]
    assert bool(sent) is fires
    assert all(f["severity"] != "error" for f in told)
