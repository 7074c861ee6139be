"""Any document: lists of words and texts in it that look like a vLLM command line, named by the keys above them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..budgets.document import Node
from .command import Server
from .container import Container, servers_of
from .nodes import words_of

_SAYS = re.compile(
    r"\bvllm\s+serve\b|\bvllm\.entrypoints\b|(?<!\S)--(?:reasoning[-_]parser|served[-_]model[-_]name|tool[-_]call[-_]parser|"
    r"default[-_]chat[-_]template[-_]kwargs|enable[-_]auto[-_]tool[-_]choice|override[-_]generation[-_]config)\b"
)


def generic_servers(node: Node) -> list[Server]:
    """The servers of every list of strings, or string, below this node that looks like vLLM's arguments."""
    found: list[Server] = []
    for path, value in _candidates(node, ()):
        name = ".".join(path).replace(".[", "[") or "server"
        words = words_of(value)
        plain = value.items is not None or not isinstance(value.scalar, str) or "\n" not in value.scalar.strip()
        if plain and words and words[0].text.startswith("-"):
            found += servers_of(Container(name, value.location, args=words))
        else:
            found += servers_of(Container(name, value.location, entrypoint=words))
    return found


def _candidates(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    if isinstance(node.scalar, str):
        if _SAYS.search(node.scalar):
            yield path, node
        return
    texts = [item.scalar for item in node.items or () if isinstance(item.scalar, str)]
    if node.items and len(texts) == sum(item.is_scalar for item in node.items) == len(node.items):
        if _SAYS.search(" ".join(texts)) or any(_SAYS.search(text) for text in texts):
            if any(len(text.split()) > 3 and _SAYS.search(text) for text in texts):
                for index, item in enumerate(node.items):
                    yield from _candidates(item, (*path, f"[{index}]"))
            else:
                yield path, node
        return
    for entry in node.entries or ():
        yield from _candidates(entry.value, (*path, entry.key))
    for index, item in enumerate(node.items or ()):
        yield from _candidates(item, (*path, f"[{index}]"))
