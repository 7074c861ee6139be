"""What an audit is about: the models and servers that its arguments name, each server with its model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..prompts.model import Model
    from ..serve.command import OtherServer, ServeCommand, Server
    from ..serve.read import Unread

_MODEL_FILES = (
    "config.json", "tokenizer_config.json", "tokenizer.json", "chat_template.jinja", "chat_template.json",
    "tekken.json", "generation_config.json", "params.json",
)  # fmt: skip
"""Any of them makes a folder a model's."""
_TEMPLATES = (".jinja", ".jinja2", ".j2")


@dataclass(frozen=True, slots=True)
class Job:
    """One audit: a model, a server, or both. `given`: the model was named for it and has to be there."""

    source: str | None
    command: ServeCommand | None
    given: bool


@dataclass(frozen=True)
class Jobs:
    """Everything to look at. `others` are servers of other engines, `unread` files that could not be read."""

    jobs: tuple[Job, ...]
    others: tuple[OtherServer, ...] = ()
    unread: tuple[Unread, ...] = ()
    folders: tuple[str, ...] = field(default=())


def find_jobs(
    paths: Sequence[str],
    model: str | None,
    serve: str | None,
    model_map: Mapping[str, str] | None = None,
    settled: Mapping[str, str] | None = None,
) -> Jobs:
    """The audits that the arguments ask for.

    Args:
        paths: PATH arguments: models, files with servers, folders of such files.
        model: `--model`.
        serve: `--serve`.
        model_map: where the models of servers are, by the name that the server gives its model, or by its own.
        settled: the same, of the settings file; a name that no server uses is nothing wrong there.

    Raises:
        InputError: nothing is found, or something that was named cannot be read.
    """
    from ..serve.command import OtherServer, ServeCommand
    from ..serve.read import read_folder, read_serve

    servers: list[Server] = list(read_serve(serve, forgiving=True)) if serve is not None else []
    models: list[str] = []
    unread: list[Unread] = []
    folders: list[str] = []
    for path in paths:
        if _is_model(path):
            models.append(path)
        elif _is_folder(path):
            found, broken = read_folder(path)
            if not found:
                raise _nothing_in(path, broken)
            servers += found
            unread += broken
            folders.append(path)
        else:
            servers += read_serve(path, flag="PATH", forgiving=True)
    commands = [server for server in servers if isinstance(server, ServeCommand)]
    others = tuple(server for server in servers if isinstance(server, OtherServer))
    wanted = {**(settled or {}), **(model_map or {})}
    jobs = [Job(source, None, True) for source in models]
    if model is not None and serve is None and not commands:
        jobs.append(Job(model, None, True))
    for command in commands:
        source = model if model is not None else mapped(command, wanted)
        jobs.append(Job(source, command, source is not None))
    _check_map(model_map or {}, commands)
    if not jobs and not others:
        raise InputError("nothing to audit", mend="give --model X, a model folder, or --serve with a serve command")
    return Jobs(tuple(jobs), others, tuple(unread), tuple(folders))


def _check_map(given: Mapping[str, str], commands: Sequence[ServeCommand]) -> None:
    """Refuse a `--model-map` no entry of which is used; of one that is used in part, the rest is told on stderr."""
    called = {name for command in commands for name in _names(command)}
    unused = sorted(set(given) - called)
    if not unused:
        return
    there = f"there is {', '.join(sorted(called)) or 'none'}"
    if len(unused) == len(given):
        raise InputError(f"no server's model is called {unused[0]!r}", source="--model-map", mend=there)
    import typer

    names = ", ".join(map(repr, unused))
    typer.echo(f"reasonctl: --model-map: no server's model here is called {names}; {there}", err=True)


def parse_model_map(values: Sequence[str]) -> dict[str, str]:
    """`--model-map NAME=X` values. Raises InputError for one of another form, or a name given twice."""
    found: dict[str, str] = {}
    for value in values:
        name, given, model = value.rpartition("=") if value.count("=") == 1 else value.partition("=")
        if not given or not name or not model:
            raise InputError(f"{value!r} is no NAME=MODEL", source="--model-map", mend="write org/m=models/m")
        if name in found:
            raise InputError(f"{name!r} is given twice", source="--model-map", mend="keep one of them")
        found[name] = model
    return found


def served_model(named: str | None, chat_template: Path | None) -> tuple[Model | None, str | None]:
    """A server's own model if it is there; else why it could not be looked at."""
    from ..prompts.model import load_model

    if named is None:
        return None, "the command names no model: give --model"
    try:
        return load_model(named, chat_template=chat_template), None
    except InputError as error:
        return None, f"{named} is not here ({error.message}): give --model"


