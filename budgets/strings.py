"""Between which strings a server counts thinking tokens, which it forces, and which model runner does so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import versions
from ..checks.finding import Location
from ..parsers.table import ROWS
from ..parsers.target import Target
from ..serve.command import ServeCommand
from .counting import Rule

CONFIG, PARSER, STRUCTURED = "reasoning-config", "reasoning-parser", "structured-outputs-config"
SPECULATIVE = "speculative-config"
Runner = Literal["v1", "v2"]

_BY_TOKENIZER = frozenset({"beam", "hf", "hy_v3", "hy_v4", "mistral"})
"""Parsers whose strings depend on the tokenizer: its response template, its suffix, its encoding of thinking."""
_DENSE = frozenset(
    {
        "Ernie4_5ForCausalLM", "Gemma3ForCausalLM", "Glm4ForCausalLM", "GraniteForCausalLM",
        "HunYuanDenseV1ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "Olmo2ForCausalLM",
        "Olmo3ForCausalLM", "Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "SeedOssForCausalLM",
    }
)  # fmt: skip
"""Architectures that are neither mixtures of experts nor hybrid."""
_V1_ONLY_DRAFTS = ("suffix", "custom_class")
_V1_ONLY_DRAFTS_BEFORE = ("ngram", "ngram_gpu", "medusa", "mlp_speculator", "draft_model")
"""Ways of speculative decoding that the V2 runner does not have; the latter up to 0.28."""


@dataclass(frozen=True, slots=True)
class Strings:
    """The strings a server's counter goes by.

    Attributes:
        start: what opens a block.
        natural: what the counter takes for the end of one that the model ends itself; the forced text, where it knows
            no other.
        forced: what is written when the budget is used up.
        parser_end: the parser's own end marker, None without a parser that names one.
        parser: the reasoning parser, None without.
        location: where to mend them.
    """

    start: str
    natural: str
    forced: str
    parser_end: str | None
    parser: str | None
    location: Location


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a serve command has no start and end strings to count between, and what would give it some.

    `parser` is the parser that yields none, `location` the flag to look at (the command where there is none).
    """

    text: str
    mend: str
    location: Location
    parser: str | None = None


def strings_of(command: ServeCommand, target: Target) -> Strings | Missing | None:
    """What the engine counts between; Missing where it refuses every budget; None where nobody can tell from here.

    Sources: vllm/v1/engine/input_processor.py, config/reasoning.py (`initialize_token_ids`), engine/arg_utils.py
    (`_set_default_reasoning_config_args`), 0.32.0 and 0.33.0.
    """
    if command.hidden(PARSER) or command.hidden(CONFIG):
        return None
    given: dict[str, Any] = command.json(CONFIG, twice=True) or {}
    start, end = (_text(given, f"reasoning_{which}_str") for which in ("start", "end"))
    vllm = target.product == "vllm" and command.product == "vllm"
    if vllm and not versions.fact("budget-strings-from-parser", target.version):
        if not command.known(CONFIG) and command.open_words:
            return None
        if not command.known(CONFIG):
            return Missing("no --reasoning-config is given", "add --reasoning-config '{}'", command.location)
        end = end or "</think>"
        return Strings(start or "<think>", end, end, None, command.parser_in(target), command.place(CONFIG))
    named = command.parser_in(target)
    parser = named or given.get("reasoning_parser") or None
    own = _parser_strings(str(parser), target) if parser is not None else ("", "")
    if own is None and not (start and end):
        return None  # the tokenizer decides
    own_start, own_end = own or ("", "")
    start, forced = start or own_start, end or own_end
    if start and forced:
        apart = target.product == "vllm" and versions.fact("budget-natural-end", target.version)
        natural = own_end if apart and own_end else forced
        return Strings(start, natural, forced, own_end or None, parser, command.place(CONFIG if end else PARSER))
    if not vllm or (parser is None and command.open_words):
        return None  # what only the shell knows may name one
    if parser is None:
        if not command.hidden(STRUCTURED) and (command.json(STRUCTURED, twice=True) or {}).get("reasoning_parser"):
            return Missing(
                f"the parser is set in --{STRUCTURED} alone, which gives the engine none",
                "set --reasoning-parser",
                command.place(STRUCTURED),
            )
        return Missing("no --reasoning-parser is set", "set --reasoning-parser", command.location)
    return Missing(
        f"the parser {parser} names no start and end strings",
        'give both: --reasoning-config \'{"reasoning_start_str": ..., "reasoning_end_str": ...}\'',
        command.place(PARSER if named else CONFIG),
        str(parser),
    )


def without_strings(target: Target) -> tuple[str, ...]:
    """The parsers that name no strings when the engine builds them, in this release."""
    return tuple(name for name in sorted(ROWS) if _nameless(name, target))


def runner_of(command: ServeCommand | None, target: Target, architectures: Sequence[str] = ()) -> Runner | None:
    """The model runner that will serve, on a GPU; None where it depends on a model that is not known.

    Sources: vllm/config/vllm.py, `use_v2_model_runner`, of every release from 0.22 to 0.33; SlimServe runs V2 unless
    the environment says otherwise.
    """
    if command is not None and command.runner is not None:
        return command.runner
    if target.product != "vllm":
        return "v2"
    if not versions.fact("v2-runner", target.version) or versions.fact("v2-yields-to-budget", target.version):
        return "v1"
    if versions.fact("v2-default", target.version):
        return "v1" if _drafts(command) in _V1_ONLY_DRAFTS else "v2"
    if _drafts(command) in (*_V1_ONLY_DRAFTS, *_V1_ONLY_DRAFTS_BEFORE):
        return "v1"
    if not architectures:
        return None
    if target.version < (0, 24, 0) and command is not None and "quantization" in command.flags:
        return "v1"
    listed = any(versions.holds("fact", f"v2-default-{name}", target.version) for name in architectures)
    if listed or not versions.fact("v2-default-dense", target.version):
        return "v2" if listed else "v1"
    if any(name in _DENSE for name in architectures):
        return "v2"
    return "v1" if any("Moe" in name or "MoE" in name for name in architectures) else None


def counting_rule(target: Target, runner: Runner) -> Rule:
    """How that server counts."""
    if target.product == "slimserve":
        return "slimserve"
    return "vllm-v2" if runner == "v2" else "vllm-v1"


def _text(given: dict[str, Any], key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) else ""


def _drafts(command: ServeCommand | None) -> str | None:
    """The `method` of `--speculative-config`."""
    if command is None or not command.known(SPECULATIVE):
        return None
    method = (command.json(SPECULATIVE, twice=True) or {}).get("method")
    return str(method) if method is not None else None


def _parser_strings(parser: str, target: Target) -> tuple[str, str] | None:
    """What a parser built without kwargs names as its strings, empty for none; None where the tokenizer decides."""
    row = ROWS.get(parser)
    if row is None or parser in _BY_TOKENIZER:
        return None
    if _nameless(parser, target):
        return "", ""
    return next(iter(row.start), ""), next(iter(row.end), "")


def _nameless(parser: str, target: Target) -> bool:
    version = target.version if target.product == "vllm" else versions.NEWEST
    return versions.holds("fact", f"budget-no-strings-{parser}", version)
