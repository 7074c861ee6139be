"""TPL rules on earlier reasoning: what the template does with it, and whether the server hands it over at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import versions
from ..prompts.history import History
from .evidence import said
from .facts import AuditFacts
from .finding import Finding
from .rule import Rule, register

_HANDED = "vLLM 0.33.0 vllm/renderers/chat_utils/chat_message.py; entrypoints/chat_utils.py since 0.11.1"


@register
class LlamaCppStateDiffers(Rule):
    id = "TPL013"
    slug = "llamacpp-state-differs"
    severity = "info"
    what = (
        "Says that llama.cpp's default leaves another state than vLLM's: llama.cpp renders with enable_thinking=true "
        "unless told otherwise, vLLM leaves the variable undefined. Rendered here with that default in Jinja, not by "
        "llama.cpp's own engine."
    )
    why = "The same model thinks on one server and not on the other, for the same request."
    example = "a template that thinks only `if enable_thinking is defined and enable_thinking`"
    instead = "Send enable_thinking in every request, or set it on both servers."
    versions = "every vLLM; llama.cpp since --jinja"
    sources = ("llama.cpp common/chat.cpp (enable_thinking defaults to true)", "vLLM 0.33.0 renderers/hf.py")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        plain, given = facts.plain(), None
        if facts.survey is not None and "enable_thinking" in facts.survey.reads:
            given = facts.survey.get("single_turn", {"enable_thinking": True})
        if plain is None or given is None or "error" in (plain.state, given.state) or plain.state == given.state:
            return
        if facts.server is not None and "enable_thinking" in facts.server.default_kwargs:
            return
        yield cls.finding(
            f"a plain request leaves {plain.state} on vLLM and {given.state} with llama.cpp's default",
            hint="send enable_thinking in every request, or set it on both servers",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"prompt": plain.tail, "llama_cpp": given.tail},
        )


@register
class HistoryDropsThinking(Rule):
    id = "TPL015"
    slug = "history-drops-thinking"
    severity = "info"
    what = (
        "Says what happens to earlier reasoning: inside a tool loop, on the next user turn, by the field it is handed "
        "over in (`reasoning`, `reasoning_content`, inline), and which kwarg of the template decides about it."
    )
    why = (
        "A model that thinks between tool calls plans on what it thought before; a template that drops it makes it "
        "start again, or call the same tool twice. Of 725 hub templates 162 keep it in a tool loop, and 115 of those "
        "drop it on the next user turn, as their models were trained."
    )
    example = "Qwen3: kept in a tool loop, dropped as soon as the user says something"
    instead = "Hand reasoning back in the loop; set the template's own switch where it has one."
    sources = (_HANDED, "Hub templates as of the corpus in docs")
    facts = ("history-handed-on",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        rows = facts.survey.history if facts.survey is not None else ()
        handed = [row for row in rows if row.field != "inline"]  # vLLM hands both names over: the better one counts
        places = [{row.tool_loop for row in handed}, {row.next_user_turn for row in handed}]
        if not facts.thinks or not any("dropped" in fates and "kept" not in fates for fates in places):
            return
        switches = [
            {"variant": {name: value}, "history": [row.as_json() for row in under]}
            for name, value, under in (facts.survey.kept_by if facts.survey is not None else ())
            if [row.as_json() for row in under] != [row.as_json() for row in rows]
        ]
        moved = "; ".join(f"{said(switch['variant'])} changes that" for switch in switches)  # type: ignore[arg-type]
        yield cls.finding(
            f"earlier reasoning: {_in_words(rows)}" + (f"; {moved}" if moved else ""),
            hint="hand reasoning back inside tool loops, in a field the template keeps",
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"history": [row.as_json() for row in rows], "switches": switches},
        )


def _in_words(rows: tuple[History, ...]) -> str:
    """`reasoning kept in a tool loop, dropped on the next user turn; inline dropped, dropped`."""
    alike: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        alike.setdefault((row.tool_loop, row.next_user_turn), []).append(row.field)
    return "; ".join(
        f"{', '.join(fields)}: {loop} in a tool loop, {turn} on the next user turn"
        for (loop, turn), fields in alike.items()
    )


_OTHER_FIELDS = re.compile(
    r"""(?:message|m|msg)(?:\.|\[['"]|\.get\(['"])(thinking|thought|thoughts|reasoning_text|reasoning_details|thinking_content)\b"""
)
_SERVED_FIELDS = re.compile(r"""(?:\.|\[['"]|get\(['"])(reasoning|reasoning_content)\b""")


@register
class HistoryFieldUnread(Rule):
    id = "TPL016"
    slug = "history-field-unread"
    severity = "warning"
    what = (
        "Fires where earlier reasoning does not reach the template: the target hands none on (before 0.11.1), does not "
        "take the field that the given requests use (reasoning_content from 0.16 to 0.21), or hands it over under "
        "names the template does not read."
    )
    why = "A model trained to think between tool calls loses its thoughts, without an error anywhere."
    example = "messages with reasoning_content, sent to vLLM 0.18: the template sees none of it"
    instead = "Send `reasoning`; use vLLM 0.22 or later, which takes both; or a template that reads `reasoning`."
    versions = "before 0.11.1; 0.16 to 0.21 for reasoning_content"
    sources = (_HANDED, "vLLM 0.33.0 entrypoints/openai/chat_completion/protocol.py _normalize_messages_before")
    facts = ("history-handed-on", "history-in-reasoning_content")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        model = facts.survey.model if facts.survey is not None else None
        if model is None or model.template is None or not facts.thinks or facts.thinking.harmony:
            return
        text = model.prompt_text
        reads = sorted(set(_SERVED_FIELDS.findall(text)))
        other = sorted(set(_OTHER_FIELDS.findall(text)))
        version = facts.target.version if facts.target.product == "vllm" else versions.NEWEST
        told = _untold(facts, version, reads, other)
        if told is None:
            return
        message, hint = told
        yield cls.finding(
            message,
            hint=hint,
            confidence=facts.template_confidence,
            subject=facts.subject(),
            location=facts.template_at,
            evidence={"reads": [*reads, *other]},
        )


def _untold(facts: AuditFacts, version: versions.Version, reads: list[str], other: list[str]) -> tuple[str, str] | None:
    """(message, mend) where earlier reasoning does not reach the template."""
    if reads and not versions.fact("history-handed-on", version):
        return (
            f"{facts.target} hands no earlier reasoning to a template, which reads {' and '.join(reads)}",
            "use vLLM 0.11.1 or later",
        )
    sent = [r for r in facts.requests or () if "reasoning_content" in r.history and "reasoning" not in r.history]
    if reads and sent and not versions.fact("history-in-reasoning_content", version):
        return (
            f"{facts.target} does not take reasoning_content in messages, which {sent[0].name} sends: the template "
            "sees no earlier reasoning",
            "send `reasoning`, or use vLLM 0.22 or later",
        )
    if other and not reads:
        return (
            f"the template reads earlier reasoning from {' and '.join(other)}; {facts.target} hands it over as "
            "reasoning and reasoning_content",
            "let the template read message.reasoning",
        )
    return None