def with_served_files(
    model: Model, command: ServeCommand, *, own_template: bool
) -> tuple[Model, None] | tuple[None, str]:
    """The model as this command serves it: with the tokenizer of `--tokenizer` and the template of `--chat-template`.

    Args:
        model: the model by itself.
        command: what serves it.
        own_template: the call names a template of its own, which wins.

    Returns: the model, or why nobody can tell from here which template it is served with.

    Raises:
        InputError: the template is empty.
    """
    tokenizer = command.text("tokenizer") if command.known("tokenizer") else None
    if tokenizer is not None and tokenizer != command.model:
        other, _ = served_model(tokenizer, None)
        if other is not None:
            model = replace(
                model,
                tokenizer=other.tokenizer,
                tokenizer_problem=other.tokenizer_problem,
                tokenizer_config=other.tokenizer_config,
                special_tokens=other.special_tokens,
                template=model.template if own_template else other.template or model.template,
                templates=model.templates if own_template else other.templates or model.templates,
            )
    return (model, None) if own_template else _with_template(model, command)


def _with_template(model: Model, command: ServeCommand) -> tuple[Model, None] | tuple[None, str]:
    from ..prompts.folder import with_template
    from ..prompts.model import Template

    if command.hidden("chat-template"):
        return None, "which --chat-template it is served with is known to the running shell alone"
    value = command.chat_template
    if value is None:
        return model, None
    beside = Path(command.location.path).parent / value
    for path in (Path(value), beside):
        if _is_file(path):
            return with_template(model, path), None
    if not value.strip():
        raise InputError(
            "the serve command's --chat-template is empty", source=command.location.path, mend="fill it in"
        )
    if not any(character in value for character in "{}\n"):
        return None, f"its --chat-template {value} is not here: give --chat-template FILE"
    inline = Template(value, origin="--chat-template")
    return replace(model, template=inline, templates=(inline,)), None


def model_of(command: ServeCommand) -> str | None:
    """The model that a command serves, with its `--revision` where it is a hub id."""
    named = command.model
    if named is None or not command.known("revision") or Path(named).exists() or "@" in named:
        return named
    revision = command.text("revision")
    return f"{named}@{revision}" if revision else named


def _names(command: ServeCommand) -> tuple[str, ...]:
    """What `--model-map` may call a server's model: as the server does, as it serves it, or the server's own name."""
    served = command.text("served-model-name") if command.known("served-model-name") else None
    written = command.flags.get("model")
    mounted = written.value if written is not None and not written.dynamic else None
    names = (command.model, mounted, *(served.split() if served else ()), command.name)
    return tuple(dict.fromkeys(name for name in names if name))


def mapped(command: ServeCommand, wanted: Mapping[str, str]) -> str | None:
    """Where the model of a server is, by a map from the names of models or servers."""
    return next((wanted[name] for name in _names(command) if name in wanted), None)


def _nothing_in(path: str, broken: Sequence[Unread]) -> InputError:
    if broken:
        first = broken[0]
        return InputError(
            f"no server in it, and {len(broken)} files could not be read, the first: {first.location.path}: "
            f"{first.reason}",
            source=path,
            mend="mend them, or name a model folder",
        )
    return InputError("no model and no server in this folder", source=path, mend="name a model folder or a manifest")


def _is_model(path: str) -> bool:
    """A model folder, a template, a tokenizer config, a fixture or a hub id; any other file may hold a server."""
    try:
        found = Path(path).expanduser()
        found.is_file()
    except (RuntimeError, OSError):  # a user that is not there, a text too long for a name
        return not any(character.isspace() for character in path)
    if path.startswith("fixture:"):
        return True
    if found.is_dir():
        return any((found / name).exists() for name in _MODEL_FILES) or any(found.glob("*.jinja"))
    if found.is_file():
        suffix = found.suffix.lower()
        return suffix in (*_TEMPLATES, ".gguf") or (suffix == ".json" and _is_tokenizer_config(found))
    return path != "-" and not any(character.isspace() for character in path)


def _is_tokenizer_config(path: Path) -> bool:
    """A JSON file of a model, and no manifest in JSON."""
    if path.name in _MODEL_FILES:
        return True
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    keys = ("chat_template", "tokenizer_class", "added_tokens_decoder")
    return isinstance(value, dict) and any(key in value for key in keys)


def _is_folder(path: str) -> bool:
    try:
        return Path(path).expanduser().is_dir()
    except (RuntimeError, OSError, ValueError):
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a template's own text, too long for a name
        return False
