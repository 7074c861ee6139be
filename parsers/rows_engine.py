"""Rows of the parsers that run on vLLM's declarative parser engine (vllm/parser/engine, since 0.24)."""

from __future__ import annotations

from .row import ParserRow, SwitchKwarg

_ADAPTER = "vllm/parser/engine/parser_engine.py"
_TRUNCATION = "reasoning; content when thinking is off"
_SCOPED = (
    "the last of end marker, tool call opening, start marker and turn boundary: an end or a call means ended, "
    "anything else not yet (thinking off: always ended, unless a start marker comes last)"
)
_WHOLE = (
    "the last marker of the whole prompt, older turns included: an end marker or tool call opening means ended "
    "(thinking off: always ended)"
)
_GATE = "from the first token where that says ended, else after the generated end marker or at the tool call"

_ENABLE = SwitchKwarg("enable_thinking", "on", "a false value switches the parser off")
_THINKING = SwitchKwarg("thinking", "on", "on where it or enable_thinking is true, or both are absent")
_ENABLE_TOO = SwitchKwarg("enable_thinking", "on", "on where it or thinking is true, or both are absent")
_FORCE = SwitchKwarg(
    "force_nonempty_content", "off", "true: an empty answer gets the reasoning instead", switches_thinking=False
)
_CHATML = ("<|im_start|>", "<|im_end|>")
_GLM = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
_THINK = ("<think>",), ("</think>",)
_QWEN_CALL = ("<tool_call>", "<function=")


def _engine(
    name: str,
    module: str,
    architectures: tuple[str, ...],
    *,
    markers: tuple[tuple[str, ...], tuple[str, ...]] = _THINK,
    kwargs: tuple[SwitchKwarg, ...] = (_ENABLE,),
    truncation: str = _TRUNCATION,
    implicit_ends: tuple[str, ...] = ("<tool_call>",),
    turn_boundaries: tuple[str, ...] = (),
    tool_markers: tuple[str, ...] = _QWEN_CALL,
    prompt_rule: str | None = None,
    gates_grammar: str = _GATE,
    demanded_tokens: tuple[str, ...] = (),
    stripped: tuple[str, ...] = (),
    needs_start_in_output: bool = False,
    reads_prompt_full: bool | None = None,
    chunk_invariant: bool = True,
    quirks: tuple[str, ...] = (),
) -> ParserRow:
    return ParserRow(
        name=name,
        family="engine",
        start=markers[0],
        end=markers[1],
        truncation=truncation,
        prompt_rule=prompt_rule or (_SCOPED if turn_boundaries else _WHOLE),
        gates_grammar=gates_grammar,
        sources=(f"vllm/parser/{module}.py", _ADAPTER),
        kwargs=kwargs,
        implicit_ends=implicit_ends,
        turn_boundaries=turn_boundaries,
        tool_markers=tool_markers,
        demanded_tokens=demanded_tokens,
        skip_special_tokens=False,
        stripped=stripped,
        needs_start_in_output=needs_start_in_output,
        reads_prompt_full=bool(turn_boundaries) if reads_prompt_full is None else reads_prompt_full,
        counting="engine",
        architectures=architectures,
        chunk_invariant=chunk_invariant,
        modelled=True,
        quirks=quirks,
    )


