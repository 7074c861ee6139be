"""What the parsers of vLLM's parser engine look for."""

from __future__ import annotations

from .families_template import TEMPLATE_FAMILIES
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

_COHERE = Family(
    start="<|START_THINKING|>",
    end="<|END_THINKING|>",
    turns=("<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    tools=(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "<co>",
        "</co: 0:[0]>",
    ),
    tool_tokens=(
        "<|START_ACTION|>",
        "<|END_ACTION|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
    ),
    pieces=("</co: 0:", "[0]>"),
    calls=(
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {"a": 1}}]<|END_ACTION|>',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": 5<|END_ACTION|>',
        "<|START_ACTION|><|END_ACTION|>",
        "<|START_RESPONSE|>It is <co>four</co: 0:[0]>.<|END_RESPONSE|>",
        "<|START_TEXT|>It is <co>four</co: 0:[0,1],1:[2]>.<|END_TEXT|>",
        "<|START_THINKING|>It is <co>four</co: 0:[0]>.<|END_THINKING|>",
    ),
)

_HARMONY = Family(
    start="<|channel|>analysis<|message|>",
    end="<|end|><|start|>assistant<|channel|>final<|message|>",
    think_tokens=(),
    turns=("<turn>",),
    tools=("<|call|>", "<|return|>", "<|constrain|>", " to=functions.f", "<|channel|>commentary"),
    tool_tokens=(),
    calls=(
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
        "<|start|>assistant to=python<|channel|>analysis<|message|>four<|call|>",
        "<|start|>functions.f to=assistant<|channel|>commentary<|message|>{}<|end|>",
    ),
    outputs=(
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>four<|return|>",
        "<|channel|>final<|message|>four<|return|>",
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>commentary to=browser.search<|message|>{}<|call|><|start|>assistant<|channel|>final<|message|>4",
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>analysis<|message|> so 🙂<|end|>",
        "<|channel|>analysis to=container.f <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>analysis<|channel|>commentary<|message|>Hm<|end|>",
        "<|start|>user<|message|>four<|end|><|start|>assistant<|channel|>final json<|message|>four",
        "four and no header",
    ),
    shards=(
        "<|channel|>", "<|start|>", "<|message|>", "<|end|>", "<|start|>assistant", "analysis", "final", "commentary",
        " to=", "functions.f", " to=functions.f", " to=assistant", " to=functions.", "<|constrain|>",
        " <|constrain|>json", " json", "assistant", "user", "<|channel|>commentary", "<|endoftext|>", "=", ".",
        "python", "tool", " final", "\n",
    ),
    placed=(
        (199998, "<|startoftext|>"), (199999, "<|endoftext|>"), (200002, "<|return|>"), (200003, "<|constrain|>"),
        (200005, "<|channel|>"), (200006, "<|start|>"), (200007, "<|end|>"), (200008, "<|message|>"),
        (200012, "<|call|>"), (35644, "analysis"), (17196, "final"), (12606, "comment"), (815, "ary"),
        (173781, "assistant"), (316, " to"), (44580, "functions"), (1196, ".f"), (5701, " json"), (4108, "json"),
        (1428, "user"), (29010, "python"), (46071, "browser"), (6896, "container"), (16718, ".search"),
        (17360, "system"), (77944, "developer"), (198558, "Hm"), (813, " so"), (61745, "four"), (12083, "{}"),
        (29186, " assistant"), (1721, " final"),
    ),
    printable_first=True,
)  # fmt: skip


