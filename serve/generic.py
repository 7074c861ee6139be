"""Any document: containers in it, and lists and texts that look like a vLLM command line, by the keys above."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..budgets.document import Node
from ..budgets.json_text import read_json
from ..budgets.yaml_text import read_yaml
from ..errors import InputError
from .command import Server
from .container import Container, servers_of
from .nodes import at_key, environment, script_words, text_of, words_of

_SAYS = re.compile(
    r"\bvllm\s+serve\b|\bvllm\.entrypoints\b|(?<!\S)--(?:reasoning[-_]parser|served[-_]model[-_]name|tool[-_]call[-_]parser|"
    r"default[-_]chat[-_]template[-_]kwargs|enable[-_]auto[-_]tool[-_]choice|override[-_]generation[-_]config)\b"
)
_IMAGE = ("image", "Image", "image_uri", "ImageUri", "imageUri")
_ENTRYPOINT = ("entrypoint", "entryPoint", "EntryPoint", "Entrypoint", "ContainerEntrypoint")
_COMMAND = ("command", "Command", "cmd", "Cmd")
_ARGS = ("args", "Args", "arguments", "ContainerArguments")
_ENVIRONMENT = ("environment", "Environment", "env", "Env", "environment_variables", "environmentVariables", "envs")
_NAME = ("name", "Name", "ContainerHostname", "container_name")
_NESTED = 4
"""Documents in texts of documents that are looked into."""


def generic_servers(node: Node) -> list[Server]:
    """The servers below this node: of everything that looks like a container, and of what looks like vLLM's arguments.

    A container is a mapping with an image beside its command or variables (ECS, SageMaker, Nomad, Ansible, Terraform's
    JSON); a text that is itself a document (Terraform writes such) is looked into as well.
    """
    return list(_servers(node, (), _NESTED))


def _servers(node: Node, path: tuple[str, ...], depth: int) -> Iterator[Server]:
    name = ".".join(path).replace(".[", "[") or "server"
    if isinstance(node.scalar, str):
        inner = _document(node) if depth and "vllm" in node.scalar.lower() else None
        if inner is not None:
            yield from _servers(inner, path, depth - 1)
        elif _SAYS.search(node.scalar):
            yield from _text_servers(node, name)
        return
    own = list(_container(node, path))
    if own:
        yield from own
        return
    texts = [item.scalar for item in node.items or () if isinstance(item.scalar, str)]
    if node.items and len(texts) == sum(item.is_scalar for item in node.items) == len(node.items):
        if any(len(text.split()) > 3 and _SAYS.search(text) for text in texts):
            for index, item in enumerate(node.items):
                yield from _servers(item, (*path, f"[{index}]"), depth)
        elif _SAYS.search(" ".join(texts)) or any(_SAYS.search(text) for text in texts):
            yield from _list_servers(node, name)
        return
    for entry in node.entries or ():
        yield from _servers(entry.value, (*path, entry.key), depth)
    for index, item in enumerate(node.items or ()):
        yield from _servers(item, (*path, f"[{index}]"), depth)


def _document(node: Node) -> Node | None:
    """The JSON or YAML mapping or list that a text is; None for any other text."""
    text = node.scalar if isinstance(node.scalar, str) else ""
    try:
        if text.lstrip()[:1] in ("{", "["):
            return read_json(text, node.at)
        found = read_yaml(text, node.at) if re.match(r"\s*(?:-\s+)?[\w.-]+:(?:\s|$)", text) else None
    except InputError:
        return None
    return found if found is not None and not found.is_scalar else None


def _text_servers(node: Node, name: str) -> list[Server]:
    words = words_of(node)
    if words and words[0].text.startswith("-"):
        return servers_of(Container(name, node.location, args=words))
    return servers_of(Container(name, node.location, entrypoint=script_words(node)))


def _list_servers(node: Node, name: str) -> list[Server]:
    words = words_of(node)
    if words and words[0].text.startswith("-"):
        return servers_of(Container(name, node.location, args=words))
    return servers_of(Container(name, node.location, entrypoint=words))


def _container(node: Node, path: tuple[str, ...]) -> list[Server]:
    """The servers of a mapping that describes a container; none where it describes none."""
    image, env = _first(node, _IMAGE), _first(node, _ENVIRONMENT)
    entrypoint, command, args = (_first(node, keys) for keys in (_ENTRYPOINT, _COMMAND, _ARGS))
    if node.entries is None or (image is None and env is None):
        return []
    if image is None and any(part is not None for part in (entrypoint, command, args)):
        return []  # no container for certain: its command is looked at by itself, under its own name
    started = command if entrypoint is None and args is not None else entrypoint
    rest = (*(words_of(command) if started is not command else ()), *words_of(args))
    return servers_of(
        Container(
            text_of(_first(node, _NAME)) or ".".join(path).replace(".[", "[") or "container",
            node.location,
            image=text_of(image),
            image_at=image.location if image is not None else None,
            entrypoint=words_of(started) if started is not None else None,
            args=rest,
            env=environment(env),
        )
    )


def _first(node: Node, keys: tuple[str, ...]) -> Node | None:
    return next((found for key in keys if (found := at_key(node, key)) is not None), None)