ENGINE_ROWS: tuple[ParserRow, ...] = (
    _engine(
        "qwen3",
        "qwen3",
        (
            "qwen3",
            "qwen3_moe",
            "qwen3_next",
            "qwen3_vl",
            "qwen3_vl_moe",
            "qwen3_5",
            "qwen3_5_moe",
            "mimo-v2-flash",
            "mellum2",
            "lfm2.5",
        ),
        turn_boundaries=_CHATML,
        quirks=("the kwarg thinking is ignored",),
    ),
    _engine(
        "mimo",
        "mimo",
        ("mimo_v2", "mimo-v2"),
        turn_boundaries=_CHATML,
    ),
    _engine(
        "nemotron_v3",
        "nemotron_v3",
        ("nemotron_h", "nemotron-3", "nemotron"),
        kwargs=(_ENABLE, _FORCE),
        turn_boundaries=_CHATML,
        quirks=(
            "where the request switches thinking off or forces content, and the answer is blank, they change places",
            "an off switch from the server's defaults or from reasoning_effort does not trigger that",
        ),
    ),
    _engine(
        "granite_thinking_parser",
        "granite_thinking",
        ("granite-4.2",),
        kwargs=(_ENABLE, _FORCE),
        turn_boundaries=_CHATML,
        stripped=("\n",),
        quirks=(
            "newlines at the start of the answer are stripped",
            "reasoning becomes content as in nemotron_v3, where there is no answer at all",
        ),
    ),
    _engine(
        "step3p5",
        "step3p5",
        ("step3p5", "step-3.5", "step-3.7"),
        kwargs=(),
        truncation="reasoning, whatever the kwargs say",
        turn_boundaries=_CHATML,
        quirks=("always on: the template has no switch",),
    ),
    _engine(
        "minicpmv",
        "minicpmv",
        ("minicpmv", "minicpm-v"),
        stripped=(
            "<|im_end|>",
            *(f"<reserved_{index}>" for index in range(12, 16)),
            *(f"<|reserved_{index}|>" for index in range(12, 16)),
        ),
        quirks=(
            "off: a block the model opens all the same is dropped in full mode",
            "the unified parser turns a literal backslash-n into a newline outside code and formulas",
        ),
    ),
    _engine(
        "seed_oss",
        "seed_oss",
        ("seed_oss", "seed-oss"),
        markers=(("<seed:think>",), ("</seed:think>",)),
        implicit_ends=("<seed:tool_call>",),
        turn_boundaries=("<seed:bos>", "<seed:eos>"),
        tool_markers=("<seed:tool_call>", "<function="),
    ),
    *(
        _engine(
            name,
            "glm47_moe",
            architectures,
            kwargs=(_THINKING, _ENABLE_TOO),
            turn_boundaries=_GLM,
            tool_markers=("<tool_call>",),
            quirks=("with a GLM-5.3 template in the tokenizer the off switch is ignored",),
        )
        for name, architectures in (
            ("glm45", ("glm4_moe", "glm4v_moe", "glm-4.5", "glm-4.6", "glm-4.7", "glm-5", "macaron")),
            ("glm47", ("glm4_moe_lite", "glm_moe_dsa", "glm-4.7", "glm-5")),
        )
    ),
    _engine(
        "ling3",
        "ling3",
        ("ling-3",),
        kwargs=(_THINKING, _ENABLE_TOO),
        turn_boundaries=_GLM,
        tool_markers=("<tool_call>",),
    ),
    _engine(
        "kimi_k2",
        "kimi_k2",
        ("kimi_k2", "kimi_k25", "kimi-k2"),
        kwargs=(_THINKING, _ENABLE_TOO),
        implicit_ends=("<|tool_calls_section_begin|>",),
        tool_markers=("<|tool_calls_section_begin|>",),
    ),
    _engine(
        "minimax_m2",
        "minimax_m2",
        ("minimax_m2", "minimax-m2"),
        kwargs=(),
        truncation="reasoning, whatever the kwargs say",
        implicit_ends=("<minimax:tool_call>",),
        tool_markers=("<minimax:tool_call>",),
    ),
    *(
        _engine(
            name,
            name,
            architectures,
            kwargs=(
                SwitchKwarg("thinking", "on", "on where it or enable_thinking is true, or neither key is given"),
                SwitchKwarg("enable_thinking", "on", "on where it or thinking is true, or neither key is given"),
                SwitchKwarg("reasoning_effort", "on", "none switches the parser off"),
            ),
            implicit_ends=calls,
            tool_markers=calls,
            quirks=("off: full mode still splits a block the model opens", *quirks),
        )
        for name, architectures, calls, quirks in (
            (
                "deepseek_v4",
                ("deepseek_v4", "deepseek-v4"),
                ("<｜DSML｜tool_calls>", "<｜DSML｜toolcalls>", "<｜DSML｜tool>"),
                (),
            ),
            (
                "deepseek_v41",
                ("deepseek_v41", "deepseek-v4.1"),
                ("<｜DSML｜ calls>",),
                ("the tool call opening is text, not one token",),
            ),
        )
    ),
    _engine(
        "gemma4",
        "gemma4",
        ("gemma4", "gemma-4", "diffusiongemma"),
        markers=(("<|channel>",), ("<channel|>",)),
        kwargs=(SwitchKwarg("enable_thinking", "off", "decides only whether the grammar waits for thinking"),),
        truncation="reasoning behind a generated start marker, else content; streamed, reasoning in an open prompt too",
        implicit_ends=("<|tool_call>",),
        turn_boundaries=("<|turn>", "<|tool_response>"),
        tool_markers=("<|tool_call>",),
        stripped=("thought\n",),
        reads_prompt_full=False,
        quirks=(
            "strips the label thought and its newline",
            "reads an open prompt when streaming only; full mode looks for the end marker or the label",
            "off, the default: a stream behind a prompt without markers passes everything on, markers included",
            "a streamed delta that ends in the middle of the label is lost with the answer in it",
        ),
    ),
    _engine(
        "inkling",
        "inkling",
        ("inkling",),
        markers=(("<|content_thinking|>",), ("<|end_message|>",)),
        kwargs=(),
        truncation="content unless a thinking header is generated; streamed: reasoning where the prompt is open",
        implicit_ends=(),
        tool_markers=("<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>"),
        prompt_rule="the last of thinking, model and text header and end of sampling: the last two mean ended",
        gates_grammar="from the first token behind a text header, else after thinking",
        stripped=(
            "<|message_model|>",
            "<|content_text|>",
            "<|end_message|>",
            "<|content_model_end_sampling|>",
            "<|content_tool_error|>",
        ),
        needs_start_in_output=True,
        reads_prompt_full=False,
        chunk_invariant=False,
        quirks=(
            "blocks carry their own headers and may repeat in any order",
            "streamed, everything behind the first text header is content, the markers too",
        ),
    ),
    _engine(
        "mistral",
        "mistral",
        ("mistral3", "magistral", "ministral-3", "mistral-small-4", "mistral-medium-3.5"),
        markers=(("[THINK]", "<think>"), ("[/THINK]", "</think>")),
        kwargs=(),
        truncation="content unless [THINK] is generated",
        implicit_ends=("[TOOL_CALLS]",),
        tool_markers=("[TOOL_CALLS]",),
        demanded_tokens=("[TOOL_CALLS]",),
        needs_start_in_output=True,
        reads_prompt_full=False,
        quirks=(
            "markers follow the tokenizer: [THINK] tokens, <think> texts (mistral-common's own of version 11) or none",
            "with mistral-common's own tokenizer of version 11 or later the request keeps its skip_special_tokens",
            "with such a tokenizer and mistral-common 1.13.1, vLLM 0.32.0 and 0.33.0 refuse every chat request",
        ),
    ),
    _engine(
        "plamo3",
        "plamo3",
        ("plamo3", "plamo-3"),
        markers=(("<|plamo:begin_think:plamo|>",), ("<|plamo:end_think:plamo|>",)),
        implicit_ends=("<|plamo:begin_tool_requests:plamo|>",),
        tool_markers=("<|plamo:begin_tool_requests:plamo|>",),
        prompt_rule="its markers are several tokens each and are looked for as token runs, over the whole prompt",
        stripped=("<|plamo:tag|>",),
    ),
)