def _plamo_call(arguments: str, *, name: str | None = "f") -> str:
    named = "" if name is None else f"<|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
    return (
        f"<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>{named}"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
        f"{arguments}<|plamo:end_tool_arguments:plamo|>"
        "<|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>"
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
    "gemma4": Family(
        start="<|channel>",
        end="<channel|>",
        turns=("<|turn>", "<turn|>"),
        tools=("<|tool_call>", "<tool_call|>", "call:", "<|tool_response>", '<|"|>', "thought\n", "thought", ":", "{"),
        tool_tokens=("<|tool_call>", "<tool_call|>", "<|tool_response>", '<|"|>'),
        pieces=("thought", "thought\n", "thou", "ght", "ght\n", "thought\nHm"),
        calls=(
            '<|tool_call>call:f{a:<|"|>x<|"|>,b:1}<tool_call|>',
            "<|tool_call>:f{a:1}<tool_call|>",
            "<|tool_call>call:f(a:1)<tool_call|><|tool_response>",
            "<|tool_call><tool_call|>",
            '<|tool_call>call:{{"name": 5}',
            '<|tool_call>call:{{"name": {"name": " "}}<tool_call|>',
            "<tool_call|>",
            "thought\nI see.<channel|>",
            "<|channel>thought\nI see.<channel|>",
            "<|channel>thought\n<channel|>",
            "<|channel>thought<channel|>thought",
        ),
    ),
    "inkling": Family(
        start="<|content_thinking|>",
        end="<|end_message|>",
        turns=("<|message_user|>", "<|message_model|>"),
        tools=(
            "<|message_model|>",
            "<|content_text|>",
            "<|content_invoke_tool_json|>",
            "<|content_invoke_tool_text|>",
            "<|content_tool_error|>",
            "<|content_model_end_sampling|>",
        ),
        tool_tokens=(
            "<|content_invoke_tool_json|>",
            "<|content_text|>",
            "<|content_invoke_tool_text|>",
            "<|content_tool_error|>",
            "<|content_model_end_sampling|>",
        ),
        calls=(
            '<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {"a": 1}}<|end_message|>',
            '<|content_invoke_tool_json|>{"name": 5}<|content_model_end_sampling|>',
            '<|content_invoke_tool_json|>{"a": 1}<|message_model|>x<|end_message|>',
            "<|message_model|><|content_invoke_tool_text|>x<|end_message|>",
            "<|content_tool_error|>no<|end_message|>",
            "<|message_model|><|content_text|>It is 4.<|end_message|>",
            "<|message_model|>f<|content_text|>It is 4.<|content_model_end_sampling|>",
            "<|message_model|><|content_thinking|>Hm.<|end_message|>",
            "<|content_invoke_tool_json|>x<|message_model|>y<|end_message|>z",
        ),
    ),
    "mistral": Family(
        start="[THINK]",
        end="[/THINK]",
        turns=("[INST]", "[/INST]"),
        tools=("[TOOL_CALLS]", "[ARGS]", "{", "<think>", "</think>"),
        tool_tokens=("[TOOL_CALLS]", "[ARGS]"),
        pieces=("{}", "[{"),
        calls=(
            '[TOOL_CALLS]f[ARGS]{"a": 1}',
            '[TOOL_CALLS]f{"a": 1}',
            '[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[ARGS]{} and more',
            '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}]',
            '[TOOL_CALLS]{"name": 5}',
            "[TOOL_CALLS]",
            "[ARGS]{}",
        ),
    ),
    "cohere_command3": _COHERE,
    "cohere_command4": _COHERE,
    "openai_gptoss": _HARMONY,
    "plamo3": Family(
        start="<|plamo:begin_think:plamo|>",
        end="<|plamo:end_think:plamo|>",
        think_tokens=("<|plamo:begin_", "<|plamo:end_", ":plamo|>"),
        turns=("<|plamo:op|>", "<|plamo:tag|>"),
        tools=(
            *(
                f"<|plamo:{side}_{name}:plamo|>"
                for name in ("tool_requests", "tool_request", "tool_name", "tool_arguments")
                for side in ("begin", "end")
            ),
            "<|plamo:tag|>",
            "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
            "<|plamo:",
            "<|plamo:begin_thi",
        ),
        tool_tokens=("<|plamo:constrain|>", "<|plamo:msg|>"),
        pieces=("think", "tool", "_re", "quests", "<|plamo:", "tool_", "name"),
        calls=(
            _plamo_call('{"a": 1}'),
            _plamo_call('{"name": 5}', name=""),
            _plamo_call('{"name": 5}', name="<|plamo:end_"),
            _plamo_call("{}", name=None),
            _plamo_call("", name=None),
            "<|plamo:begin_tool_requests:plamo|><|plamo:end_tool_requests:plamo|>",
            "<|plamo:begin_tool_requests:plamo|><|plamo:tag|>",
        ),
    ),
    **TEMPLATE_FAMILIES,
}
