"""`reasonctl init [PATH]`: find what there is to check, and write the settings file that `gate` runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from ..reports import formats
from ..settings.find import FILE, find
from .given import not_empty

if TYPE_CHECKING:
    from ..settings.discover import Discovered


def init(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="The project's folder.", show_default=False)] = ".",
) -> None:
    """Find the servers, models, traces and budgets of a project, and write a reasonctl.toml for `gate`."""
    from ..settings.discover import discover

    not_empty(PATH=path)
    folder = Path(path).expanduser()
    if not folder.is_dir():
        what = "this is a file" if folder.exists() else "no such folder"
        raise InputError(what, source=path, mend="give the project's folder")
    there = find(folder)
    if there is not None and there.base.resolve() == folder.resolve():
        raise InputError("the project has settings already", source=str(folder / there.path.name), mend="edit them")
    found = discover(folder)
    for line in found.unread:
        typer.echo(f"reasonctl: not read: {line}", err=True)
    if found.empty:
        raise InputError(
            "no serve command, model, trace or budget below it", source=path, mend="name the folder that holds them"
        )
    file = folder / FILE
    formats.to_file("\n".join(_lines(found)) + "\n", file)
    typer.echo(f"wrote {file}")
    for line in _told(found):
        typer.echo(f"  {line}")
    typer.echo("next: reasonctl gate" + (f" --config {file}" if folder.resolve() != Path.cwd() else ""))


def _lines(found: Discovered) -> Iterator[str]:
    yield "# What `reasonctl gate` checks. `reasonctl config show` says how it is understood."
    yield '# target = "vllm==0.33.0"   # the server to judge by, where a manifest does not tell its version'
    yield '# fail-on = "warning"        # the default is "error"'
    if found.known or found.missing:
        yield ""
        yield "[models]  # where the models are that the servers name"
        for name, where in found.known.items():
            yield f"{_text(name)} = {_text(where)}"
        for name in found.missing:
            yield f"# {_text(name)} = {_text('models/' + PurePosixPath(name).name)}"
    for served in found.served:
        yield from ("", "[[audit]]", f"serve = {_text(served.file)}")
    for model in found.alone:
        yield from ("", "[[audit]]", f"model = {_text(model)}")
    if found.traces:
        yield from ("", "[[replay]]", f"traces = [{', '.join(map(_text, found.traces))}]")
        if len(found.models) == 1:
            yield f"model = {_text(found.models[0])}"
        else:
            yield '# model = "models/..."       # gives the tokenizer, and causes instead of symptoms'
    for budget in found.budgets:
        yield from ("", "[[validate-config]]", f"budget = {_text(budget)}")
        if len(found.models) == 1:
            yield f"model = {_text(found.models[0])}"


def _text(value: str) -> str:
    """A TOML text: JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _told(found: Discovered) -> Iterator[str]:
    for served in found.served:
        names = ", ".join(served.servers)
        yield f"{served.file}: {len(served.servers)} server{'s' * (len(served.servers) != 1)} ({names})"
    for name, where in found.known.items():
        yield f"{name} is {where}"
    for name in found.missing:
        yield f"{name} is not here: fill in [models], or its template is not evaluated"
    for kind, paths in (("model", found.alone), ("traces", found.traces), ("budget", found.budgets)):
        yield from (f"{kind} {path}" for path in paths)
