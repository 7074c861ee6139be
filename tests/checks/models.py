"""Small made-up models for the audit's tests: templates of a few lines, a byte-level tokenizer with given markers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from reasonctl.checks.audit import audit, findings
from reasonctl.checks.facts import AuditFacts, ServerFacts
from reasonctl.checks.finding import Finding, Location
from reasonctl.parsers import Target
from reasonctl.prompts.model import Model, Template, load_model

CHATML_SPECIAL = ("<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")
TOOL = ("<tool_call>", "</tool_call>")

SILENT = "{# answers with <think> … </think> #}"
OPEN = "<think>\n"
SWITCH = "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
OPEN_SWITCH = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
)
BARE_SWITCH = "{% if thinking %}<think>{% else %}</think>{% endif %}"


def chatml(tail: str = "", *, head: str = "", keeps: bool = False, tools: bool = False) -> str:
    """A ChatML template.

    Args:
        tail: Jinja that ends the generation prompt.
        head: Jinja that stands first.
        keeps: earlier assistant turns keep `<think>…</think>`; without it their reasoning is dropped.
        tools: offered tools are written into a system turn, with Hermes' markers.
    """
    thought = "{% if m.reasoning %}<think>\n{{ m.reasoning }}\n</think>\n\n{% endif %}" if keeps else ""
    offered = "<|im_start|>system\nCall with <tool_call>…</tool_call>: {{ tools | tojson }}<|im_end|>\n"
    return (
        head
        + ("{% if tools %}" + offered + "{% endif %}" if tools else "")
        + "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        + "{% if m.role == 'assistant' %}"
        + thought
        + "{% endif %}{{ m.content or '' }}<|im_end|>\n{% endfor %}"
        + "{% if add_generation_prompt %}<|im_start|>assistant\n"
        + tail
        + "{% endif %}"
    )


HARMONY = (
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content or '' }}<|end|>{% endfor %}"
    "{# channels: analysis, final; <|channel|> #}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)


@dataclass(frozen=True)
class Judged:
    """An audit's facts and findings."""

    facts: AuditFacts
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[str]:
        return [finding.rule for finding in self.findings if finding.severity == "error"]

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings]

    def get(self, rule: str) -> Finding:
        """The one finding of a rule."""
        (found,) = [finding for finding in self.findings if finding.rule == rule]
        return found


def lone(
    template: str,
    parser: str | None = "auto",
    *,
    source: str = "some-model",
    model_type: str | None = None,
    architectures: Sequence[str] = (),
    target: Target | None = None,
    server: ServerFacts | None = None,
    asked: Sequence[Mapping[str, Any]] = (),
) -> Judged:
    """Audit a template that came without a tokenizer."""
    used = Template(template, origin="chat_template.jinja")
    model = Model(
        source=source,
        kind="template",
        path=None,
        model_type=model_type,
        architectures=tuple(architectures),
        template=used,
        templates=(used,),
        tokenizer_problem="a lone file has no tokenizer",
    )
    return judge(model, parser, target=target, server=server, asked=asked)


def judge(
    model: Model,
    parser: str | None,
    *,
    target: Target | None = None,
    server: ServerFacts | None = None,
    asked: Sequence[Mapping[str, Any]] = (),
) -> Judged:
    """Audit a loaded model."""
    facts = audit(model, source=model.source, parser=parser, target=target or Target(), server=server, asked=asked)
    return Judged(facts, tuple(findings(facts)))


def server(parser: str | None, *, tools: bool = False, **more: Any) -> ServerFacts:
    """A serve command with its parser's flag at line 3."""
    return ServerFacts(
        name="vllm",
        location=Location("serve.sh", 1, 1),
        reasoning_parser=parser,
        reasoning_parser_at=Location("serve.sh", 3, 5),
        tools=tools,
        **more,
    )


def folder(
    path: Path,
    template: str,
    *,
    plain: Sequence[str] = (*THINK, *TOOL),
    special: Sequence[str] = CHATML_SPECIAL,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """A model folder: every byte a token, `plain` and `special` markers one token each.

    Args:
        path: the folder to make.
        template: text of chat_template.jinja.
        plain: added tokens that decoding keeps.
        special: added tokens that decoding leaves out by default; the last ends a turn.
        config: config.json.
    """
    path.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: index for index, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in special])
    tokenizer.add_tokens([AddedToken(text, special=False) for text in plain])
    tokenizer.save(str(path / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": special[-1] if special else None}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "config.json").write_text(
        json.dumps(config or {"model_type": "made_up", "architectures": ["MadeUpForCausalLM"]})
    )
    (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    return path


def judge_folder(path: Path, parser: str | None, **more: Any) -> Judged:
    """Audit a model folder."""
    return judge(load_model(str(path)), parser, **more)
