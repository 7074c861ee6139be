"""What the server does with a request's budget: it grants it, refuses the request, or never reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..checks.finding import Location
from ..parsers.target import Target
from ..serve.command import ServeCommand
from .request import MESSAGES_LEAST, Request
from .versions import ENDPOINT_SINCE, NO_STRINGS, STRINGS_FROM_PARSER, V2_REFUSES

Standing = Literal["granted", "refused", "ignored"]
CONFIG, PARSER, STRUCTURED = "reasoning-config", "reasoning-parser", "structured-outputs-config"


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a serve command has no start and end strings to count between, and what would give it some.

    `parser` is the parser that yields none, `location` the flag to look at (the command where there is none).
    """

    text: str
    mend: str
    location: Location
    parser: str | None = None


def standing(
    request: Request, tokens: int | None, *, command: ServeCommand | None, target: Target
) -> tuple[Standing, str | None]:
    """What becomes of a request that carries a budget, and why where it is refused.

    Args:
        request: the request.
        tokens: its budget, None where the server takes it for no budget at all.
        command: the serve command, where it is known.
        target: the server.
    """
    if request.endpoint == "responses" or request.beam_search:
        return "ignored", None
    if target.product == "vllm" and target.version < ENDPOINT_SINCE[request.endpoint].version:
        return "ignored", None
    if tokens is None:
        return "refused", "the budget is no integer, or below -1"
    if request.endpoint == "messages":
        if tokens < MESSAGES_LEAST:
            return "refused", f"budget_tokens is below {MESSAGES_LEAST}"
        if request.max_tokens is not None and tokens >= request.max_tokens:
            return "refused", "budget_tokens must be less than max_tokens"
    if tokens < 0 or target.product != "vllm" or command is None:  # -1 is no budget to the engine
        return "granted", None
    if command.runner == "v2" and V2_REFUSES[0] <= target.version < V2_REFUSES[1]:
        return "refused", "the V2 model runner of this version takes no budget"
    missing = missing_strings(command, target)
    return ("granted", None) if missing is None else ("refused", missing.text)


def takes_thinking(target: Target) -> bool:
    """Whether this server's /v1/messages looks at `thinking` at all."""
    return target.product != "vllm" or target.version >= ENDPOINT_SINCE["messages"].version


def missing_strings(command: ServeCommand, target: Target) -> Missing | None:
    """Why the engine refuses every budgeted request; None where it takes them, or where nobody can tell from here.

    Sources: vllm/v1/engine/input_processor.py, config/reasoning.py (`initialize_token_ids`), engine/arg_utils.py
    (`_set_default_reasoning_config_args`), 0.32.0 and 0.33.0.
    """
    if command.product != "vllm" or command.hidden(PARSER) or command.hidden(CONFIG):
        return None
    given: dict[str, Any] = command.json(CONFIG, twice=True) or {}
    if given.get("reasoning_start_str") and given.get("reasoning_end_str"):
        return None
    if target.version < STRINGS_FROM_PARSER:
        if command.known(CONFIG):
            return None
        return Missing("no --reasoning-config is given", "add --reasoning-config '{}'", command.location)
    parser = command.reasoning_parser or given.get("reasoning_parser") or None
    if parser is None:
        if not command.hidden(STRUCTURED) and (command.json(STRUCTURED, twice=True) or {}).get("reasoning_parser"):
            return Missing(
                f"the parser is set in --{STRUCTURED} alone, which gives the engine none",
                "set --reasoning-parser",
                command.place(STRUCTURED),
            )
        return Missing("no --reasoning-parser is set", "set --reasoning-parser", command.location)
    if parser in NO_STRINGS:
        return Missing(
            f"the parser {parser} names no start and end strings",
            'give both: --reasoning-config \'{"reasoning_start_str": ..., "reasoning_end_str": ...}\'',
            command.place(PARSER if command.reasoning_parser else CONFIG),
            str(parser),
        )
    return None
