"""Servers in docker compose files: interpolation, `extends`, `env_file`, commands as lists or texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..budgets.document import Entry, Node, locator
from ..budgets.files import read_text
from ..budgets.yaml_text import read_yaml
from ..errors import InputError
from .command import Server
from .container import Container, servers_of
from .nodes import at_key, environment, items_of, text_of, words_of
from .secret import holds_secret
from .wrappers import Variable

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<how>:?[-?+])(?P<other>[^}]*))?\})"
)


def is_compose(node: Node) -> bool:
    """A compose file: services that are mappings with an image, a build or a command."""
    services = at_key(node, "services")
    keys = ("image", "build", "command", "extends", "entrypoint")
    return services is not None and any(
        at_key(entry.value, key) is not None for entry in services.entries or () for key in keys
    )


def compose_servers(node: Node, folder: Path | None) -> list[Server]:
    """Every server of the services, with `.env`, `env_file` and `extends` looked for beside the file.

    Args:
        node: the file's root.
        folder: where it stands; None where it was not read from a file.
    """
    variables = _dot_env(folder)
    found: list[Server] = []
    for entry in (at_key(node, "services") or node).entries or ():
        service = _interpolated(_extended(entry.value, node, folder, frozenset({entry.key})), variables)
        command, entrypoint, image = (at_key(service, key) for key in ("command", "entrypoint", "image"))
        found += servers_of(
            Container(
                entry.key,
                entry.location,
                image=text_of(image),
                image_at=image.location if image is not None else None,
                entrypoint=words_of(entrypoint) if entrypoint is not None else None,
                args=words_of(command),
                env={**_env_files(service, folder), **environment(at_key(service, "environment"))},
            )
        )
    return found


def _extended(service: Node, root: Node, folder: Path | None, seen: frozenset[str]) -> Node:
    """The service with what it extends below it: a mapping's keys join, anything else is replaced."""
    extends = at_key(service, "extends")
    if extends is None:
        return service
    name = text_of(extends) if extends.is_scalar else text_of(at_key(extends, "service"))
    file = text_of(at_key(extends, "file"))
    key = f"{file or ''}:{name}" if file else name or ""
    if name is None or key in seen:
        return service
    if file is not None:
        path = (folder or Path()) / file
        try:
            text = read_text(path, shown=str(path))
        except InputError:
            return service
        root, folder = read_yaml(text, locator(text, str(path))), path.parent
    base = at_key(root, "services", name)
    return service if base is None else _over(_extended(base, root, folder, seen | {key}), service)


def _over(base: Node, own: Node) -> Node:
    entries: dict[str, Entry] = {entry.key: entry for entry in base.entries or ()}
    for entry in own.entries or ():
        below = entries.get(entry.key)
        joins = entry.key == "environment" and below is not None
        if joins and below is not None and below.value.entries is not None and entry.value.entries is not None:
            entries[entry.key] = replace(entry, value=_over(below.value, entry.value))
        elif joins and below is not None and below.value.items is not None and entry.value.items is not None:
            entries[entry.key] = replace(
                entry, value=replace(entry.value, items=(*below.value.items, *entry.value.items))
            )
        else:
            entries[entry.key] = entry
    return replace(own, entries=tuple(entries.values()))


def _interpolated(node: Node, variables: Mapping[str, str]) -> Node:
    """Every text below with its variables replaced; one that nothing here sets stays as it is, unknown."""
    if node.entries is not None:
        return replace(
            node, entries=tuple(replace(entry, value=_interpolated(entry.value, variables)) for entry in node.entries)
        )
    if node.items is not None:
        return replace(node, items=tuple(_interpolated(item, variables) for item in node.items))
    if not isinstance(node.scalar, str) or "$" not in node.scalar:
        return node
    chars: list[str] = []
    offsets: list[int] = []
    position = 0
    for match in _VARIABLE.finditer(node.scalar):
        value = _value(match, variables)
        if value is None:
            continue
        chars += node.scalar[position : match.start()] + value
        offsets += [*range(position, match.start()), *[match.start()] * len(value)]
        position = match.end()
    chars += node.scalar[position:]
    offsets += range(position, len(node.scalar) + 1)
    return replace(node, scalar="".join(chars), within=lambda index: node.at(offsets[min(index, len(offsets) - 1)]))


def _value(match: re.Match[str], variables: Mapping[str, str]) -> str | None:
    """What compose puts in; None for a variable that only the shell that starts it knows."""
    if match["escaped"]:
        return "$"
    name, how, other = match["name"] or match["plain"], match["how"] or "", match["other"] or ""
    value = variables.get(name)
    missing = value is None or (how.startswith(":") and not value)
    if how.endswith("+"):
        return None if value is None else "" if missing else other
    if how.endswith("-") and missing:
        return other
    return value


def _dot_env(folder: Path | None) -> dict[str, str]:
    """The variables of the file beside it; one that holds a secret counts as unknown: its value is told nowhere."""
    if folder is None or not (folder / ".env").is_file():
        return {}
    found = env_file(folder / ".env")
    return {
        name: variable.value
        for name, variable in found.items()
        if variable.value is not None and not holds_secret(name)
    }


def _env_files(service: Node, folder: Path | None) -> dict[str, Variable]:
    given = at_key(service, "env_file")
    entries = items_of(given) if given is not None and given.items is not None else [given] if given is not None else []
    found: dict[str, Variable] = {}
    for item in entries:
        name = text_of(item) or text_of(at_key(item, "path"))
        if name is not None and folder is not None and (folder / name).is_file():
            found |= env_file(folder / name)
    return found


def env_file(path: Path) -> dict[str, Variable]:
    """The variables of a file of NAME=VALUE lines, as docker reads it, with their places."""
    from .env_text import env_variables

    text = read_text(path, shown=str(path))
    return env_variables(text, locator(text, str(path)))
