"""GGUF files: template, tokenizer and special tokens out of the header, and what is said of broken files."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFWriter

from reasonctl.errors import InputError
from reasonctl.prompts.model import load_model
from reasonctl.prompts.survey import survey

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
BYTES = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256))]
CONTROL, USER, NORMAL = 3, 4, 1


def write(
    path: Path, *, template: str | None = TEMPLATE, tokens: bool = True, named: Sequence[tuple[str, str]] = ()
) -> Path:
    """A small GGUF file of a byte-level Qwen3-like vocabulary."""
    writer = GGUFWriter(path, "qwen3moe")
    writer.add_name("Made-Up 1B")
    if tokens:
        ordinary = [*BYTES, *(chr(256 + n) for n in range(256 - len(BYTES))), "hi"]
        special = ["<|im_start|>", "<|im_end|>"]
        marked = ["<think>", "</think>"]
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_list([*ordinary, *special, *marked])
        writer.add_token_types([NORMAL] * len(ordinary) + [CONTROL] * 2 + [USER] * 2)
        writer.add_token_merges(["h i"])
        writer.add_eos_token_id(len(ordinary) + 1)
        writer.add_bos_token_id(len(ordinary))
    if template is not None:
        writer.add_chat_template(
            [{"name": "default", "template": template}, *({"name": n, "template": t} for n, t in named)]
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    return path


def test_a_header_makes_a_model(tmp_path: Path) -> None:
    model = load_model(str(write(tmp_path / "m.gguf")))
    assert (model.kind, model.model_type, model.tokenizer_problem) == ("gguf", "qwen3_moe", None)
    assert model.template is not None
    assert (model.template.text, model.template.origin) == (TEMPLATE, "m.gguf")
    assert model.special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert model.tokenizer is not None
    ids = model.tokenizer.encode("hi<think>hi</think>")
    assert len(ids) == 4
    assert ids[0] == ids[2] == model.tokenizer.vocab["hi"]
    assert model.tokenizer.decode(ids) == "hi<think>hi</think>"
    assert model.eos_ids == {model.tokenizer.vocab["<|im_end|>"]}
    assert model.tokenizer.vocab["<|im_end|>"] in model.tokenizer.special_ids
    assert model.tokenizer.vocab["</think>"] not in model.tokenizer.special_ids
    assert survey(model).get("single_turn", {}).state == "open"  # type: ignore[union-attr]


def test_named_templates_and_a_file_without_one(tmp_path: Path) -> None:
    named = load_model(str(write(tmp_path / "n.gguf", named=[("tool_use", "tools here")])))
    assert [template.name for template in named.templates] == ["default", "tool_use"]
    tools = named.template_for(tools=True)
    assert tools is not None and tools.text == "tools here"
    bare = load_model(str(write(tmp_path / "b.gguf", template=None)))
    assert bare.template is None and bare.tokenizer is not None


def test_a_header_without_a_vocabulary_says_so(tmp_path: Path) -> None:
    model = load_model(str(write(tmp_path / "v.gguf", tokens=False)))
    assert (model.tokenizer, model.tokenizer_problem) == (None, "the header holds no vocabulary")
    assert survey(model).get("single_turn", {}).state == "open"  # type: ignore[union-attr]


@pytest.mark.parametrize("cut", [0, 3, 20, 100, 2000])
def test_broken_files_are_refused_in_one_line(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError) as caught:
        load_model(str(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 400)
    with pytest.raises(InputError, match="its GGUF header cannot be read"):
        load_model(str(path))


def test_without_the_extra_the_mend_is_its_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m.gguf")
    real = builtins.__import__

    def no_gguf(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "gguf":
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", no_gguf)
    with pytest.raises(InputError, match=r'pip install "reasonctl\[gguf\]"'):
        load_model(str(path))
