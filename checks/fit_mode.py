"""FIT116: the mistral parser beside a tokenizer of another kind."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register
from .srv_flags import command_of


@register
class MistralTokenizerMode(Rule):
    id = "FIT116"
    slug = "mistral-tokenizer-mode"
    severity = "warning"
    what = "Fires for the mistral parser where neither --tokenizer-mode mistral nor the model brings mistral-common."
    why = (
        "With a Hugging Face tokenizer the parser takes its generic path: reasoning is still split, and the grammar "
        "that enforces tool_choice and allows one thought before it is silently gone."
    )
    example = "vllm serve mistralai/Magistral-Small --reasoning-parser mistral --tool-call-parser mistral"
    instead = "Add --tokenizer-mode mistral (and --config-format mistral --load-format mistral for such checkpoints)."
    versions = "0.27 and later (before, the parser refused another tokenizer)"
    sources = ("vLLM 0.33.0 vllm/parser/mistral.py", "vLLM 0.33.0 vllm/tokenizers/registry.py")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or facts.configured != "mistral" or command.hidden("tokenizer-mode"):
            return
        mode = command.text("tokenizer-mode") or "auto"
        model = facts.survey.model if facts.survey is not None else None
        by_library = model is not None and model.coded is not None  # what `auto` finds is mistral-common's own
        if mode == "mistral" or (mode == "auto" and by_library):
            return
        yield cls.finding(
            f"the mistral parser with --tokenizer-mode {mode}: tool_choice is not enforced by a grammar",
            hint="add --tokenizer-mode mistral",
            confidence="high" if model is not None else "medium",
            subject=facts.subject(parser="mistral"),
            location=command.place("tokenizer-mode" if "tokenizer-mode" in command.flags else "reasoning-parser"),
            evidence={"because": "the grammar is built by mistral-common, which another tokenizer does not have"},
        )
