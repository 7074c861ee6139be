"""What a configuration is (budget, generation config, requests, serve command), and the budget in it with its place."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ..checks.finding import Location
from ..errors import InputError
from ..serve.command import OtherServer, ServeCommand
from ..serve.commandline import FORMS
from ..serve.read import servers_in
from .curl import read_curl
from .dialects import EFFORTS, Form
from .document import Entry, Node, locator, named, refuse
from .files import read_stdin, read_text
from .json_text import read_json, read_json_values
from .request import BUDGET_KEY, Request, endpoint_of, has_body_key, looks_like_body, wrapped_body
from .toml_text import read_toml
from .yaml_text import read_yaml

READS = (
    "a number, a map of efforts, {'thinking_token_budget': ...}, a generation config, a request body, a curl command, "
    "or a `vllm serve` or `slimserve` command line"
)
REQUESTS = "request bodies (JSON, JSONL), traces or curl commands"
_GENERATION_KEYS = frozenset(
    {
        "bos_token_id",
        "do_sample",
        "eos_token_id",
        "max_length",
        "max_new_tokens",
        "min_p",
        "pad_token_id",
        "presence_penalty",
        "repetition_penalty",
        "temperature",
        "top_k",
        "top_p",
        "transformers_version",
        "_from_model_config",
    }
)
_MANIFEST_KEYS = frozenset({"apiVersion", "kind", "services", "spec", "containers", "override-generation-config"})
_MANIFEST_KEYS |= {"override_generation_config", "reasoning-parser", "reasoning_parser", "applications"}
_SERVER = re.compile(r"\bvllm\b|\bslimserve\b|\bapi_server\b")
_CURL = re.compile(r"(?:^|[\s;&|/])curl(?:\.exe)?\s")
_TOML = re.compile(r"\[\[?\s*[A-Za-z_\"'][\w.\s\"'-]*\]?\]\s*(?:#.*)?$|[\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*\s*=")


@dataclass(frozen=True)
class Config:
    """A configuration. `budget` is the server's default in it, where it has one; `where` says in words where it stood.

    `documents` are all parsed parts (for keys given twice).
    """

    path: str
    form: Form
    location: Location
    where: str
    budget: Node | None = None
    requests: tuple[Request, ...] = ()
    command: ServeCommand | None = None
    documents: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Configs:
    """What a CONFIG value holds: configurations, servers of other engines, and servers that cannot be read."""

    configs: list[Config]
    others: list[OtherServer] = field(default_factory=list)
    unread: list[InputError] = field(default_factory=list)


def read_config(value: str, *, argument: str = "CONFIG") -> Config:
    """Read a CONFIG value: a file, `-` for stdin, or the text itself (a number, JSON, a command line).

    Args:
        value: what was given.
        argument: its name; text given in place of a file has it as the path of its places, as `--serve` has.

    Raises:
        InputError: it cannot be read, is none of the forms, or holds several servers.
    """
    return parse_config(*_text_of(value, argument))


def read_configs(value: str) -> Configs:
    """As `read_config`; of a file with several servers, more than one with a budget or none, one for each.

    Raises:
        InputError: as there, but for several servers, of which one that can be read is enough.
    """
    return _parsed(*_text_of(value, "CONFIG"))


def _text_of(value: str, argument: str) -> tuple[str, str]:
    """The text of a value and the path of its places."""
    if value == "-":
        return read_stdin(), "-"
    if _exists(value):
        return read_text(Path(value), shown=value), value
    if re.fullmatch(r"\s*(?:-?\d+|[{\[].*)\s*", value, re.DOTALL) or (" " in value and _SERVER.search(value)):
        return value, argument
    raise InputError("no such file", source=named(value), mend=f"give a file with {READS}")


def read_requests(value: str) -> tuple[list[Request], list[Node]]:
    """The requests of a `--requests` file, and its documents. Raises InputError where it holds none."""
    text = read_stdin() if value == "-" else read_text(Path(value), shown=value)
    _no_template(text, value, REQUESTS)
    documents, requests = _requests_in(text, value) if text.strip() else ([], [])
    if not requests:
        what = "no request in it" if text.strip() else "it is empty"
        raise InputError(what, source=named(value), mend=f"give {REQUESTS}")
    return requests, documents


def parse_config(text: str, path: str) -> Config:
    """`read_config` for text that is already read; `path` is its name for places."""
    read = _parsed(text, path)
    found = read.configs
    if read.unread:
        raise read.unread[0]
    if len(found) > 1:
        commands = [config.command for config in found if config.command is not None]
        names = ", ".join(command.name for command in commands)
        count = f"{len(commands)} servers in one file: {names}"
        raise refuse(count, commands[1].location, mend="give each a file of its own")
    return found[0]


def _parsed(text: str, path: str) -> Configs:
    if not text.strip():
        raise InputError("it is empty", source=named(path), mend=f"write {READS}")
    _no_template(text, path, READS)
    language = _language(text, path)
    if language == "serve" or _is_other_form(text):
        return _served(text, path)
    if language == "curl":
        documents, requests = _requests_in(text, path)
        if not requests:
            raise InputError("no curl command in it posts a body", source=named(path), mend="give -d '{...}'")
        config = Config(path, "request", documents[0].location, "curl", None, tuple(requests), None, tuple(documents))
        return Configs([config])
    nodes = _documents(text, path, language, wanted=READS)
    if not nodes:
        raise InputError("it is empty", source=named(path), mend=f"write {READS}")
    if len(nodes) > 1:
        if all(node.entries is None for node in nodes):
            raise refuse("several values in one file", nodes[1].location, mend="give one budget a file")
        return Configs([_request_config(nodes, path)])
    if _is_manifest(nodes[0]):
        return _served(text, path)
    return Configs([_classified(nodes[0], path)])


def _language(text: str, path: str) -> str:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in (".json", ".jsonl", ".ndjson"):
        return "json"
    if suffix in (".yaml", ".yml"):
        return "yaml"
    if suffix == ".toml":
        return "toml"
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    first = rows[0].strip() if rows else ""
    if _TOML.match(first) and not _SERVER.search(first) and not _CURL.search(first):
        return "toml"
    if first[:1] in ("{", "[", '"') or re.match(r"-?\d|true\b|false\b|null\b", first):
        return "json" if first[:1] in ("{", "[") else "yaml"
    if _CURL.search(text):
        return "curl"
    return "serve" if _SERVER.search(text) or first.startswith("--") else "yaml"


def _documents(text: str, path: str, language: str, *, wanted: str) -> list[Node]:
    locate = locator(text, path)
    if language == "toml":
        return [read_toml(text, locate)]
    if language == "json":
        return read_json_values(text, locate)
    try:
        return [read_yaml(text, locate, wanted=f"give {wanted}")]
    except InputError:
        if text.lstrip()[:1] in ("{", "["):  # JSON under a YAML name, with tabs or long keys that YAML refuses
            with contextlib.suppress(InputError):
                return [read_json(text, locate)]
        raise


def _served(text: str, path: str) -> Configs:
    found = servers_in(text, path=path, forgiving=True)
    commands = [replace(server, forgiving=False) for server in found if isinstance(server, ServeCommand)]
    others = [server for server in found if isinstance(server, OtherServer)]
    if not commands and others:
        raise refuse(
            f"a {others[0].engine} server", others[0].location, mend="budgets of other engines are not evaluated"
        )
    if not commands:
        raise InputError("no serve command in it", source=named(path), mend=f"give {FORMS}")
    read: list[Config] = []
    unread: list[InputError] = []
    for command in commands:
        try:
            read.append(config_of(_unbroken(command), path))
        except InputError as error:
            unread.append(error)
    if not read:
        raise unread[0]
    budgeted = [config for config in read if config.budget is not None]
    chosen = budgeted if len(budgeted) == 1 and not unread else read
    return Configs(chosen, others if len(chosen) > 1 else [], unread)


def _unbroken(command: ServeCommand) -> ServeCommand:
    """The command. Raises InputError where vLLM's argument parser refuses it."""
    if command.broken:
        raise command.broken[0]
    return command


