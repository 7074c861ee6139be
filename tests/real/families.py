"""What each modelled parser looks for: the markers, calls and switches that its cases are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CHATML = ("<|im_start|>", "<|im_end|>")
GLM_TURNS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
QWEN_TOOLS = ("<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>")
DSML = tuple(f"<{slash}｜DSML｜{name}" for slash in ("", "/") for name in ("tool_calls>", 'invoke name="', "parameter"))
SPACED_DSML = tuple(
    f"<{slash}｜DSML｜ {name}" for slash in ("", "/") for name in ("calls>", 'invoke name="', "parameter")
)


@dataclass(frozen=True)
class Family:
    """What one parser looks for.

    Attributes:
        start, end: its reasoning markers.
        turns: tokens that begin or end a turn in the prompt.
        tools: markers of its tool calls; those in `tool_tokens` are added tokens, the others plain text.
        calls: whole and broken tool calls.
        switches: chat-template kwargs that move it, beside those tried with every parser.
        init_kwargs: of the tokenizer.
        templates: chat templates it looks at.
    """

    start: str = "<think>"
    end: str = "</think>"
    turns: tuple[str, ...] = CHATML
    tools: tuple[str, ...] = QWEN_TOOLS
    tool_tokens: tuple[str, ...] = ("<tool_call>", "</tool_call>")
    calls: tuple[str, ...] = (
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "<tool_call><function=f><parameter=a>1</tool_call>",
        "<function=f></function>",
        "<tool_call></tool_call>",
        '<tool_call><function=>{"a": 1}</function></tool_call>',
        '<tool_call><function=>{"name": 5}</function></tool_call>',
        '<tool_call><function= >{"name": {"name": " "}}',
        "<tool_call><function=g<tool_call><function=h></function></tool_call>",
    )
    switches: tuple[dict[str, Any], ...] = ()
    init_kwargs: tuple[dict[str, Any], ...] = ({},)
    templates: tuple[str | None, ...] = (None,)


_GLM_53 = "[gMASK]<sop>Reasoning Effort: {{ e }}<tool_call><arg_key><arg_value>"
_GLM = Family(
    turns=GLM_TURNS,
    tools=("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    calls=(
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f</tool_call>",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1",
        "<tool_call></tool_call>",
    ),
    templates=(None, None, _GLM_53, _GLM_53 + "enable_thinking"),
)
_DEEPSEEK_V4 = Family(
    turns=("<｜User｜>", "<｜Assistant｜>"),
    tools=(*DSML, "<｜DSML｜toolcalls>", "<｜DSML｜tool>"),
    tool_tokens=("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    calls=(
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="true">1'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        '<｜DSML｜toolcalls><｜DSML｜invoke name="f"></｜DSML｜invoke></｜DSML｜tool_calls>',
        '<｜DSML｜invoke name="f"></｜DSML｜invoke>',
        "<｜DSML｜tool_calls></｜DSML｜tool_calls>",
        '<｜DSML｜tool_calls><｜DSML｜invoke name="">{"name": 1, "b": {"name": "x"}}',
        '<｜DSML｜invoke name="">{"name": 1}</｜DSML｜invoke>',
    ),
    switches=({"reasoning_effort": "none"}, {"thinking": True, "reasoning_effort": "none"}),
)
_LEGACY = Family()

FAMILIES: dict[str, Family] = {
    "qwen3": Family(),
    "mimo": Family(),
    "step3p5": Family(),
    "nemotron_v3": Family(switches=({"force_nonempty_content": True},)),
    "granite_thinking_parser": Family(switches=({"force_nonempty_content": True},)),
    "minicpmv": Family(
        tools=(*QWEN_TOOLS, "<reserved_12>", "<|reserved_13|>"), tool_tokens=("<tool_call>", "<|reserved_13|>")
    ),
    "seed_oss": Family(
        start="<seed:think>",
        end="</seed:think>",
        turns=("<seed:bos>", "<seed:eos>"),
        tools=("<seed:tool_call>", "</seed:tool_call>", *QWEN_TOOLS[2:]),
        tool_tokens=("<seed:tool_call>", "</seed:tool_call>"),
        calls=(
            "<seed:tool_call><function=f><parameter=a>1</parameter></function></seed:tool_call>",
            "<tool_call>x",
            '<seed:tool_call><function=g<seed:tool_call><function=>{"name": 5}</function>',
        ),
    ),
    "glm45": _GLM,
    "glm47": _GLM,
    "ling3": _GLM,
    "kimi_k2": Family(
        turns=("<|im_user|>", "<|im_assistant|>", "<|im_end|>"),
        tools=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
        tool_tokens=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
        calls=(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
            '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>',
            "<|tool_calls_section_begin|><|tool_calls_section_end|>",
            "<|tool_call_begin|>f",
            '<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{"name": [1]}',
            '<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{"name": [1]}',
        ),
    ),
    "minimax_m2": Family(
        turns=("]~b]", "[e~["),
        tools=(
            "<minimax:tool_call>",
            "</minimax:tool_call>",
            '<invoke name="',
            "<invoke name='",
            "<invoke name=",
            "</invoke>",
            "<parameter name=",
            "</parameter>",
        ),
        tool_tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
        calls=(
            '<minimax:tool_call><invoke name="f"><parameter name="a">1</parameter></invoke></minimax:tool_call>',
            "<invoke name=f></invoke></minimax:tool_call></minimax:tool_call>",
            "</minimax:tool_call>",
            "<minimax:tool_call></minimax:tool_call>",
            '<invoke name="">{"name": true}</invoke>',
        ),
    ),
    "deepseek_v4": _DEEPSEEK_V4,
    "deepseek_v41": Family(
        turns=_DEEPSEEK_V4.turns,
        tools=(*SPACED_DSML, "<｜DSML｜tool_calls>"),
        tool_tokens=("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
        calls=(
            '<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n<｜DSML｜ parameter name="a">1</｜DSML｜ parameter>\n'
            "</｜DSML｜ invoke>\n</｜DSML｜ calls>",
            '<｜DSML｜ invoke name="f"></｜DSML｜ invoke>',
        ),
        switches=_DEEPSEEK_V4.switches,
    ),
    "deepseek_r1": _LEGACY,
    "step5": _LEGACY,
    "deepseek_v3": _LEGACY,
    "holo2": _LEGACY,
    "step3": _LEGACY,
    "minimax_m2_append_think": _LEGACY,
    "poolside_v1": Family(turns=("<assistant>", "<user>")),
    "ernie45": Family(
        tools=("<response>", "</response>"),
        tool_tokens=("<response>", "</response>", "<0x0A>"),
        calls=("\n<response>\nfour\n</response>\n",),
    ),
    "hy_v3": Family(
        switches=({"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}, {"reasoning_effort": "none"}),
        init_kwargs=({}, {"token_suffix": ":opensource"}),
    ),
    "hy_v4": Family(
        # It takes its suffix from the first structural token of the vocabulary: its think markers are the only ones.
        tool_tokens=(),
        switches=({"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}, {"reasoning_effort": "none"}),
        init_kwargs=(
            {},
            {"token_suffix": ":6124c78e"},
            {"model_specific_special_tokens": {"think_begin_token": "<think>"}},
        ),
    ),
}
"""Every modelled name."""
