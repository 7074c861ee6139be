"""Rows of the legacy parsers that cut between a start and an end token, and of those that choose one of them."""

from __future__ import annotations

from .row import ParserRow, SwitchKwarg

_BASE = "vllm/reasoning/basic_parsers.py"
_WHOLE = (
    "the last start or end marker of the whole prompt, older turns included: an end means ended, neither means not yet"
)
_GATE = "from the first token where that says ended, else after the generated end marker"
_OFF_GATE = "from the first token while thinking is off or the prompt is closed, else after the generated end marker"
_OFF_WHOLE = f"off: always ended; on: {_WHOLE}"
_HIDDEN = "blind in full mode where the tokenizer flags the markers special"
_LARGE = "a delta that holds the start marker and more text keeps the marker in reasoning"
_THINK = ("<think>",), ("</think>",)


def _source(*modules: str) -> tuple[str, ...]:
    return (*(f"vllm/reasoning/{module}_reasoning_parser.py" for module in modules), _BASE)


def _r1(name: str, architectures: tuple[str, ...]) -> ParserRow:
    return ParserRow(
        name=name,
        family="base-thinking",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning, whatever the kwargs say",
        prompt_rule=_WHOLE,
        gates_grammar=_GATE,
        sources=_source("deepseek_r1"),
        demanded_tokens=("<think>", "</think>"),
        counting="generated-block",
        chunk_invariant=False,
        architectures=architectures,
        modelled=True,
        quirks=("no switch: an answer without thinking is filed as reasoning in full mode", _HIDDEN, _LARGE),
    )


def _delegating(
    name: str,
    default: str,
    architectures: tuple[str, ...],
    *quirks: str,
    module: str = "deepseek_v3",
    rule: str = _OFF_WHOLE,
) -> ParserRow:
    on = default == "on"
    return ParserRow(
        name=name,
        family="delegating",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning; content when thinking is off",
        prompt_rule=rule,
        gates_grammar=_OFF_GATE,
        sources=_source(module, "deepseek_r1", "identity"),
        kwargs=tuple(
            SwitchKwarg(
                kwarg, "on" if on else "off", f"on where it or {other} is true" + (", or both are absent" if on else "")
            )
            for kwarg, other in (("thinking", "enable_thinking"), ("enable_thinking", "thinking"))
        ),
        turn_boundaries=("<assistant>",) if name == "poolside_v1" else (),
        demanded_tokens=("<think>", "</think>", "<assistant>") if name == "poolside_v1" else ("<think>", "</think>"),
        counting="generated-block",
        chunk_invariant=False,
        architectures=architectures,
        modelled=True,
        quirks=(*quirks, "off: every marker stays in content", _HIDDEN, _LARGE),
    )


LEGACY_ROWS: tuple[ParserRow, ...] = (
    _r1(
        "deepseek_r1",
        ("deepseek-r1", "deepseek_v3", "qwq", "intern-s1", "trinity-large-thinking"),
    ),
    _r1("step5", ("step5", "step-5")),
    _delegating(
        "deepseek_v3",
        "off",
        ("deepseek_v3", "deepseek_v32", "deepseek-v3.1", "deepseek-v3.2", "deepseek-v31", "deepseek-v32"),
        "without kwargs it has no markers, so a thinking budget is refused",
    ),
    _delegating("holo2", "on", ("holo2",), "a single false switch turns it off"),
    _delegating(
        "poolside_v1",
        "off",
        ("laguna",),
        "demands <assistant> even when off",
        "without kwargs it has no markers, so a thinking budget is refused",
        module="poolside_v1",
        rule="off: always ended; on: the last of start marker, end marker and <assistant>: only an end means ended",
    ),
    ParserRow(
        name="ernie45",
        family="base-thinking",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning, whatever the kwargs say",
        prompt_rule=_WHOLE,
        gates_grammar=_GATE,
        sources=_source("ernie45"),
        demanded_tokens=("<think>", "</think>"),
        stripped=("<response>", "</response>"),
        counting="generated-block",
        chunk_invariant=False,
        architectures=("ernie4_5_moe_vl", "ernie-4.5"),
        modelled=True,
        quirks=(
            "full mode takes the text between <response> and </response> and drops what surrounds it",
            "streaming strips them only in the delta that holds the end marker, and drops a lone one before it",
            _HIDDEN,
            _LARGE,
        ),
    ),
    ParserRow(
        name="step3",
        family="own",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning, whatever the kwargs say",
        prompt_rule="an end marker anywhere in the prompt means ended, even behind a later start marker",
        gates_grammar=_GATE,
        sources=_source("step3"),
        demanded_tokens=("</think>",),
        counting="to-end",
        architectures=("step3", "step3_vl"),
        modelled=True,
        quirks=("a generated <think> stays inside reasoning", _HIDDEN),
    ),
    ParserRow(
        name="hy_v3",
        family="base-thinking",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning; content when thinking is off",
        prompt_rule=_OFF_WHOLE,
        gates_grammar=_OFF_GATE,
        sources=_source("hy_v3", "identity"),
        kwargs=(SwitchKwarg("reasoning_effort", "off", "absent or no_think is off; all else, `none` too, is on"),),
        demanded_tokens=("<think>", "</think>"),
        counting="generated-block",
        chunk_invariant=False,
        architectures=("hy_v3", "hy3"),
        modelled=True,
        quirks=(
            "its markers carry the tokenizer's token_suffix: <thinkSUFFIX>",
            "demands its markers even when off",
            "off: usage still counts a generated block",
            _HIDDEN,
            _LARGE,
        ),
    ),
    ParserRow(
        name="hy_v4",
        family="own",
        start=_THINK[0],
        end=_THINK[1],
        truncation="reasoning; content when thinking is off",
        prompt_rule=_OFF_WHOLE,
        gates_grammar=_OFF_GATE,
        sources=_source("hy_v4"),
        kwargs=(SwitchKwarg("reasoning_effort", "on", "no_think is off; all else, `none` too, is on"),),
        demanded_tokens=("<think>", "</think>"),
        counting="to-end",
        chunk_invariant=False,
        architectures=("hy_v4", "hy4"),
        modelled=True,
        quirks=(
            "its markers carry the suffix that the vocabulary's own markers have: <think:SUFFIX>",
            "refuses a tokenizer that names think_begin_token in model_specific_special_tokens",
            _HIDDEN,
            _LARGE,
        ),
    ),
    ParserRow(
        name="minimax_m2_append_think",
        family="own",
        start=_THINK[0],
        end=_THINK[1],
        truncation="content",
        prompt_rule=_WHOLE,
        gates_grammar=_GATE,
        sources=("vllm/reasoning/minimax_m2_reasoning_parser.py",),
        added=("<think>",),
        counting="none",
        architectures=("minimax_m2", "minimax-m2"),
        modelled=True,
        quirks=(
            "splits nothing: content is <think> and the whole output, reasoning is always null",
            "streaming adds no <think> behind a closed prompt",
            "a thinking budget is refused",
        ),
    ),
)