def config_of(command: ServeCommand, path: str) -> Config:
    """The configuration that a serve command is, with the budget it sets."""
    document = command.document("override-generation-config")
    entry = _budget_of(command)
    others = [
        command.document(flag) for flag in ("default-chat-template-kwargs", "reasoning-config") if command.known(flag)
    ]
    return Config(
        path=path,
        form="serve",
        location=entry.location if entry is not None else command.location,
        where=f"--override-generation-config → {BUDGET_KEY}" if entry is not None else "the serve command",
        budget=entry.value if entry is not None else None,
        command=command,
        documents=tuple(node for node in (document, *others) if node is not None),
    )


_OTHER_FORM = re.compile(
    r"^(?:kind|services|servingEngineSpec|applications):|non-default args:|^\[(?:Service|Container)\]", re.MULTILINE
)


def _is_other_form(text: str) -> bool:
    """A manifest or a log, which starts a server without saying so in a command line."""
    return _OTHER_FORM.search(text) is not None


def _budget_of(command: ServeCommand) -> Entry | None:
    """The budget of a command's `--override-generation-config`."""
    document = command.document("override-generation-config") if command.known("override-generation-config") else None
    return document.get(BUDGET_KEY) if document is not None else None


def _is_manifest(node: Node) -> bool:
    body = looks_like_body(node) or wrapped_body(node) is not None
    return node.entries is not None and not body and bool(_MANIFEST_KEYS & node.fields().keys())


