"""What the value of a field raises. Its text reaches the client as it stands: nothing else of the value is asked for.

Models vllm/parser/chat_parsing/content_parsers.py (0.33.0, unchanged from 0.32.0): a value that cannot be parsed is
malformed and no more; what is raised here goes through vLLM's parser to the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

CONTENT_KINDS = frozenset(("text", "int", "float", "bool", "json", "xml-inline", "kv-lines"))
_MALFORMED = (KeyError, TypeError, ValueError)
_PLACEHOLDER = r"\{(\w+(?:\.\w+)*)\}"


def check_value(kind: str, args: Any, text: str) -> None:
    """Raise what parsing `text` raises in vLLM, where that is no malformed value."""
    try:
        _check(kind, args, text)
    except _MALFORMED:
        return


def is_mixed(transform: Any) -> bool:
    """Whether a string in a transform has a placeholder and something beside it."""
    import regex

    if isinstance(transform, Mapping):
        return any(map(is_mixed, transform.values()))
    if isinstance(transform, list):
        return any(map(is_mixed, transform))
    if not isinstance(transform, str):
        return False
    return bool(regex.search(_PLACEHOLDER, transform)) and not regex.fullmatch(_PLACEHOLDER, transform)


def _check(kind: str, args: Any, text: str) -> Any:
    match kind:
        case "json":
            return _json(args, text)
        case "xml-inline":
            return _tags(args, text)
        case "kv-lines":
            return _lines(args, text)
        case "text":
            return _stripped(args, text)
        case "int":
            return int(_stripped(args, text))
        case "float":
            return float(_stripped(args, text))
        case "bool":
            return _stripped(args, text)
    raise KeyError(kind)


def _stripped(args: Any, text: str) -> str:
    return text.strip() if args.get("strip", True) else text


def _json(args: Any, text: str) -> None:
    """JSON, its strings perhaps between other marks and its keys perhaps bare."""
    import regex

    marks, bare = args.get("string_delims", []), args.get("unquoted_keys", False)
    if marks and ("\x01" in text or "\x02" in text):
        raise ValueError("reserved characters")
    strings: list[str] = []

    def keep(match: Any) -> str:
        strings.append(match.group(1))
        return f"\x01{len(strings) - 1}\x02"

    for before, behind in marks:
        text = regex.sub(f"{regex.escape(before)}(.*?){regex.escape(behind)}", keep, text, flags=regex.DOTALL)
    if bare:
        text = regex.sub(r"(?<=[{,])(\w+):", r'"\1":', text)
    for number, string in enumerate(strings):
        text = text.replace(f"\x01{number}\x02", json.dumps(string))
    try:
        json.loads(text)
    except json.JSONDecodeError:
        if not args.get("allow_non_json"):
            raise


def _tags(args: Any, text: str) -> None:
    import regex

    pattern, inner = args.get("tag_pattern"), args.get("value_parser")
    if pattern is None:
        raise ValueError("no tag_pattern")
    for match in regex.finditer(pattern, text, flags=regex.DOTALL):
        groups = match.groupdict()
        if groups.get("key") is None:
            raise ValueError("no key")
        _check_inner(inner, groups.get("value", ""))


def _lines(args: Any, text: str) -> None:
    between, sign, inner = args.get("line_sep", "\n"), args.get("kv_sep", ":"), args.get("value_parser")
    for line in (_stripped(args, line) for line in text.split(between)):
        if line and sign in line:
            _check_inner(inner, _stripped(args, line.split(sign, 1)[1]))


def _check_inner(parser: Any, text: Any) -> None:
    if parser is not None:
        _check(parser.get("name", "text"), parser.get("args", {}), text)
