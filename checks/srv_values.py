"""SRV rules on the values of flags: those that vLLM's argument parser, or its start, refuses."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .. import versions
from ..budgets.dialects import EFFORTS
from ..budgets.document import Node
from ..errors import InputError
from ..serve.command import ServeCommand
from ..serve.options import takes_no_value
from .facts import AuditFacts
from .finding import Finding, Location, Severity
from .rule import Rule, register
from .srv_flags import command_of

JSON_OBJECTS = (
    "default-chat-template-kwargs", "override-generation-config", "reasoning-config", "reasoning-effort-map",
    "structured-outputs-config", "speculative-config",
)  # fmt: skip
"""Flags that take a JSON object, as far as something here reads them."""
_KEYS: Mapping[str, frozenset[str]] = {
    "reasoning-config": frozenset({"reasoning_parser", "reasoning_start_str", "reasoning_end_str"}),
    "structured-outputs-config": frozenset(
        {
            "backend", "disable_any_whitespace", "disable_additional_properties", "reasoning_parser",
            "reasoning_parser_plugin", "enable_in_reasoning",
        }
    ),
}  # fmt: skip
"""Keys that these take, and no others (config/reasoning.py and structured_outputs.py, 0.32.0 and 0.33.0)."""
_KEYS_SINCE: versions.Version = (0, 32, 0)
_NO_VALUE_SINCE: versions.Version = (0, 10, 0)
"""Older releases have switches that take `true` and `false`."""
_JSON_HINT = "write a JSON object in single quotes: '{\"key\": true}'"
_TRUTHS = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that is wrong. `starts`: the server starts with it all the same."""

    flag: str
    message: str
    hint: str
    location: Location
    starts: bool = False

    @property
    def severity(self) -> Severity:
        return "warning" if self.starts else "error"


@register
class ValueRefused(Rule):
    id = "SRV214"
    slug = "value-refused"
    severity = "error"
    what = (
        "Fires for a flag whose value the target refuses: none where one is needed, one where none is taken, no JSON, "
        "a key that the configuration does not have, an effort that is none. A warning for a key that is given twice."
    )
    why = (
        "vLLM's argument parser stops (`ignored explicit argument`, `unrecognized arguments`, `invalid loads value`), "
        "or its configuration does (`unexpected_keyword_argument`, `has unknown efforts`): the server does not start."
    )
    example = 'vllm serve m --enable-auto-tool-choice=true --reasoning-config \'{"think_start_str": "<think>"}\''
    instead = "Write switches alone, JSON objects in single quotes, and the keys that `vllm serve --help` lists."
    versions = "every release; keys of configurations and the effort map as in 0.32 and 0.33"
    sources = (
        "vLLM 0.32.0 and 0.33.0, every case put to its own argument parser",
        "vLLM 0.33.0 vllm/entrypoints/common/cli_args.py validate_reasoning_effort_map",
    )

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        for fault in value_faults(command, facts.target.version) if command is not None else ():
            yield cls.finding(
                fault.message,
                hint=fault.hint,
                severity=fault.severity,
                subject=facts.subject(key=f"--{fault.flag}"),
                location=fault.location,
                evidence={"because": "the last one counts" if fault.starts else "the server does not start with it"},
            )


def value_faults(command: ServeCommand, version: versions.Version) -> Iterator[Fault]:
    """What is wrong with the values of a vLLM command, in this release."""
    for error in command.broken:
        place = Location(error.source or command.location.path, error.line or 1, error.column or 1)
        text = error.message
        flag = text.lstrip("'\"").partition(" ")[0].lstrip("-").rstrip(":")
        yield Fault(flag, text, error.mend or "write the value behind the flag", place)
    strict = replace(command, forgiving=False)
    for flag in JSON_OBJECTS:
        if flag in command.flags or any(name.startswith(f"{flag}.") for name in command.flags):
            yield from _json_faults(strict, flag, version)
    yield from _switches(command, version)
    try:
        _ = strict.max_model_len
    except InputError as error:
        if not command.hidden("max-model-len"):
            yield _as_fault("max-model-len", error, command)


def _as_fault(flag: str, error: InputError, command: ServeCommand) -> Fault:
    place = command.place(flag)
    at = Location(error.source or place.path, error.line or place.line, error.column or place.column)
    return Fault(flag, f"--{flag}: {error.message}".replace(f"--{flag}: --{flag}", f"--{flag}"), error.mend or "", at)


