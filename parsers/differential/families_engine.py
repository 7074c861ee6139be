"""What the parsers of vLLM's parser engine look for."""

from __future__ import annotations

from .family import QWEN_TOOLS, Family

_GLM_TURNS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
_DSML = tuple(
    f"<{slash}｜DSML｜{name}" for slash in ("", "/") for name in ("tool_calls>", 'invoke name="', "parameter")
)
_SPACED_DSML = tuple(
    f"<{slash}｜DSML｜ {name}" for slash in ("", "/") for name in ("calls>", 'invoke name="', "parameter")
)

_GLM_53 = "[gMASK]<sop>Reasoning Effort: {{ e }}<tool_call><arg_key><arg_value>"
_GLM = Family(
    turns=_GLM_TURNS,
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
    tools=(*_DSML, "<｜DSML｜toolcalls>", "<｜DSML｜tool>"),
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

ENGINE_FAMILIES: dict[str, Family] = {
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
        tools=(*_SPACED_DSML, "<｜DSML｜tool_calls>"),
        tool_tokens=("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
        calls=(
            '<｜DSML｜ calls>\n<｜DSML｜ invoke name="f">\n<｜DSML｜ parameter name="a">1</｜DSML｜ parameter>\n'
            "</｜DSML｜ invoke>\n</｜DSML｜ calls>",
            '<｜DSML｜ invoke name="f"></｜DSML｜ invoke>',
        ),
        switches=_DEEPSEEK_V4.switches,
    ),
}
