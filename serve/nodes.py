"""From the values of a manifest to the words of a command line, each with its place in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..budgets.document import Node
from .words import Word, split_words, word_at
from .wrappers import Variable

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def text_of(node: Node | None) -> str | None:
    """A scalar as a manifest's reader would hand it on: a text as it is, numbers and booleans as YAML writes them."""
    if node is None or not node.is_scalar or node.scalar is None:
        return None
    if isinstance(node.scalar, bool):
        return "true" if node.scalar else "false"
    return str(node.scalar)


def at_key(node: Node | None, *path: str) -> Node | None:
    """The value under these keys, None where the way there ends."""
    for key in path:
        entry = node.get(key) if node is not None and node.entries is not None else None
        if entry is None:
            return None
        node = entry.value
    return node


def items_of(node: Node | None) -> tuple[Node, ...]:
    return (node.items or ()) if node is not None else ()


def word_of(node: Node) -> Word | None:
    """A scalar as one word; None for a list, a mapping or null."""
    text = text_of(node)
    if text is None:
        return None
    return Word(text, tuple(range(len(text) + 1)), node.at)


def _json_word(node: Node) -> Word | None:
    """A mapping among the words, as the JSON that is meant (a manifest wants it as a text)."""
    return word_at(json.dumps(node.plain(), ensure_ascii=False), node.location) if node.entries is not None else None


def words_of(node: Node | None) -> tuple[Word, ...]:
    """A list of scalars as one word each, a text as the words a shell would cut it into."""
    if node is None:
        return ()
    if node.items is not None:
        return tuple(word for item in node.items if (word := word_of(item) or _json_word(item)) is not None)
    if isinstance(node.scalar, str):
        return tuple(word for word in split_words(node.scalar, node.at) if not word.operator or word.text != "\n")
    return ()


def script_words(node: Node) -> tuple[Word, ...]:
    """A text as a script's words, line ends included; a line that begins with a flag goes on with the one before it."""
    if not isinstance(node.scalar, str):
        return ()
    words = split_words(node.scalar, node.at)
    following = [*words[1:], None]
    return tuple(
        word
        for word, after in zip(words, following, strict=True)
        if not (word.operator and word.text == "\n" and after is not None and after.text.startswith("-"))
    )


def keyed_flags(node: Node | None, *, camel: bool = False, leave: frozenset[str] = frozenset()) -> tuple[Word, ...]:
    """A mapping of flag names to values as command-line words: `reasoning_parser: qwen3` is `--reasoning-parser=qwen3`.

    True is the flag alone, false its `--no-` form, a mapping or list of mappings its JSON, a list every value behind
    the flag, null nothing.

    Args:
        node: the mapping.
        camel: keys are written `maxModelLen`.
        leave: keys that are no flags.
    """
    words: list[Word] = []
    for entry in (node.entries or ()) if node is not None else ():
        if entry.key in leave:
            continue
        name = entry.key if not camel else _CAMEL.sub("-", entry.key).lower()
        head, dot, key = name.lstrip("-").partition(".")
        flag = head.replace("_", "-") + dot + key
        words += _flag_words(flag, entry.value)
    return tuple(words)


def _flag_words(flag: str, value: Node) -> Iterator[Word]:
    def made(text: str, locate: Any = None) -> Word:
        place = locate or (lambda _: value.location)
        return Word(text, tuple(range(len(text) + 1)), place)

    if value.entries is not None or any(item.entries is not None for item in value.items or ()):
        yield made(f"--{flag}={json.dumps(value.plain(), ensure_ascii=False)}")
    elif value.items is not None:
        yield made(f"--{flag}")
        yield from (word for item in value.items if (word := word_of(item)) is not None)
    elif isinstance(value.scalar, bool):
        if "." in flag:
            yield made(f"--{flag}={str(value.scalar).lower()}")
        else:
            yield made(f"--{flag}" if value.scalar else f"--no-{flag}")
    elif value.scalar is not None:
        head = len(flag) + 3
        text = text_of(value) or ""
        yield made(f"--{flag}={text}", lambda offset: value.at(max(offset - head, 0)))


def environment(node: Node | None) -> dict[str, Variable]:
    """Environment variables of a manifest: Kubernetes' list of {name, value}, a mapping, or a list of NAME=VALUE.

    A variable whose value comes from elsewhere (`valueFrom`, a name alone) has none.
    """
    found: dict[str, Variable] = {}
    for entry in (node.entries or ()) if node is not None else ():
        found[entry.key] = Variable(text_of(entry.value), entry.value.location)
    for item in items_of(node):
        name = text_of(at_key(item, "name"))
        if name is not None:
            found[name] = Variable(text_of(at_key(item, "value")), item.location)
        elif isinstance(item.scalar, str):
            key, given, value = item.scalar.partition("=")
            found[key] = Variable(value if given else None, item.location)
    return found