def _json_faults(command: ServeCommand, flag: str, version: versions.Version) -> Iterator[Fault]:
    if command.hidden(flag) or not versions.holds("flag", flag, version):
        return  # SRV201 says that there is no such flag
    try:
        node = command.document(flag)
    except InputError as error:
        text = command.flags[flag].value if flag in command.flags else None
        quoted = (text or "").strip()[:1] in ("'", '"')
        hint = "take the quotes inside away: there is no shell that would" if quoted else _JSON_HINT
        yield replace(_as_fault(flag, error, command), hint=hint)
        return
    if node is None:
        return
    try:
        command.json(flag)
    except InputError as error:
        yield replace(_as_fault(flag, error, command), starts=True)
    if flag == "reasoning-effort-map":
        yield from _effort_faults(node)
    known = _KEYS.get(flag)
    if known is None or not _KEYS_SINCE <= version <= versions.NEWEST:
        return
    for key, entry in node.fields().items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            mend = f"write {near[0]}" if near else f"it takes {', '.join(sorted(known))}"
            yield Fault(flag, f"--{flag} has no key {key!r}: the server does not start", mend, entry.location)


def _effort_faults(node: Node) -> Iterator[Fault]:
    flag = "reasoning-effort-map"
    for key, entry in node.fields().items():
        if key not in EFFORTS:
            near = difflib.get_close_matches(key, EFFORTS, 1)
            mend = f"write {near[0]}" if near else f"its keys are {', '.join(EFFORTS)}"
            yield Fault(flag, f"--{flag} maps {key!r}, which is no effort: no start", mend, entry.location)
        elif not isinstance(entry.value.scalar, str):
            message = f"--{flag} must map reasoning efforts to strings: the server does not start"
            yield Fault(flag, message, f'write {{"{key}": "high"}}', entry.value.location)


def _switches(command: ServeCommand, version: versions.Version) -> Iterator[Fault]:
    """A value given to a flag that takes none: `--flag=true`, or `--flag true`."""
    for flag in command.flags.values():
        if flag.value is None or flag.dynamic or "." in flag.name or not _takes_none(flag.name, version):
            continue
        shown = flag.value if flag.value.lower() in _TRUTHS else "..."
        off = flag.value.lower() in ("false", "0", "no", "off")
        bare = flag.name.removeprefix("no-")
        write = f"write --{flag.name} alone" if not off else f"take it away, or write --no-{bare}"
        message = f"--{flag.name}={shown}: this flag takes no value, and the server does not start"
        yield Fault(flag.name, message, write, flag.location)
    before = None
    taken = command.model is not None and "model" not in command.flags
    for word in command.words:
        text = word.text
        if before is not None and text.lower() in _TRUTHS and not (taken and text == command.model):
            message = f"{text!r} behind --{before}, which takes no value: the server does not start"
            yield Fault(before, message, "take it away", word.location)
        name = text[2:].replace("_", "-") if text.startswith("--") else ""
        before = name if name and _takes_none(name, version) else None


def _takes_none(name: str, version: versions.Version) -> bool:
    return takes_no_value(name) and (version >= _NO_VALUE_SINCE or name == "enable-auto-tool-choice")


@register
class ToolParserUnknown(Rule):
    id = "SRV215"
    slug = "tool-parser-unknown"
    severity = "error"
    what = (
        "Fires for --enable-auto-tool-choice with a --tool-call-parser that the target does not register and no plugin "
        "brings."
    )
    why = (
        "vLLM looks the name up when it starts, and stops: `requires tool_parser:'...' which has not been registered`."
    )
    example = "vllm serve m --enable-auto-tool-choice --tool-call-parser herms"
    instead = "Use one of the near names, or load the plugin that registers it with --tool-parser-plugin."
    sources = (
        "vLLM 0.33.0 vllm/parser/parser_manager.py get_tool_parser",
        "vLLM vllm/tool_parsers/__init__.py of every release from 0.7 to 0.33",
    )
    facts = ("tool-parser *",)

    @classmethod
    def check(cls, facts: AuditFacts) -> Iterator[Finding]:
        command = command_of(facts)
        if command is None or not command.enable_auto_tool_choice or facts.target.version < versions.OLDEST:
            return
        name = command.tool_call_parser
        known = versions.names("tool-parser", facts.target.version)
        plugin = facts.tool_plugin
        if name is None or name in known or (plugin is not None and plugin.brings(name) is not False):
            return
        rows = versions.rows("tool-parser", name)
        near = difflib.get_close_matches(name, known, 2, 0.6)
        if rows:
            hint = f"vLLM has it in {', '.join(row.range_text for row in rows)}"
        elif plugin is not None:
            had = ", ".join(plugin.names) or "no tool parser"
            hint = plugin.problem or f"{plugin.given} registers {had}"
        elif near:
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = f"the target has {', '.join(known)}"
        yield cls.finding(
            f"{facts.target} registers no tool parser {name!r}: the server does not start",
            hint=hint,
            confidence=facts.version_confidence,
            subject=facts.subject(key="--tool-call-parser"),
            location=command.place("tool-call-parser"),
            evidence={"because": f"{name!r} is none of the names the target registers"},
        )
