"""`docker run` and `podman run`: the image, its environment, and what stands behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from ..budgets.document import Locate
from ..checks.finding import Location
from .command import Server
from .shell_values import behind
from .words import Word, split_words
from .wrappers import Variable

_ALONE = frozenset(
    {
        "d", "detach", "disable-content-trust", "help", "i", "init", "interactive", "no-healthcheck",
        "oom-kill-disable", "P", "privileged", "publish-all", "q", "quiet", "read-only", "replace", "rm", "rmi",
        "sig-proxy", "t", "tty", "no-hosts", "no-hostname", "tls-verify",
    }
)  # fmt: skip
"""Options of `docker run` and `podman run` that take no value; every other one takes one."""


def is_container_run(words: Sequence[Word]) -> bool:
    """`docker run`, `podman container run`, `nerdctl run`, with or without `sudo`."""
    return _run_at(words) is not None


def container_run(words: Sequence[Word]) -> list[Server]:
    """The servers that such a command starts."""
    from .container import Container, servers_of

    at = _run_at(words)
    if at is None:
        return []
    env: dict[str, Variable] = {}
    entrypoint: tuple[Word, ...] | None = None
    name: str | None = None
    rest = list(words[at + 1 :])
    while rest and rest[0].text.startswith("-"):
        word = rest.pop(0)
        option, value = _option(word, rest)
        if option in ("e", "env") and value is not None:
            key, given, text = value.text.partition("=")
            env[key] = Variable(text if given and not value.dynamic else None, value.location)
        elif option == "env-file" and value is not None:
            env |= _env_file(value)
        elif option == "entrypoint" and value is not None:
            entrypoint = tuple(split_words(value.text, value.place)) if value.text else ()
        elif option == "name" and value is not None:
            name = value.text
    if not rest:
        return []
    image = rest.pop(0)
    return servers_of(
        Container(
            name or PurePosixPath(image.text.partition(":")[0]).name,
            image.location,
            image=None if image.dynamic else image.text,
            image_at=image.location,
            entrypoint=entrypoint,
            args=tuple(rest),
            env=env,
        )
    )


def _run_at(words: Sequence[Word]) -> int | None:
    texts = [word.text for word in words]
    for index, text in enumerate(texts[:8]):
        if PurePosixPath(text).name in ("docker", "podman", "nerdctl"):
            following = [i for i in range(index + 1, min(index + 8, len(texts))) if not texts[i].startswith("-")]
            return next((i for i in following if texts[i] == "run" and "compose" not in texts[index:i]), None)
    return None


def _option(word: Word, rest: list[Word]) -> tuple[str, Word | None]:
    """An option's name and its value, which is taken out of `rest` where it stands by itself."""
    text = word.text.lstrip("-")
    name, equals, _ = text.partition("=")
    if equals:
        head = word.text.index("=") + 1
        return name, Word(
            word.text[head:], word.offsets[head:], word.locate, dynamic=word.dynamic, expansions=word.expansions
        )
    if not word.text.startswith("--"):
        for index, letter in enumerate(text):
            if letter not in _ALONE:
                if index + 1 < len(text):
                    head = len(word.text) - len(text) + index + 1
                    return letter, Word(word.text[head:], word.offsets[head:], word.locate, dynamic=word.dynamic)
                return letter, rest.pop(0) if rest else None
        return text, None
    if name in _ALONE:
        return name, None
    return name, rest.pop(0) if rest else None


def _env_file(value: Word) -> Mapping[str, Variable]:
    from .compose import env_file

    path = Path(value.text)
    beside = Path(value.location.path).parent / path
    found = next((place for place in (beside, path) if not value.dynamic and place.is_file()), None)
    return env_file(found) if found is not None else {}


_CONTINUED = re.compile(r"\\[ \t]*\n")
_INSTRUCTION = re.compile(r"^[ \t]*(FROM|ENTRYPOINT|CMD|ENV|ARG|SHELL)[ \t]+(.*)$", re.IGNORECASE | re.MULTILINE)


def is_dockerfile(text: str) -> bool:
    """A Dockerfile: a FROM before anything but comments and ARG."""
    rows = [row.strip() for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    first = next((row for row in rows if not row.upper().startswith("ARG ")), "")
    return re.match(r"FROM\s+\S", first, re.IGNORECASE) is not None


_ARGUMENT = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")


def _filled(reference: str, arguments: Mapping[str, str]) -> str | None:
    """An image with the defaults of its build's arguments; None where one of them has none."""
    known = [arguments.get(m[1] or m[3], m[2]) for m in _ARGUMENT.finditer(reference)]
    if any(value is None for value in known):
        return None
    return _ARGUMENT.sub(lambda m: arguments.get(m[1] or m[3], m[2]) or "", reference)


def dockerfile_servers(text: str, place: Locate, name: str) -> list[Server]:
    """The server that an image built from this Dockerfile starts."""
    import json

    from .container import Container, servers_of

    joined = _CONTINUED.sub(lambda match: " " * len(match[0]), text)
    image: str | None = None
    image_at = place(0)
    env: dict[str, Variable] = {}
    given: dict[str, str] = {}
    stages: dict[str, tuple[str | None, Location]] = {}
    parts: dict[str, tuple[Word, ...]] = {}
    for match in _INSTRUCTION.finditer(joined):
        word, value, start = match[1].upper(), match[2], match.start(2)
        here = place(start)
        if word == "FROM":
            words_of_from = [part for part in value.split() if not part.startswith("--")]
            image, image_at = (_filled(words_of_from[0], given) if words_of_from else None), here
            image, image_at = stages.get((image or "").lower(), (image, image_at))
            if len(words_of_from) > 2 and words_of_from[1].lower() == "as":
                stages[words_of_from[2].lower()] = (image, image_at)
            env, parts = {}, {}
        elif word in ("ENV", "ARG"):
            pieces = split_words(value, behind(place, start))
            if word == "ENV" and pieces and "=" not in pieces[0].text and len(pieces) > 1:
                env[pieces[0].text] = Variable(pieces[1].text, here)
            for piece in pieces:
                key, assigned, text_value = piece.text.partition("=")
                if assigned:
                    env[key] = Variable(None if piece.dynamic else text_value, piece.location)
                    if word == "ARG" and not piece.dynamic:
                        given[key] = text_value
        elif word in ("ENTRYPOINT", "CMD"):
            try:
                items = json.loads(value) if value.lstrip().startswith("[") else None
            except ValueError:
                items = None
            if isinstance(items, list):
                words: list[Word] = []
                position = start
                for item in map(str, items):
                    found = joined.find(item, position)
                    position = found if found >= 0 else position
                    words.append(Word(item, tuple(range(position, position + len(item) + 1)), place))
                    position += len(item)
                parts[word] = tuple(words)
            else:
                parts[word] = tuple(split_words(value, behind(place, start)))
    return servers_of(
        Container(
            name,
            (parts.get("ENTRYPOINT") or parts.get("CMD") or (Word("", (0,), place),))[0].location,
            image=image,
            image_at=image_at,
            entrypoint=parts.get("ENTRYPOINT"),
            args=parts.get("CMD", ()),
            env=env,
        )
    )
