"""Builds lab models: Hugging Face folders that vLLM serves and that say exactly what their script says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .lab_families import THINKING_TOKENS, LabFamily, family
from .lab_tokens import build_tokenizer, vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SCRIPT_FILE = "lab.json"
_SCALE = 64
"""The logit of the token that comes next; all others have 0, so that sampling at temperature 1 never takes another."""
_POSITIONS = 8192
_HEAD = 64


def build_lab(folder: Path, name: str, *, thinking_tokens: int = THINKING_TOKENS) -> LabFamily:
    """Write a lab model: weights, tokenizer, template and configuration, a few megabytes in all.

    Args:
        folder: is made; files of an earlier build in it are replaced.
        name: a family of `lab_families`.
        thinking_tokens: numbers it counts through inside its block, one token each.

    Raises:
        InputError: there is no such family or thought, or the folder cannot be written or holds something else.
    """
    model = family(name)
    _refuse_to_replace(folder)
    words = vocabulary(model, thinking_tokens)
    tokenizer = build_tokenizer(model, words)
    follows = {_id(tokenizer, text): _id(tokenizer, after) for text, after in words.follows.items()}
    size = tokenizer.get_vocab_size()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / "tokenizer.json"))
        for file, content in _files(model, tokenizer, thinking_tokens).items():
            text = content if isinstance(content, str) else json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            (folder / file).write_text(text, encoding="utf-8")
        _write_weights(folder / "model.safetensors", size, follows, _id(tokenizer, model.eos))
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror or error}", source=str(folder), mend="name a folder you may write to"
        ) from None
    return model


def _refuse_to_replace(folder: Path) -> None:
    """Raise InputError for a folder with files that no earlier build made: they may be a model's weights."""
    try:
        taken = folder.is_dir() and any(folder.iterdir()) and not (folder / SCRIPT_FILE).is_file()
    except OSError:
        return  # what is wrong with it is said when it is written
    if taken:
        raise InputError("holds files that are no lab model", source=str(folder), mend="name a new folder")


def _id(tokenizer: Tokenizer, text: str) -> int:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if len(ids) != 1:
        raise ValueError(f"{text!r} is {len(ids)} tokens, where a script needs one")
    return int(ids[0])


def _files(model: LabFamily, tokenizer: Tokenizer, thinking_tokens: int) -> Mapping[str, Any]:
    size = tokenizer.get_vocab_size()
    eos = _id(tokenizer, model.eos)
    special = {"eos_token": model.eos, "pad_token": model.eos} | ({"bos_token": model.bos} if model.bos else {})
    return {
        "config.json": {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": size,
            "hidden_size": _width(size),
            "intermediate_size": _HEAD,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": _HEAD,
            "hidden_act": "silu",
            "max_position_embeddings": _POSITIONS,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "dtype": "bfloat16",
            "torch_dtype": "bfloat16",
            "eos_token_id": eos,
        },
        "generation_config.json": {"eos_token_id": eos, "pad_token_id": eos},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_max_length": _POSITIONS,
            **special,
        },
        "chat_template.jinja": template(model),
        SCRIPT_FILE: {"family": model.name, "style": model.style, "thinking_tokens": thinking_tokens},
    }


def template(model: LabFamily) -> str:
    """The chat template: messages as they are, earlier thinking left out, then the generation prompt.

    `enable_thinking` switches as in other templates; `prompt_state` (open, closed, silent) asks for a state outright.
    """
    on, off = model.on, model.off
    default = on if model.thinks_unasked else off
    before, behind = model.turn
    head, _, tail = before.partition("ROLE")
    role = "message.role|capitalize" if head.endswith("｜") else "message.role"
    asked = f"'{default}' if enable_thinking is not defined else '{on}' if enable_thinking else '{off}'"
    lines = [
        f"{{#- Lab model in the style of {model.name}: {model.style}. -#}}",
        f"{{%- set state = prompt_state if prompt_state is defined else ({asked}) -%}}",
        f"{{{{- {_quoted(model.bos)} -}}}}",
        "{%- for message in messages -%}",
        "{%- if message.role == 'assistant' -%}",
        f"{{{{- {_quoted(model.header)} + (message.content or '') + {_quoted(model.said_end)} -}}}}",
        "{%- else -%}",
        f"{{{{- {_quoted(head)} + {role} + {_quoted(tail)} + (message.content or '') + {_quoted(behind)} -}}}}"
        if tail
        else f"{{{{- {_quoted(head)} + (message.content or '') + {_quoted(behind)} -}}}}",
        "{%- endif -%}",
        "{%- endfor -%}",
        "{%- if add_generation_prompt -%}",
        f"{{{{- {_quoted(model.header)} -}}}}",
        f"{{%- if state == 'open' -%}}{{{{- {_quoted(model.opened)} -}}}}",
        f"{{%- elif state == 'closed' -%}}{{{{- {_quoted(model.closed)} -}}}}{{%- endif -%}}",
        "{%- endif -%}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _width(size: int) -> int:
    """The hidden size: the first power of two that gives every token a direction of its own."""
    return 1 << (size - 1).bit_length()


def _write_weights(path: Path, size: int, follows: Mapping[int, int], eos: int) -> None:
    """Embeddings are rows of a Hadamard matrix, so no two have anything in common; the row of `lm_head` that makes a
    token is the sum of the embeddings it follows. Attention and MLP add nothing.
    """
    import numpy as np
    from safetensors.numpy import save_file

    width = _width(size)
    hadamard = np.ones((1, 1), dtype=np.float32)
    while len(hadamard) < width:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    embedding = hadamard[:size]
    head = np.zeros((size, width), dtype=np.float32)
    for token in range(size):
        head[follows.get(token, eos)] += embedding[token] * (_SCALE / width)
    layer = "model.layers.0."
    ones, nothing = np.ones(width, dtype=np.float32), np.zeros((_HEAD, width), dtype=np.float32)
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": ones,
        f"{layer}input_layernorm.weight": ones,
        f"{layer}post_attention_layernorm.weight": ones,
        f"{layer}self_attn.q_norm.weight": np.ones(_HEAD, dtype=np.float32),
        f"{layer}self_attn.k_norm.weight": np.ones(_HEAD, dtype=np.float32),
        f"{layer}self_attn.q_proj.weight": nothing,
        f"{layer}self_attn.k_proj.weight": nothing,
        f"{layer}self_attn.v_proj.weight": nothing,
        f"{layer}self_attn.o_proj.weight": np.ascontiguousarray(nothing.T),
        f"{layer}mlp.gate_proj.weight": nothing,
        f"{layer}mlp.up_proj.weight": nothing,
        f"{layer}mlp.down_proj.weight": np.ascontiguousarray(nothing.T),
    }
    save_file({name: np.ascontiguousarray(value) for name, value in weights.items()}, path, metadata={"format": "pt"})
