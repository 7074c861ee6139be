"""What hf and beam look for: response templates, sound and broken, and outputs in their formats."""

from __future__ import annotations

from typing import Any

from .family import Family

_THINK: dict[str, Any] = {"open": "<think>", "close": "</think>"}
_CALL: dict[str, Any] = {
    "open": "<tool_call>",
    "close": "</tool_call>",
    "repeats": True,
    "content": "json",
    "transform": {"type": "function", "function": {"name": "{content.name}", "arguments": "{content.arguments}"}},
}
_ANCHOR = {"start_anchor": "<|im_start|>"}


def _template(fields: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"response_template": {"version": 1, **_ANCHOR, **others, "fields": fields}}


def _call(**changes: Any) -> dict[str, Any]:
    return {"thinking": _THINK, "tool_calls": {**_CALL, **changes}}


_SOUND = (
    _template({"thinking": _THINK}),
    _template({"thinking": _THINK, "tool_calls": _CALL}, defaults={"role": "assistant"}),
    _template({"thinking": _THINK, "content": {"close": "<|im_end|>"}, "tool_calls": _CALL}),
    _template(
        {"thinking": {"close": "</think>"}, "content": {"open": "<answer>", "close": ["</answer>", "<|im_end|>"]}}
    ),
    _template(
        {
            "thinking": {"open": ["<think>", "<think>\n"], "close": ["</think>", "</think>\n\n", "<tool_call>"]},
            "tool_calls": {"open_pattern": r"<tool_call>\s*", "close_pattern": r"\s*</tool_call>"},
        }
    ),
    _template({"thinking": {"open_pattern": r"<think>\s*", "close_pattern": r"\s*</think>\s*"}, "content": {}}),
    _template({"thinking": {"open_pattern": r"(?<!x)<think>", "close_pattern": r"</think>|(?=<tool_call>)|x$"}}),
    _template({"thinking": {**_THINK, "repeats": True}, "content": {"close_pattern": r"$|<\|im_end\|>"}}),
    _template({"thinking": {"open": "<think>"}, "content": {"open": "<answer>"}}),
    _template({"content": {}, "tool_calls": _CALL}),
    _template({"thinking": _THINK, "content": {"open": "</think>"}}),
    _template(
        {"thinking": {"open": "<think>", "close": ["</think><|im_start|>", "</think>"]}, "content": {}}, defaults={}
    ),
    {
        "response_template": {
            "start_anchor_pattern": r"(?:<\|im_start\|>|<\|im_end\|>)x?",
            "fields": {"thinking": {"open": "<think>", "close": "</think><|im_start|>"}, "content": {}},
        }
    },
    {
        "response_template": {
            "start_anchor_pattern": r"^<\|im_start\|>",
            "fields": {"thinking": {"open": "<think>", "close": "</think><|im_start|>"}, "content": {}},
        }
    },
    _template(_call(content_args={"string_delims": [["<|q|>", "<|q|>"]], "unquoted_keys": True})),
    _template(_call(content_args={"allow_non_json": True}, transform_each=True)),
    _template(
        _call(content="xml-inline", content_args={"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</", "value_parser": {}})
    ),
    _template(_call(content="kv-lines", content_args={"value_parser": {"name": "int"}}, join=", ")),
)
_BROKEN: tuple[dict[str, Any], ...] = (
    {},
    {"response_template": "<think>"},
    _template({}),
    _template({"thinking": _THINK}, version=2),
    _template({"thinking": _THINK}, other=1),
    _template({"thinking": _THINK}, defaults=[]),
    _template({"thinking": _THINK}, defaults={"name": "x"}),
    _template({"thinking": _THINK, "other": {"open": "x"}}),
    _template({"thinking": {"open": "a", "open_pattern": "b"}}),
    _template({"thinking": {"open": []}}),
    _template({"thinking": {"open": 5}}),
    _template({"thinking": {"open_pattern": 5}}),
    _template({"thinking": {"open_pattern": "("}}),
    _template({"thinking": {"open_pattern": "(?P<n>x)"}}),
    _template({"thinking": {**_THINK, "content": "json"}}),
    _template({"thinking": {**_THINK, "content": []}}),
    _template({"thinking": {**_THINK, "join": "x", "repeats": True}}),
    _template({"thinking": {}, "content": {}}),
    _template(_call(transform={"a": "x{content}"})),
    _template(_call(content="python-call-list")),
    _template(_call(content_args=[])),
    _template({"thinking": {**_THINK, "content_args": None}}),
    _template(_call(content="xml-inline", content_args={"tag_pattern": "("})),
    _template(_call(content="kv-lines", content_args={"value_parser": []})),
    {"response_template": {"fields": {"thinking": _THINK}}},
)
_TEMPLATES = Family(
    tools=("<tool_call>", "</tool_call>", "<answer>", "</answer>", "<|im_end|>", "<think>\n", "</think>\n\n"),
    calls=(
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "<tool_call>" + "[" * 3000 + "</tool_call>",
        "<tool_call><a>1</a><b>x</b></tool_call>",
        "<tool_call>a: 1\nb: x</tool_call>",
        "<tool_call>{a: <|q|>x<|q|>}</tool_call>",
        "<tool_call>",
        "<answer>four</answer>",
    ),
    pieces=("<answer>", "</answer>", "<|im_", "</think>\n\n", "<thi"),
    shards=("<", "</", "think", ">", "<th", "</think", "<|im_", "\n", "\n\n", "<|im_start|>", "<tool_call", "x<think>"),
    outputs=(
        "<think>Hm</think>four",
        "<think>\nHm\n</think>\n\nfour<|im_end|>",
        "Hm</think><answer>four</answer>",
        "<think>Hm</think><|im_start|>four",
        "<think>Hm<tool_call>{}</tool_call>",
        "<think>Hm</think>four<think>so</think>five",
        "<answer>four<think>Hm",
        "Hmx<think>Hmx",
        "<think>Hm</think><|im_",
        "<think>Hm</think",
        "four<|im_end|>five",
    ),
    init_kwargs=(*_SOUND, *_BROKEN),
)

TEMPLATE_FAMILIES: dict[str, Family] = {"beam": _TEMPLATES, "hf": _TEMPLATES}
