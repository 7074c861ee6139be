"""What is read from a model before a parser is written for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasonctl.errors import InputError
from reasonctl.kit.traits import Switch, Traits, read_traits
from reasonctl.parsers import ROWS
from reasonctl.parsers.markers import MarkerPair
from reasonctl.prompts.model import load_model

from .styles import OPENED, SILENT, STYLES, with_template

HEADER = "<|im_end|>\n<|im_start|>assistant\n"
CHATML = ("<|im_start|>",)
THINK: dict[str, Any] = {"start": "<think>", "end": "</think>", "single": True}
ENABLE = Switch("enable_thinking", False, True, True)

WANTED = {
    "single_tokens": Traits(**THINK, opened=False, turns=CHATML, prompt=HEADER),
    "several_tokens": Traits(
        "<think>", "</think>", False, call="<tool_call>", turns=CHATML, prompt=f"{HEADER}<think>\n"
    ),
    "opened": Traits(**THINK, turns=CHATML, prompt=f"{HEADER}<think>\n"),
    "implicit_end": Traits(**THINK, call="<tool_call>", turns=CHATML, prompt=f"{HEADER}<think>\n"),
    "switch": Traits(
        **THINK,
        opened=False,
        call="<tool_call>",
        switches=(ENABLE,),
        turns=CHATML,
        prompt=HEADER,
        prompt_off=f"{HEADER}<think>\n\n</think>\n\n",
    ),
    "switch_default_off": Traits(
        **THINK,
        call="<｜tool▁calls▁begin｜>",
        switches=(Switch("thinking", False, True, False),),
        turns=("<｜Assistant｜>",),
        prompt="<｜Assistant｜><think>",
        prompt_off="<｜Assistant｜></think>",
    ),
    "switch_silent": Traits(
        **THINK,
        call="<tool_call>",
        switches=(ENABLE,),
        turns=CHATML,
        prompt=f"{HEADER}<think>\n",
        prompt_off=HEADER,
        closed=False,
    ),
    "effort_special": Traits(
        "<|ponder|>",
        "<|/ponder|>",
        True,
        special=True,
        call="<|call|>",
        switches=(Switch("reasoning_effort", "none", None, True),),
        turns=("<|model|>",),
        prompt="<|eot|><|model|><|ponder|>\n",
        prompt_off="<|eot|><|model|><|ponder|>\n<|/ponder|>\n",
    ),
}


@pytest.mark.parametrize("style", WANTED)
def test_what_each_style_shows(style: str, tmp_path: Path) -> None:
    assert read_traits(load_model(STYLES[style](tmp_path / "model"))) == WANTED[style]


def test_given_markers_go_before_those_of_the_template(tmp_path: Path) -> None:
    template = SILENT.replace("<|im_start|>assistant\\n'", "<|im_start|>assistant\\n<|musing|>'")
    model = load_model(with_template(tmp_path / "m", "qwen3", template))
    read = read_traits(model, markers=MarkerPair("<|musing|>", "<|/musing|>"))
    assert (read.start, read.end, read.single, read.opened) == ("<|musing|>", "<|/musing|>", False, True)


def test_the_facts_of_a_built_in_row_go_before_those_of_the_template(tmp_path: Path) -> None:
    model = load_model(with_template(tmp_path / "m", "qwen3", OPENED))
    read = read_traits(model, like=ROWS["seed_oss"])
    assert (read.start, read.end, read.single) == ("<seed:think>", "</seed:think>", False)
    assert (read.call, read.turns) == ("<seed:tool_call>", ("<seed:bos>", "<seed:eos>"))
    assert read.switches == (Switch("enable_thinking", False, True, True),)
    assert read_traits(model, like=ROWS["minimax_m3"]).switches == (
        Switch("thinking_mode", "disabled", "enabled", False),
    )


def test_a_switch_that_changes_nothing_is_none(tmp_path: Path) -> None:
    template = OPENED + "{%- if enable_thinking -%}{%- endif -%}"
    assert read_traits(load_model(with_template(tmp_path / "m", "qwen3", template))).switches == ()


def test_a_lone_template_tells_no_tokens(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(OPENED, encoding="utf-8")
    read = read_traits(load_model(str(path)))
    assert (read.start, read.single, read.turns, read.opened) == ("<think>", False, (), True)


@pytest.mark.parametrize(
    ("fixture", "like", "said"),
    [
        ("gpt-oss", None, "this is a harmony model"),
        ("instruct", None, "the template shows no markers of thinking; name them with --start and --end"),
        ("qwen3", "muse_glimmer", None),
        ("qwen3", "hf", "--like: hf has no start and end marker to begin with"),
    ],
)
def test_what_no_parser_can_be_written_for(fixture: str, like: str | None, said: str | None) -> None:
    row = ROWS[like] if like is not None else None
    if said is None:
        assert read_traits(load_model(f"fixture:{fixture}"), like=row).single is False
        return
    with pytest.raises(InputError) as refused:
        read_traits(load_model(f"fixture:{fixture}"), like=row)
    assert said in str(refused.value)


def test_a_template_that_raises_is_named(tmp_path: Path) -> None:
    template = TURNS_THAT_RAISE
    model = load_model(with_template(tmp_path / "m", "qwen3", template))
    with pytest.raises(InputError, match=r"the template gives no prompt: not today; mend the template"):
        read_traits(model)


TURNS_THAT_RAISE = "<think></think>{{- raise_exception('not today') -}}"
