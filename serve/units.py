"""systemd units and Quadlet containers: `ExecStart=`, `Exec=`, `Image=`, `Environment=`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..budgets.document import Locate
from .command import Server
from .compose import env_file
from .container import Container, servers_of
from .shell import words_servers
from .shell_values import behind
from .words import Word, split_words
from .wrappers import Variable

_SECTION = re.compile(r"^\[(\w[\w-]*)\][ \t]*$", re.MULTILINE)
_KEY = re.compile(r"^([A-Za-z]\w*)[ \t]*=[ \t]*((?:[^\n\\]|\\.|\\\n(?:[ \t]*[#;][^\n]*\n)*)*)", re.MULTILINE)
_SPECIFIER = re.compile(r"%[a-zA-Z]")


def is_unit(text: str) -> bool:
    """A unit file with a service or a container in it."""
    return any(match[1] in ("Service", "Container", "Kube", "Pod") for match in _SECTION.finditer(text))


def unit_servers(text: str, locate: Locate, *, name: str, folder: Path | None) -> list[Server]:
    """The servers of a unit. `folder` is where its `EnvironmentFile` is looked for besides its own path."""
    env: dict[str, Variable] = {}
    keys = list(_keys(text))
    for key, value, start in keys:
        if key == "Environment":
            for word in split_words(value, behind(locate, start)):
                variable, given, setting = word.text.partition("=")
                if given:
                    env[variable] = Variable(setting, word.location)
        elif key == "EnvironmentFile":
            path = Path(value.lstrip("-").strip())
            beside = folder / path.name if folder is not None else None
            found = next((place for place in (path, beside) if place is not None and place.is_file()), None)
            if found is not None:
                env |= env_file(found)
    image = next(((value, start) for key, value, start in keys if key == "Image"), None)
    found_servers: list[Server] = []
    for key, value, start in keys:
        if key in ("ExecStart", "Exec"):
            lead = len(value) - len(value.lstrip("-@:+! ")) if key == "ExecStart" else 0
            words = _words(value[lead:], start + lead, locate, env)
            found_servers += servers_of(
                Container(
                    name,
                    locate(start),
                    image=image[0].strip() if image is not None else None,
                    image_at=locate(image[1]) if image is not None else None,
                    entrypoint=None if key == "Exec" else words,
                    args=words if key == "Exec" else (),
                    env=env,
                )
            )
    if image is not None and not any(key == "Exec" for key, _, _ in keys):
        found_servers += servers_of(Container(name, locate(image[1]), image=image[0].strip(), env=env))
    return found_servers


def _keys(text: str) -> Iterator[tuple[str, str, int]]:
    """(key, value, offset of the value) in order; a line that goes on after a backslash is one value."""
    for match in _KEY.finditer(text):
        value = re.sub(r"\\\n", "  ", match[2])
        yield match[1], value.rstrip(), match.start(2)


def _words(text: str, start: int, locate: Locate, env: dict[str, Variable]) -> tuple[Word, ...]:
    """The words of a command, `$NAME` and `${NAME}` replaced as systemd does; `%i` and its kin stay unknown."""
    caught: list[Word] = []

    def take(words: Sequence[Word], _: Mapping[str, str]) -> list[Server]:
        caught.extend(words)
        return []

    words = split_words(text, behind(locate, start))
    words_servers(words, take, {name: variable.value for name, variable in env.items() if variable.value is not None})
    return tuple(
        Word(word.text, word.offsets, word.locate, dynamic=word.dynamic or bool(_SPECIFIER.search(word.text)))
        for word in caught
    )
