"""Where counting reasoning tokens raises: vLLM parses the tool calls of a whole output while it counts.

A call without a name takes its name from its body, when that is a JSON object; a name there that is no string fails
vLLM's own validation, and the request with it (`ParserEngine._build_extracted_result` in
vllm/parser/engine/parser_engine.py, 0.33.0 and 0.32.0; `KimiK2Parser._extract_tool_id_and_name`).
"""

from __future__ import annotations

import json
import re

from ..base import ParserRaisedError

_QUOTED_NAME = re.compile(r'"name"\s*:\s*"([^"]*)"')
_KIMI_ID = re.compile(r"(.+:\d+)")


def kimi_name(header: str) -> str:
    """The name in kimi's `functions.NAME:0`; empty where the header has another form."""
    match = _KIMI_ID.match(header.strip())
    return match[1].strip().split(":")[0].removeprefix("functions.") if match else ""


def check_call(name: str, body: str) -> None:
    """Raise what vLLM raises for a call of this name, as far as its own text gives one, and body."""
    if not name and (quoted := _QUOTED_NAME.search(body)):
        name = quoted[1]
    if name.strip():
        return
    try:
        call = json.loads(body.strip() or "null")
    except json.JSONDecodeError:
        return
    except RecursionError as error:
        raise ParserRaisedError("RecursionError", str(error)) from None
    if isinstance(call, dict) and (given := call.get("name")) and not isinstance(given, str):
        raise ParserRaisedError("ValidationError", f"a tool call's name is {given!r}, no string")