def _classified(node: Node, path: str) -> Config:
    fields = node.fields()
    if node.items and all(item.entries is not None for item in node.items):
        return _request_config(list(node.items), path, root=node)
    if node.entries is None:
        if isinstance(node.scalar, str) and not _could_be_budget(node):
            raise refuse("cannot tell what this is", node.location, mend=f"give {READS}")
        return Config(path, "scalar", node.location, "the number itself", node, documents=(node,))
    if looks_like_body(node) or wrapped_body(node) is not None:
        return _request_config([node], path)
    entry = fields.get(BUDGET_KEY)
    if entry is not None and len(fields) == 1:
        form: Form = "map" if entry.value.entries is not None else "scalar"
        return Config(path, form, entry.location, BUDGET_KEY, entry.value, documents=(node,))
    if entry is not None or _GENERATION_KEYS & fields.keys():
        budget = entry.value if entry is not None else None
        place = entry.location if entry is not None else node.location
        where = f"generation config → {BUDGET_KEY}" if entry is not None else "generation config"
        return Config(path, "generation_config", place, where, budget, documents=(node,))
    if set(fields) & set(EFFORTS) or all(_could_be_budget(entry.value) for entry in fields.values()):
        return Config(path, "map", node.location, "the map itself", node, documents=(node,))
    keys = ", ".join(list(fields)[:5])
    raise InputError(f"cannot tell what this is (keys: {keys})", source=named(path), mend=f"give {READS}")


def _could_be_budget(node: Node) -> bool:
    """A number, or what people write in place of one."""
    value = node.scalar
    return node.is_scalar and (not isinstance(value, str) or bool(re.fullmatch(r"[-\d._ ]+[kKmM]?", value)))


def _request_config(nodes: list[Node], path: str, *, root: Node | None = None) -> Config:
    requests = [_request(node, index) for index, node in enumerate(nodes, 1) if not _bare_trace(node)]
    if not requests:
        raise InputError("traces without their requests", source=named(path), mend=f"give {READS}")
    where = "the request" if len(requests) == 1 else f"{len(requests)} requests"
    documents = (root,) if root is not None else tuple(nodes)
    return Config(path, "request", nodes[0].location, where, None, tuple(requests), None, documents)


def _requests_in(text: str, path: str) -> tuple[list[Node], list[Request]]:
    """Every request in the text of a requests file, and the documents they stand in."""
    language = _language(text, path)
    if language in ("curl", "serve"):
        folder = Path(path).parent if path != "-" else Path()
        pairs = read_curl(text, locator(text, path), folder=folder)
        requests = [
            Request(f"#{index}", endpoint_of(node, url), node, url) for index, (node, url) in enumerate(pairs, 1)
        ]
        return [node for node, _ in pairs], requests
    documents = _documents(text, path, language, wanted=REQUESTS)
    nodes = [item for node in documents for item in (node.items if node.items is not None else (node,))]
    return documents, [_request(node, index) for index, node in enumerate(nodes, 1) if not _bare_trace(node)]


def _bare_trace(node: Node) -> bool:
    """A trace may hold no request; then it says nothing of budgets."""
    fields = node.fields()
    return "output" in fields and wrapped_body(node) is None and not has_body_key(node)


def _no_template(text: str, path: str, wanted: str) -> None:
    if re.match(r"\s*\{[{%#]", text):
        raise InputError(
            "this is a chat template",
            source=named(path),
            mend=f"hand it to --model or --chat-template; here, give {wanted}",
        )


def _request(node: Node, index: int) -> Request:
    if node.entries is None:
        place = node.location
        raise InputError(
            "a request's body is an object",
            source=place.path,
            line=place.line,
            column=place.column,
            mend="write {'messages': [...], ...}",
        )
    inner = wrapped_body(node)
    if inner is None:
        if not has_body_key(node):
            keys = ", ".join(list(node.fields())[:5]) or "none"
            raise refuse(
                f"this is no request's body (keys: {keys})", node.location, mend="write {'messages': [...], ...}"
            )
        return Request(f"#{index}", endpoint_of(node, None), node)
    body, url, name = inner
    return Request(name or f"#{index}", endpoint_of(body, url), body, url)


def _exists(value: str) -> bool:
    try:
        return Path(value).exists()
    except (OSError, ValueError):
        return False
