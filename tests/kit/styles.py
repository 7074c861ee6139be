"""Models for `new-parser` to write parsers for: one for each style of marking a thought, and more of their mixtures."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from reasonctl import fixtures

TURNS = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' -}}"
    "{%- if message.reasoning_content -%}"
    "{{- '<think>' + message.reasoning_content + '</think>' -}}"
    "{%- endif -%}"
    "{{- (message.content or '') + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
)
SILENT = TURNS + "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
OPENED = TURNS + "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}"


def with_template(folder: Path, fixture: str, template: str) -> str:
    """A copy of a shipped model with another template."""
    shutil.copytree(fixtures.model_path(fixture), folder)
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return str(folder)


STYLES: dict[str, Callable[[Path], str]] = {
    "single_tokens": lambda folder: with_template(folder, "qwen3", SILENT),
    "several_tokens": lambda folder: "fixture:split-markers",
    "several_tokens_silent": lambda folder: with_template(folder, "split-markers", SILENT),
    "opened": lambda folder: with_template(folder, "qwen3", OPENED),
    "implicit_end": lambda folder: "fixture:qwen3-thinking",
    "switch": lambda folder: "fixture:qwen3",
    "switch_default_off": lambda folder: "fixture:deepseek-v31",
    "switch_silent": lambda folder: "fixture:quiet-off",
    "effort_special": lambda folder: "fixture:glim",
}
"""By the name of the parser: makes the model in a folder that is not there, and gives its `--model`."""
