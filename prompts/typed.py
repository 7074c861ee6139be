"""The types of all that is read from a model's configuration files: a value of another type counts as not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .model import Unreadable

SPECIAL_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")

_Type = tuple[str, Callable[[Any], bool]]
"""How a type is called, and whether a value, which is not null, is of it."""


def typed(file: str, values: Mapping[str, Any], unreadable: list[Unreadable]) -> dict[str, Any]:
    """The values without those of a wrong type; null is of every type.

    Args:
        file: the file's name inside the model's folder; it says which keys are known.
        values: the object in it.
        unreadable: what was left out is appended here.
    """
    return _checked(file, values, TYPES.get(file, {}), unreadable, under="")


def _checked(
    file: str, values: Mapping[str, Any], types: Mapping[str, _Type], unreadable: list[Unreadable], *, under: str
) -> dict[str, Any]:
    kept = dict(values)
    for key, (name, fits) in types.items():
        value = values.get(key)
        if value is None:
            continue
        if not fits(value):
            unreadable.append(Unreadable(file, f"{under}{key} is not {name}", key=f"{under}{key}"))
            del kept[key]
        elif key == "text_config":
            kept[key] = _checked(file, value, _TEXT_CONFIG, unreadable, under="text_config.")
    return kept


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_token(value: Any) -> bool:
    return isinstance(value.get("content") if isinstance(value, dict) else value, str)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_templates(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_text, value.values()))
    named = _list_of(
        lambda entry: (
            isinstance(entry, dict)
            and isinstance(entry.get("template"), str)
            and isinstance(entry.get("name", ""), str)
        )
    )
    return _is_text(value) or named(value)


def _is_decoder(value: Any) -> bool:
    return isinstance(value, dict) and all(
        key.isdecimal() and key.isascii() and len(key) <= _ID_DIGITS and isinstance(token, dict) and _is_token(token)
        for key, token in value.items()
    )


_ID_DIGITS = 12
_TEXT: _Type = ("a text", _is_text)
_NUMBER: _Type = ("a whole number", _is_number)
_FLAG: _Type = ("true or false", lambda value: isinstance(value, bool))
_OBJECT: _Type = ("an object", _is_object)
_IDS: _Type = ("a whole number or a list of them", lambda value: _is_number(value) or _list_of(_is_number)(value))
_TOKEN: _Type = ("a token (a text, or an object with one under 'content')", _is_token)
_TOKENS: _Type = ("a list of tokens", _list_of(_is_token))
_TEXT_CONFIG: Mapping[str, _Type] = {"vocab_size": _NUMBER, "eos_token_id": _IDS}
TYPES: Mapping[str, Mapping[str, _Type]] = {
    "config.json": {
        **_TEXT_CONFIG,
        "model_type": _TEXT,
        "architectures": ("a list of texts", _list_of(_is_text)),
        "text_config": _OBJECT,
    },
    "generation_config.json": {"eos_token_id": _IDS, "skip_special_tokens": _FLAG},
    "special_tokens_map.json": dict.fromkeys(SPECIAL_TOKEN_NAMES, _TOKEN),
    "tokenizer_config.json": {
        **dict.fromkeys(SPECIAL_TOKEN_NAMES, _TOKEN),
        "added_tokens_decoder": ("an object of ids, each with a token's object", _is_decoder),
        "additional_special_tokens": _TOKENS,
        "chat_template": ("a text, or texts with a name each ('name' and 'template')", _is_templates),
        "clean_up_tokenization_spaces": _FLAG,
        "extra_special_tokens": (
            "a list of tokens or an object of named ones",
            lambda value: _is_object(value) or _list_of(_is_token)(value),
        ),
        "tokenizer_class": _TEXT,
    },
    "chat_template.json": {"chat_template": _TEXT},
}
"""Every key that this package reads, by file."""
