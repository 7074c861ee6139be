"""From which version on a server can do what with a thinking budget: the one table of these facts."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Since:
    """A surface of vLLM that takes a budget, the first release that has it, and where that was read."""

    version: Version
    field: str
    source: str

    @property
    def text(self) -> str:
        return f"{self.version[0]}.{self.version[1]}"


ENDPOINT_SINCE = {
    "chat": Since((0, 19, 0), "thinking_token_budget", "entrypoints/openai/chat_completion/protocol.py, wheel 0.19.0"),
    "completions": Since(
        (0, 22, 0), "thinking_token_budget", "entrypoints/openai/completion/protocol.py, wheel 0.22.0"
    ),
    "messages": Since((0, 31, 0), "thinking.budget_tokens", "entrypoints/anthropic/protocol.py, wheel 0.31.0"),
}
"""Endpoints whose requests carry a budget. The Responses API has no such field in any release up to 0.33.0."""

V2_REFUSES: tuple[Version, Version] = ((0, 22, 0), (0, 28, 0))
"""From the first release that could run the V2 model runner beside a reasoning parser up to, not including, the first
whose V2 runner enforces budgets (vLLM #46727, release 0.28): a budgeted request on V2 is refused."""

V2_DEFAULT: Version = (0, 29, 0)
"""The V2 runner is the default from here on (config/vllm.py); before, only VLLM_USE_V2_MODEL_RUNNER=1 chooses it."""

STRINGS_FROM_PARSER: Version = (0, 20, 0)
"""From here on the engine takes the strings it counts between from the parser (config/reasoning.py); 0.19 wants
`--reasoning-config`, whose strings then default to <think> and </think>."""

NO_STRINGS = frozenset(
    {
        "deepseek_v3", "granite", "hunyuan_a13b", "minimax_m2_append_think", "muse", "muse_glimmer", "musespark1x",
        "openai_gptoss", "poolside_v1",
    }
)  # fmt: skip
"""Parsers that name no start and end string when they are built without kwargs, as the engine builds them (vLLM 0.32.0
and 0.33.0, seen). What `hf` and `beam` name depends on the tokenizer."""

SERVER_DEFAULT_DROPPED = "config/model.py, get_diff_sampling_param, 0.33.0 (and every earlier release)"
"""vLLM copies a fixed list of keys out of a generation config; `thinking_token_budget` is not in it."""

SLIMSERVE_SOURCE = "SlimServe docs/reasoning-token-budgets.md (803df5b4) and pull request #13"
SLIMSERVE_LATER = "SlimServe main (3c76699d): scalar defaults only, an explicit null means unlimited"
"""What a later generation of SlimServe does otherwise."""
