"""A tokenizer's `response_template`: what it may say, checked and compiled as vLLM does it.

Models vllm/parser/chat_parsing/response_templates.py and what vllm/parser/response_template.py makes of it, 0.33.0 and
0.32.0 alike. Transformers reads the same format with other rules: it knows more content parsers than vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base import ParserRaisedError, Vocabulary
from .template_values import CONTENT_KINDS, is_mixed

if TYPE_CHECKING:
    from regex import Pattern

THINKING, CONTENT, TOOLS = "thinking", "content", "tool_calls"
_TEMPLATE_KEYS = frozenset(("version", "defaults", "fields", "start_anchor", "start_anchor_pattern"))
_FIELD_KEYS = frozenset(
    (
        *("open", "open_pattern", "close", "close_pattern", "content", "content_args"),
        *("repeats", "join", "optional", "transform", "transform_each"),
    )
)


@dataclass(frozen=True, slots=True)
class Delimiter:
    """What opens or closes a field.

    Attributes:
        literals: its spellings, where it is no pattern.
        grows: whether a match at the end of the text may still become another one.
    """

    pattern: Pattern[str]
    literals: tuple[str, ...] | None
    grows: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One part of a message. Without `open` it is what stands between the others."""

    name: str
    open: Delimiter | None
    close: Delimiter | None
    content: str
    content_args: Any
    repeats: Any
    join: str | None
    transform: Any


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template. `implicit` is the name of the field without an opener."""

    fields: Mapping[str, Field]
    anchor: Delimiter
    implicit: str | None


def serving_template(vocabulary: Vocabulary) -> Template:
    """The tokenizer's template as a server parses with it. Raises ParserRaisedError where vLLM's constructor raises."""
    given = vocabulary.init_kwargs.get("response_template")
    if not isinstance(given, dict):
        raise ParserRaisedError(
            "ValueError",
            "Parsing with a response template requires `response_template` metadata in the tokenizer configuration",
        )
    try:
        template = _loaded(given)
        _check_fields(template, given)
        fields = given["fields"]
        if CONTENT not in fields and all("open" in field or "open_pattern" in field for field in fields.values()):
            template = _loaded({**given, "fields": {**fields, CONTENT: {}}})
    except Exception as error:
        raise ParserRaisedError(type(error).__name__, str(error)) from None
    return template


def _loaded(given: Mapping[str, Any]) -> Template:
    if given.get("version", 1) != 1:
        raise ValueError(f"Unsupported response_template version: {given['version']}")
    if unknown := set(given) - _TEMPLATE_KEYS:
        raise ValueError(f"Unknown keys in response_template: {sorted(unknown)}")
    if not isinstance(given.get("defaults", {}), dict):
        raise ValueError("response_template.defaults must be a dict")
    described = given.get("fields", {})
    if not isinstance(described, dict) or not described:
        raise ValueError("response_template.fields must be a non-empty dict")
    fields = {name: _field(name, field) for name, field in described.items()}
    implicit = [name for name, field in fields.items() if field.open is None]
    if len(implicit) > 1:
        raise ValueError(f"At most one field may omit 'open'/'open_pattern'. Found: {', '.join(implicit)}")
    anchor = _delimiter("response_template", given, "start_anchor")
    if anchor is None:
        raise ValueError("response_template must define 'start_anchor' or 'start_anchor_pattern'.")
    return Template(fields, anchor, implicit[0] if implicit else None)


def _field(name: str, given: Any) -> Field:
    scope = f"Field '{name}'"
    if not isinstance(given, dict):
        raise ValueError(f"{scope} must be a dict")
    if unknown := set(given) - _FIELD_KEYS:
        raise ValueError(f"{scope}: unknown keys {sorted(unknown)}")
    content = given.get("content", "text")
    if content not in CONTENT_KINDS:
        raise ValueError(f"{scope}: unknown content parser '{content}'")
    opener, closer = _delimiter(scope, given, "open"), _delimiter(scope, given, "close")
    join = given.get("join")
    if join is not None and not isinstance(join, str):
        raise ValueError(f"{scope}: 'join' must be a string")
    if join is not None and not given.get("repeats", False):
        raise ValueError(f"{scope}: 'join' requires 'repeats': true")
    transform, each = given.get("transform"), given.get("transform_each", False)
    if not isinstance(each, bool):
        raise ValueError(f"{scope}: transform_each must be a bool")
    if each and transform is None:
        raise ValueError(f"{scope}: transform_each is set but no transform was provided")
    if transform is not None:
        if is_mixed(transform):
            raise ValueError(f"{scope}: a transform string mixes a placeholder with literal text")
    elif any(delimiter is not None and delimiter.pattern.groupindex for delimiter in (opener, closer)):
        raise ValueError(f"{scope}: named groups, but the field has no 'transform'")
    return Field(
        name, opener, closer, content, given.get("content_args", {}), given.get("repeats", False), join, transform
    )


def _delimiter(scope: str, given: Mapping[str, Any], key: str) -> Delimiter | None:
    import regex

    if key in given and f"{key}_pattern" in given:
        raise ValueError(f"{scope}: cannot specify both '{key}' and '{key}_pattern'")
    if key in given:
        literals = _spellings(scope, key, given[key])
        longest_first = sorted(literals, key=len, reverse=True)
        grows = any(one != other and one.startswith(other) for one in literals for other in literals)
        pattern = regex.compile("|".join(map(regex.escape, longest_first)), regex.DOTALL)
        return Delimiter(pattern, tuple(literals), grows)
    if f"{key}_pattern" not in given:
        return None
    try:
        return Delimiter(regex.compile(given[f"{key}_pattern"], regex.DOTALL), None, grows=True)
    except regex.error as error:
        raise ValueError(f"{scope}: invalid {key}_pattern regex: {error}") from error


def _spellings(scope: str, key: str, given: Any) -> list[str]:
    literals = [given] if isinstance(given, str) else given
    if not isinstance(literals, list):
        raise ValueError(f"{scope}: '{key}' must be a string or list of strings")
    if not literals:
        raise ValueError(f"{scope}: '{key}' list must contain at least one literal")
    if not all(isinstance(literal, str) for literal in literals):
        raise ValueError(f"{scope}: '{key}' list must contain only strings")
    if "" in literals:
        raise ValueError(f"{scope}: '{key}' literals cannot be empty strings")
    return list(dict.fromkeys(literals))


def _check_fields(template: Template, given: Mapping[str, Any]) -> None:
    """A server can hand out thoughts, an answer and tool calls, and the first two only as they come."""
    unsupported = (set(template.fields) - {THINKING, CONTENT, TOOLS}) | (set(given.get("defaults", {})) - {"role"})
    if unsupported:
        raise ValueError(f"response_template contains unsupported semantic fields: {sorted(unsupported)}")
    for name in (THINKING, CONTENT):
        field = template.fields.get(name)
        if field is not None and (field.content != "text" or field.transform is not None or field.join is not None):
            raise ValueError(f"response_template field {name!r} uses semantics that cannot be streamed")
