"""SRV rules on flags: gone, incomplete, without effect, in each other's way."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from .. import versions
from ..parsers import ROWS, near_names
from ..parsers.target import Target
from ..serve.command import Flag, ServeCommand
from .facts import AuditFacts
from .finding import Finding, Location
from .rule import Rule, register

_ARGUMENTS = "vLLM vllm/engine/arg_utils.py and entrypoints/**/cli_args.py of every release from 0.7 to 0.33"


def command_of(facts: AuditFacts) -> ServeCommand | None:
    """The vLLM command that was given; None without one, or for another product."""
    command = facts.server.command if facts.server is not None else None
    return command if command is not None and command.product == "vllm" and facts.target.product == "vllm" else None


@register
class RemovedFlag(Rule):
    id = "SRV201"
    slug = "removed-flag"
    severity = "error"
    what = "Fires for a flag that the target version does not have: removed, not there yet, or of no release at all."
    why = "vLLM's argument parser stops with `unrecognized arguments`: the server does not start."
    example = "vllm serve Qwen/Qwen3-8B --enable-reasoning --reasoning-parser qwen3      # gone since 0.10"
    instead = (
        "Take the flag away, or write its successor: --enable-reasoning needs none (naming a parser is enough); "
        "--guided-decoding-backend became --structured-outputs-config.backend."
    )
    versions = "0.7 to 0.33, by the table of flags"
    sources = (_ARGUMENTS, "vLLM 0.11.0 release notes (guided decoding became structured outputs)")
    facts = ("flag *",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or facts.target.version < versions.OLDEST:
            return
        for flag in command.flags.values():
            said = _missing(flag, facts.target.version)
            if said is not None:
                message, hint = said
                yield cls.finding(
                    f"{facts.target} has no --{flag.name.partition('.')[0]}: {message}",
                    hint=hint,
                    confidence=facts.version_confidence,
                    subject=facts.subject(key=f"--{flag.name}"),
                    location=flag.location,
                    evidence={"because": "vLLM refuses arguments it does not know, so the server does not start"},
                )


_SUCCESSORS = {
    "enable-reasoning": "take it away: --reasoning-parser alone turns reasoning on",
    "guided-decoding-backend": "write --structured-outputs-config.backend",
    "guided-decoding-disable-fallback": "write --structured-outputs-config.disable_fallback",
    "guided-decoding-disable-any-whitespace": "write --structured-outputs-config.disable_any_whitespace",
    "guided-decoding-disable-additional-properties": "write --structured-outputs-config.disable_additional_properties",
    "task": "write --runner or --convert",
    "device": "take it away: vLLM finds the device itself",
    "disable-log-requests": "take it away: requests are not logged unless --enable-log-requests is given",
    "speculative-model": "write --speculative-config with a model in it",
    "num-speculative-tokens": "write --speculative-config with num_speculative_tokens in it",
    "override-pooler-config": "write --pooler-config",
    "swap-space": "take it away",
}
_UNLISTED = frozenset({"help", "version", "h", "v"})


def _missing(flag: Flag, version: versions.Version) -> tuple[str, str] | None:
    """(what, mend) for a flag that this release does not take; None for one it does."""
    name = flag.name.partition(".")[0]
    if name in _UNLISTED or (flag.dynamic and "$" in name):
        return None
    bare = name.removeprefix("no-")
    for known in (name, bare, f"enable-{name.removeprefix('disable-')}", f"disable-{name.removeprefix('enable-')}"):
        if versions.holds("flag", known, version):
            return None
    rows = versions.rows("flag", name) or versions.rows("flag", bare)
    if rows:
        last = rows[-1]
        if last.until is not None and last.until <= version:
            return f"removed in {versions.shown(last.until)}", _SUCCESSORS.get(bare, "take it away")
        return (
            f"it came with {versions.shown(rows[0].since)}",
            f"use vLLM {versions.shown(rows[0].since)}, or take it away",
        )
    near = difflib.get_close_matches(name, versions.names("flag", version), 2, 0.75)
    mend = f"did you mean {' or '.join(f'--{other}' for other in near)}?" if near else "take it away"
    return "no release from 0.7 to 0.33 knows it", mend


@register
class PluginNotLoaded(Rule):
    id = "SRV202"
    slug = "plugin-not-loaded"
    severity = "error"
    what = (
        "Fires for a parser name that only a plugin can register where none is loaded: without "
        "--reasoning-parser-plugin before 0.30, or with --headless before 0.30."
    )
    why = (
        "The name is looked up before the plugin registers it, or nothing ever does: the server stops with "
        "'Reasoning parser ... not found'. A headless node of a release before 0.30 looks the name up first."
    )
    example = "vllm serve m --headless --reasoning-parser-plugin p.py --reasoning-parser mine      # 0.29: not found"
    instead = (
        "Give --reasoning-parser-plugin FILE; for headless nodes use vLLM 0.30 or later. From 0.30 on an installed "
        "package may register the name by itself: `--vllm` lists what is really registered."
    )
    versions = "before 0.30"
    sources = ("vLLM entrypoints/cli/serve.py run_headless; #53124", "#45241 (entry points)")
    facts = ("headless-plugin", "plugin-entry-points")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        said = plugin_not_loaded(facts)
        if command is None or said is None:
            return
        name = facts.configured
        yield cls.finding(
            said[0],
            hint=said[1],
            subject=facts.subject(parser=name),
            location=command.place("reasoning-parser"),
            evidence={"because": f"{name!r} is no name of vLLM's own in any release up to 0.33"},
        )


def plugin_not_loaded(facts: AuditFacts) -> tuple[str, str] | None:
    """(what, mend) where the configured name is a plugin's and the plugin is not loaded in time; None elsewhere."""
    command = command_of(facts)
    name = facts.configured
    if command is None or name is None or command.parser_in(facts.target) != name or name in facts.registered:
        return None
    if name in ROWS or near_names(name):
        return None
    plugin = "reasoning-parser-plugin" in command.flags
    if plugin and command.on("headless") and not versions.fact("headless-plugin", facts.target.version):
        return (
            f"a headless node of {facts.target} looks {name!r} up before it loads the plugin: it does not start",
            "use vLLM 0.30 or later there, or start the node without --headless",
        )
    if not plugin and not versions.fact("plugin-entry-points", facts.target.version):
        return (
            f"no release of vLLM registers {name!r}, and no plugin is loaded that could",
            "give --reasoning-parser-plugin FILE",
        )
    return None


