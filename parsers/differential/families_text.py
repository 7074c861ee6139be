"""What the parsers outside the parser engine look for."""

from __future__ import annotations

from .family import Family

_LEGACY = Family()

TEXT_FAMILIES: dict[str, Family] = {
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
