"""Reads a model from a `.gguf` file: template, vocabulary and special tokens stand in its header."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from .model import Model, Template
from .tokenizer import Tokenizer

_ARCHITECTURES = {
    "deepseek2": "deepseek_v3",
    "ernie4_5-moe": "ernie4_5_moe",
    "gemma4": "gemma4",
    "glm4moe": "glm4_moe",
    "gpt-oss": "gpt_oss",
    "hunyuan-moe": "hunyuan_v1_moe",
    "minimax-m2": "minimax_m2",
    "nemotron_h_moe": "nemotron_h",
    "qwen2moe": "qwen2_moe",
    "qwen3moe": "qwen3_moe",
    "qwen3next": "qwen3_next",
    "qwen35": "qwen3_5",
    "qwen35moe": "qwen3_5_moe",
    "seed_oss": "seed_oss",
}
"""llama.cpp's architecture names where they differ from Hugging Face's model types."""

_SPECIAL = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
_ENDS = ("eos", "eot", "eom")


def read_gguf(path: Path, *, source: str) -> Model:
    """The model in a GGUF file's header; tensors are not looked at.

    Raises:
        InputError: the `gguf` extra is missing, or the header cannot be read.
    """
    fields = _header(path, source)
    template = fields.get("tokenizer.chat_template")
    templates = [Template(template, path.name, path=path)] if isinstance(template, str) else []
    for name in fields.get("tokenizer.chat_templates") or ():
        text = fields.get(f"tokenizer.chat_template.{name}")
        if isinstance(text, str):
            templates.append(Template(text, path.name, name=str(name), path=path))
    tokens = fields.get("tokenizer.ggml.tokens")
    architecture = str(fields.get("general.architecture") or "")
    special = _special_tokens(fields, tokens)
    default = next((each for each in templates if each.name == "default" and each.text.strip()), None)
    loaded, problem = _tokenizer(path, fields, architecture, special, default)
    ends = {fields.get(f"tokenizer.ggml.{name}_token_id") for name in _ENDS}
    return Model(
        source=source,
        kind="gguf",
        path=path,
        model_type=_ARCHITECTURES.get(architecture, architecture.replace("-", "_")) or None,
        architectures=tuple(str(fields[key]) for key in ("general.name", "general.basename") if fields.get(key)),
        template=default,
        templates=tuple(templates),
        tokenizer=loaded,
        tokenizer_problem=problem,
        special_tokens=special,
        eos_ids=frozenset(end for end in ends if isinstance(end, int)),
    )


def _header(path: Path, source: str) -> Mapping[str, Any]:
    """Every key of the header. The library maps the file and reads none of its tensors."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise InputError(
            "reading a .gguf file needs the extra `gguf`", source=source, mend='pip install "reasonctl[gguf]"'
        ) from None
    try:
        if path.stat().st_size == 0:
            raise InputError("is empty", source=source, mend="give a whole GGUF file")
        reader = GGUFReader(path)
        wanted = ("general.", "tokenizer.")
        return {name: field.contents() for name, field in reader.fields.items() if name.startswith(wanted)}
    except InputError:
        raise
    except Exception as error:  # the library lets whatever a broken file provokes through
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"its GGUF header cannot be read ({said})", source=source, mend="give a whole file") from None


def _special_tokens(fields: Mapping[str, Any], tokens: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, key in _SPECIAL.items():
        index = fields.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(index, int) and isinstance(tokens, list) and 0 <= index < len(tokens):
            found[name] = str(tokens[index])
    return found


def _tokenizer(
    path: Path, fields: Mapping[str, Any], architecture: str, special: Mapping[str, str], template: Template | None
) -> tuple[Tokenizer | None, str | None]:
    """The tokenizer that transformers makes of the header, or None and why there is none."""
    if not isinstance(fields.get("tokenizer.ggml.tokens"), list):
        return None, "the header holds no vocabulary"
    try:
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_TOKENIZER_MAPPING, convert_gguf_tokenizer

        described = {
            name: fields[f"tokenizer.{key}"]
            for key, name in GGUF_TOKENIZER_MAPPING["tokenizer"].items()
            if f"tokenizer.{key}" in fields
        }
        backend, _ = convert_gguf_tokenizer(architecture, described)
    except Exception as error:  # a vocabulary of a kind that it does not know fails in many ways
        return None, f"transformers makes no tokenizer of this header ({type(error).__name__}: {str(error)[:120]})"
    loaded = Tokenizer(
        backend,
        folder=path.parent,
        init_kwargs={},
        declared_special=tuple(dict.fromkeys(special.values())),
        chat_template=template.text if template is not None else None,
    )
    return loaded, None
