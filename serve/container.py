"""From a container, as any manifest describes one, to the servers that it starts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..checks.finding import Location
from .command import OtherServer, Server
from .commandline import in_words
from .engines import engine_of
from .images import ImageFacts, image_facts
from .secret import holds_secret
from .words import Word, word_at
from .wrappers import Variable, Wrapped, wrapped


@dataclass(frozen=True)
class Container:
    """What a manifest says of one container (or process).

    `entrypoint` replaces the image's own, None leaves it; `args` stand behind it. `env` holds the variables with their
    places. `model` is what the manifest says in a key of its own, and `flags` words that it makes of other keys: both
    come before the arguments, which therefore win.
    """

    name: str
    location: Location
    image: str | None = None
    image_at: Location | None = None
    entrypoint: tuple[Word, ...] | None = None
    args: tuple[Word, ...] = ()
    env: Mapping[str, Variable] = field(default_factory=dict)
    model: Word | None = None
    flags: tuple[Word, ...] = ()
    prefill: bool = False
    """It fills caches for other servers, which answer."""


def servers_of(container: Container) -> list[Server]:
    """Every server this container starts; none where nothing in it looks like one.

    A vLLM image without an entry point of its own starts the server itself, with the arguments as its flags.
    """
    facts = image_facts(container.image) if container.image is not None else ImageFacts(None)
    from_env = wrapped(container.env, container.image)
    values = {name: variable.value for name, variable in container.env.items()}
    shown = {name: None if holds_secret(name) else value for name, value in values.items()}
    words = tuple(_filled(word, shown) for word in (*(container.entrypoint or ()), *container.args))
    other = engine_of([word.text for word in words]) or (facts.engine if facts.engine not in _OURS else None)
    if other is not None:
        return [OtherServer(other, container.name, container.location)]
    given = {name: value for name, value in values.items() if value is not None}
    starts_vllm = facts.engine in ("vllm", "slimserve") and facts.tag_of is None and container.entrypoint is None
    ours = starts_vllm or from_env.platform is not None or container.model is not None or _all_flags(words)
    found: list[Server] = []
    if words and not words[0].text.startswith("-"):
        found = in_words(words, given)
    if not found and ours:
        found = in_words((*(word_at(word, container.location) for word in ("vllm", "serve")), *words), given)
    return [_dressed(server, container, facts, from_env) for server in found]


_OURS = ("vllm", "slimserve", None)


def _all_flags(words: Sequence[Word]) -> bool:
    """Arguments alone that only vLLM has."""
    texts = {word.text.partition("=")[0].replace("_", "-") for word in words}
    return bool(texts & {"--reasoning-parser", "--served-model-name", "--tool-call-parser", "--max-model-len"})


def _dressed(server: Server, container: Container, facts: ImageFacts, from_env: Wrapped) -> Server:
    if isinstance(server, OtherServer):
        return replace(server, name=container.name)
    before = (*from_env.words, *container.flags)
    merged = server.with_words_before(before, model=container.model) if before or container.model else server
    return replace(
        merged,
        name=container.name,
        target=merged.target or facts.target,
        image=container.image,
        image_at=container.image_at,
        tag_of=facts.tag_of,
        platform=from_env.platform,
        ignored_env=from_env.ignored,
        prefill=container.prefill,
    )


_KUBERNETES_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


def _filled(word: Word, env: Mapping[str, str | None]) -> Word:
    """`$(NAME)` replaced as Kubernetes does it; a variable without a known value leaves the word `dynamic`."""
    if "$" not in word.text or not _KUBERNETES_VARIABLE.search(word.text):
        return word
    chars: list[str] = []
    offsets: list[int] = []
    dynamic = word.dynamic
    position = 0
    for match in _KUBERNETES_VARIABLE.finditer(word.text):
        chars += word.text[position : match.start()]
        offsets += word.offsets[position : match.start()]
        position = match.end()
        value = "$" if match[1] is None else env.get(match[1])
        if value is None:
            dynamic = True
            value = match[0]
        chars += value
        offsets += [word.offsets[match.start()]] * len(value)
    chars += word.text[position:]
    offsets += word.offsets[position:]
    return replace(word, text="".join(chars), offsets=tuple(offsets), dynamic=dynamic)


def variables(pairs: Iterable[tuple[str, str | None, Location]]) -> dict[str, Variable]:
    """Environment variables by name; the last of a name counts."""
    return {name: Variable(value, location) for name, value, location in pairs}