@register
class ToolFlagsIncomplete(Rule):
    id = "SRV205"
    slug = "tool-flags-incomplete"
    severity = "error"
    what = "Fires for --enable-auto-tool-choice without --tool-call-parser, and (a warning) for the reverse."
    why = (
        "The first does not start: `--enable-auto-tool-choice requires --tool-call-parser`. The second starts, and "
        'every request with tools and tool_choice "auto" is refused with HTTP 400.'
    )
    example = "vllm serve m --reasoning-parser qwen3 --enable-auto-tool-choice"
    instead = "Give both flags, or neither."
    sources = ("vLLM 0.33.0 vllm/entrypoints/common/cli_args.py validate_parsed_serve_args",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None:
            return
        enabled, parser = command.enable_auto_tool_choice, "tool-call-parser" in command.flags
        if enabled and not parser:
            yield cls.finding(
                "--enable-auto-tool-choice without --tool-call-parser: the server does not start",
                hint="add --tool-call-parser NAME, or take --enable-auto-tool-choice away",
                confidence="low" if command.open_words else "high",
                subject=facts.subject(key="--tool-call-parser"),
                location=command.place("enable-auto-tool-choice"),
            )
        elif parser and not enabled:
            yield cls.finding(
                '--tool-call-parser without --enable-auto-tool-choice: requests with tool_choice "auto" are refused',
                hint="add --enable-auto-tool-choice",
                severity="warning",
                confidence="low" if command.open_words else "high",
                subject=facts.subject(key="--enable-auto-tool-choice"),
                location=command.place("tool-call-parser"),
            )


@register
class ParserOnlyInStructuredOutputsConfig(Rule):
    id = "SRV206"
    slug = "parser-only-in-structured-outputs-config"
    severity = "warning"
    what = (
        "Fires where the reasoning parser is named in --structured-outputs-config alone. An error where a thinking "
        "budget is used."
    )
    why = (
        "Responses are split, but the engine learns no start and end string from that place: every request with a "
        "thinking budget is refused with HTTP 400."
    )
    example = "vllm serve m --structured-outputs-config.reasoning_parser qwen3"
    instead = "Name the parser with --reasoning-parser, which sets both."
    versions = "0.11 and later"
    sources = ("vLLM 0.33.0 vllm/engine/arg_utils.py (--reasoning-parser overrides it), config/reasoning.py",)
    facts = ("structured-outputs-parser",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or command.parser_in(facts.target) is not None or facts.unknown is not None:
            return
        name = structured_outputs_parser(command)
        if name is None:
            return
        budgeted = [request for request in facts.requests or () if request.budget is not None]
        if "reasoning-config" in command.flags:
            budgeted = []
        judged = facts.budget.requests if facts.budget is not None and "reasoning-config" not in command.flags else ()
        refused = bool(budgeted) or any(request.refused is not None for request in judged)
        used = f"{len(budgeted)} of the given requests would be refused" if budgeted else "budgets would be refused"
        yield cls.finding(
            f"{name} is named in --structured-outputs-config alone: responses are split, but {used}",
            hint=f"write --reasoning-parser {name}",
            severity="error" if refused else "warning",
            subject=facts.subject(parser=name),
            location=command.place("structured-outputs-config"),
        )


def named_parser(command: ServeCommand, target: Target) -> tuple[str | None, Location]:
    """The reasoning parser that a command names anywhere, and the place of its name (else the command's own)."""
    named = command.parser_in(target)
    if named is not None or "reasoning-parser" in command.flags:
        return named, command.place("reasoning-parser")
    named = structured_outputs_parser(command)
    if named is None:
        return None, command.location
    node = command.document("structured-outputs-config")
    entry = node.get("reasoning_parser") if node is not None else None
    return named, entry.location if entry is not None else command.place("structured-outputs-config")


def structured_outputs_parser(command: ServeCommand) -> str | None:
    """The reasoning parser that `--structured-outputs-config` names."""
    if not command.known("structured-outputs-config"):
        return None
    config = command.json("structured-outputs-config", twice=True) or {}
    name = config.get("reasoning_parser")
    return name if isinstance(name, str) and name else None


@register
class DefaultKwargUnread(Rule):
    id = "SRV207"
    slug = "default-kwarg-unread"
    severity = "warning"
    what = "Fires where --default-chat-template-kwargs names a key that the template does not read."
    why = (
        "The template gets only the variables it declares: the prompt stays as it was. The parser gets every key, so a "
        "thinking switch of another name moves the parser alone."
    )
    example = "--default-chat-template-kwargs '{\"enable_thinking\": false}' with a template that reads `thinking`"
    instead = "Write the name that the template reads."
    sources = ("vLLM 0.33.0 vllm/renderers/hf.py (resolve_chat_template_kwargs)",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        if facts.server is None or facts.survey is None or not facts.survey.states:
            return
        reads = facts.survey.reads
        row = facts.judged.row if facts.judged is not None else None
        for key in facts.server.default_kwargs:
            if key in reads or key == "reasoning_effort":
                continue
            parser_reads = row is not None and key in {kwarg.name for kwarg in row.kwargs}
            switches = sorted(name for name, _, _ in facts.survey.switches)
            near = difflib.get_close_matches(key, reads, 1)
            other = switches[0] if switches and "think" in key else near[0] if near else None
            also = f"; {row.name} reads it, so parser and template part" if parser_reads and row is not None else ""
            beside = other is not None and other in facts.server.default_kwargs
            yield cls.finding(
                f"the template does not read {key}, which --default-chat-template-kwargs sets{also}",
                hint=f"take it away: {other}, which the template reads, stands beside it"
                if beside
                else f"write {other}"
                if other
                else f"take it away: the template reads {', '.join(sorted(reads)) or 'no kwarg'}",
                confidence=facts.template_confidence,
                subject=facts.subject(key=key),
                location=_default_kwarg_at(facts, key),
                evidence={"reads": sorted(reads)},
            )


def _default_kwarg_at(facts: AuditFacts, key: str) -> Location | None:
    command = facts.server.command if facts.server is not None else None
    if command is None:
        return facts.server.location if facts.server is not None else None
    node = command.document("default-chat-template-kwargs")
    entry = node.get(key) if node is not None else None
    return entry.location if entry is not None else command.place("default-chat-template-kwargs")


@register
class TemplateOverridden(Rule):
    id = "SRV209"
    slug = "template-overridden"
    severity = "info"
    what = "Says that --chat-template replaces the model's own template, and which one was audited."
    why = "What is true of the model's own template need not be true of this one, and updates of the model pass it by."
    example = "vllm serve m --chat-template ./tool_chat_template_hermes.jinja"
    instead = "Keep the file beside the command, under review; audit both after a model update."
    sources = ("vLLM 0.33.0 vllm/renderers/hf.py resolve_chat_template",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or "chat-template" not in command.flags:
            return
        template = facts.survey.model.template if facts.survey is not None else None
        audited = template.origin if template is not None else "none: it is not here"
        yield cls.finding(
            f"--chat-template replaces the model's own template (audited: {audited})",
            hint="nothing to do; audit it again when the file changes",
            subject=facts.subject(key="--chat-template"),
            location=command.place("chat-template"),
        )


@register
class ParserPairRefused(Rule):
    id = "SRV210"
    slug = "parser-pair-refused"
    severity = "error"
    what = "Fires for a reasoning parser and a tool parser that the target refuses together: hf or beam with any other."
    why = "vLLM stops with `--reasoning-parser X and --tool-call-parser Y cannot be combined`."
    example = "vllm serve m --reasoning-parser hf --enable-auto-tool-choice --tool-call-parser hermes"
    instead = (
        "Use the tool parser of the same name, which reads the same response template, or another reasoning parser."
    )
    versions = "0.32 and later"
    sources = ("vLLM 0.33.0 vllm/parser/parser_manager.py _compose_parser",)
    facts = ("parsers-cannot-be-combined",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or not versions.fact("parsers-cannot-be-combined", facts.target.version):
            return
        reasoning, tool = command.parser_in(facts.target), command.tool_call_parser
        selected = command.enable_auto_tool_choice and tool is not None and reasoning is not None
        template_parsers = ("hf", "beam")
        if not selected or reasoning == tool or not {reasoning, tool} & set(template_parsers):
            return
        yield cls.finding(
            f"--reasoning-parser {reasoning} and --tool-call-parser {tool} cannot be combined: the server does "
            "not start",
            hint="use the tool parser of the same name, or another reasoning parser",
            subject=facts.subject(parser=reasoning),
            location=command.place("tool-call-parser"),
        )


@register
class WrapperIgnored(Rule):
    id = "SRV213"
    slug = "wrapper-ignored"
    severity = "warning"
    what = "Fires for a variable that another platform than the image's would read: OPTION_* on an SM_VLLM_* image."
    why = "Nothing reads it: the server starts without the flag, and nobody is told."
    example = "an AWS vLLM container with OPTION_REASONING_PARSER=qwen3: it reads SM_VLLM_REASONING_PARSER"
    instead = "Write the variable with the prefix that the image reads."
    sources = ("AWS Deep Learning Containers, vLLM for SageMaker", "DJL LMI, vLLM user guide")

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = facts.server.command if facts.server is not None else None
        for name, variable, platform in command.ignored_env if command is not None else ():
            yield cls.finding(
                f"{name} is set, and this image does not read it: {platform} does",
                hint="write it with the prefix that this image reads (SM_VLLM_ for AWS's vLLM container)",
                subject=facts.subject(key=name),
                location=variable.location,
            )
