"""Serve commands from plain command lines: typed on the spot, in a file, or on stdin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ..budgets.document import locator, named, refuse
from ..checks.finding import Location
from ..errors import InputError
from ..parsers.target import Target
from .command import Flag, OtherServer, Product, ServeCommand, Server
from .docker import container_run, is_container_run
from .engines import engine_of
from .flags import LONG, SEVERAL, stands_alone
from .images import image_facts, pinned
from .options import ONE_VALUE, READ, meant_by
from .secret import told_value, without_user
from .shell import script_servers, words_servers
from .words import Word, word_at

FORMS = "a `vllm serve`, `slimserve` or `python -m vllm.entrypoints.openai.api_server` command line, typed or in a file"
"""A serve command by itself, for messages."""
_MENTIONED = re.compile(r"\bvllm\b|\bslimserve\b", re.IGNORECASE)


def parse_command_line(text: str, *, path: str, line: int = 1) -> ServeCommand:
    """The one serve command in `text`, which begins at `line` of `path`. Raises InputError for none or several."""
    commands = find_commands(text, path=path, line=line)
    if len(commands) != 1:
        what = "no serve command" if not commands else f"{len(commands)} serve commands where one is meant"
        raise InputError(f"{what} in it", source=named(path), line=line, mend=f"give {FORMS}")
    return commands[0]


def find_commands(text: str, *, path: str, line: int = 1) -> list[ServeCommand]:
    """Every vLLM or SlimServe command that the script `text` starts. Raises InputError where it cannot be followed."""
    found = script_servers(text, locator(text, path, line=line), launch)
    return [server for server in unbroken(found) if isinstance(server, ServeCommand)]


def unbroken(servers: Sequence[Server]) -> list[Server]:
    """The servers; raises the first InputError that one of them holds."""
    for server in servers:
        if isinstance(server, ServeCommand) and server.broken:
            raise server.broken[0]
    return list(servers)


def in_words(words: Sequence[Word], env: Mapping[str, str]) -> list[Server]:
    """The servers that a command, already cut into words, starts; `env` is its environment."""
    return words_servers(words, launch, env)


def launch(words: Sequence[Word], env: Mapping[str, str]) -> list[Server]:
    """The servers that one simple command starts: itself, in a container, or in the command line that it hands on."""
    texts = [word.text for word in words]
    if texts and PurePosixPath(texts[0]).name in _SHOW:
        return []
    if is_container_run(words):
        return container_run(words)
    start = _signature(words)
    if start is not None:
        product, at, begin = start
        if _HELP.intersection(texts[begin:]):
            return []
        command = command_of(product, words[at].location, words[begin:], env)
        return [_within(command, words[:at])] if product == "vllm" else [command]
    other = engine_of(texts)
    if other is not None:
        return [OtherServer(other, other, words[0].location)]
    found: list[Server] = []
    for index, word in enumerate(words):
        if index and _SEVERAL_WORDS.search(word.text) and _hands_on(texts, index):
            inner = script_servers(word.text, word.place, launch, env)
            found += inner
    return found


def _within(command: ServeCommand, before: Sequence[Word]) -> ServeCommand:
    """The command with what the words before it tell: the image it is run in (srun, apptainer), a pinned version."""
    for index, word in enumerate(before):
        name, equals, value = word.text.partition("=")
        if name in _IMAGE_OPTIONS:
            following = before[index + 1] if not equals and index + 1 < len(before) else None
            reference, at = (value, word) if equals else (following.text, following) if following else ("", word)
        elif word.text.startswith(("docker://", "oras://")):
            reference, at = word.text, word
        else:
            continue
        if reference and not at.dynamic:
            facts = image_facts(reference)
            return replace(command, image=reference, image_at=at.location, target=facts.target, tag_of=facts.tag_of)
    version = pinned(" ".join(word.text for word in before))
    return command if version is None else replace(command, target=version)


_IMAGE_OPTIONS = ("--container-image", "--image", "--docker-image")
"""Options of launchers (pyxis' srun, `kubectl run`, ...) that name an image."""
_HELP = frozenset({"--help", "-h", "--version", "-v"})
_SHOW = frozenset({"echo", "printf", "logger", "alias", "print", "cat", "grep", "sed", "which", "man"})
"""Programs that show their words and start nothing."""
_SEVERAL_WORDS = re.compile(r"\s")
_HANDS_ON = frozenset(
    {"ssh", "tmux", "screen", "su", "sudo", "kubectl", "watch", "nsenter", "sbatch", "srun", "parallel"}
)


def _hands_on(texts: Sequence[str], index: int) -> bool:
    """Whether the word at `index` is a command line of its own: behind `-c`, or what `ssh` and its like run."""
    if re.fullmatch(r"-\w*c", texts[index - 1]):
        return True
    return PurePosixPath(texts[0]).name in _HANDS_ON and _MENTIONED.search(texts[index]) is not None


def _signature(words: Sequence[Word]) -> tuple[Product, int, int] | None:
    """Which product these words start, the index of its name, and that of the first word behind it."""
    texts = [word.text for word in words]
    for index, text in enumerate(texts):
        name = PurePosixPath(text).name
        following = texts[index + 1] if index + 1 < len(texts) else ""
        if name == "vllm" and following == "serve":
            return "vllm", index, index + 2
        if name == "slimserve" and not text.startswith("-"):
            return "slimserve", index, index + 1
        if text == "-m" and following.startswith("vllm.entrypoints.openai.api_server"):
            return "vllm", index + 1, index + 2
        if (
            text == "-m"
            and following in ("vllm", "vllm.entrypoints.cli.main")
            and texts[index + 2 : index + 3] == ["serve"]
        ):
            return "vllm", index + 1, index + 3
        if name == "api_server.py":
            return "vllm", index, index + 1
    if texts and texts[0].startswith("--"):  # what stands behind an image whose entry point is the server
        return "vllm", 0, 0
    return None


def command_of(product: Product, location: Location, words: Sequence[Word], env: Mapping[str, str]) -> ServeCommand:
    """The command that these words behind the program's name make."""
    flags: dict[str, Flag] = {}
    positional: list[Word] = []
    broken: list[InputError] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_flag(word.text):
            positional.append(word)
            continue
        flag = _flag(word, rest, product, broken)
        flags.pop(flag.name, None)  # the last one wins, and stands last
        flags[flag.name] = flag
    if product == "slimserve" and positional and positional[0].text == "serve":
        positional.pop(0)
    model = flags.get("model")
    if model is not None:
        named = None if model.dynamic else model.value
    else:
        named = positional[0].text if positional and not positional[0].dynamic else None
    named = without_user(named) if named is not None else None
    served = flags.get("served-model-name")
    name = served.value.split()[0] if served is not None and served.value and not served.dynamic else named
    return ServeCommand(
        product=product,
        model=named,
        flags=flags,
        env=dict(env),
        location=location,
        target=Target("slimserve") if product == "slimserve" else None,
        name=name or product,
        words=tuple(words),
        model_hidden=named is None and (model.dynamic if model is not None else bool(positional)),
        open_words=tuple(told_value(word.text) for word in positional[0 if model is not None else 1 :] if word.dynamic),
        broken=tuple(broken),
    )


def _is_flag(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and not re.fullmatch(r"-\d+(\.\d+)?", text)


_JOINED = re.compile(r"(--[\w.-]+)[ \t]+([^=].*)", re.DOTALL)
"""A flag and its value in one argument, as a manifest's list shows no difference to the eye."""


def _flag(word: Word, rest: list[Word], product: Product, broken: list[InputError]) -> Flag:
    """The flag that `word` begins; words of its value are taken from `rest`, what is refused is added to `broken`."""
    both = None if word.dynamic else _JOINED.fullmatch(word.text)
    if both is not None:  # the two are meant, and judged as such
        what = f"{both[1]} and its value are one argument, and vLLM has no flag of that name"
        broken.append(refuse(what, word.location, mend="write the flag and its value as two arguments"))
        word = word_at(f"{both[1]}={both[2].strip()}", word.location)
    text, equals, value = word.text.partition("=")
    if text.startswith("--"):
        head, dot, tail = text[2:].partition(".")
        name = _option(head.replace("_", "-"), word, product, broken) + dot + tail
    elif match := re.fullmatch(r"-O=?(\d+)", word.text):
        return Flag("optimization-level", match[1], word.location)
    else:
        name = LONG.get(text[1:].partition(".")[0], text[1:])
    if equals:
        offset = len(text) + 1
        return Flag(name, value, word.location, word.dynamic, lambda index: word.place(offset + index))
    if stands_alone(name, product=product) and "." not in name:
        return Flag(name, None, word.location)
    wants = "." in name or name in ONE_VALUE or name in SEVERAL
    if wants and (not rest or (_is_flag(rest[0].text) and ("." not in name or rest[0].text.startswith("--")))):
        broken.append(refuse(f"--{name} has no value", word.location, mend="write it behind the flag"))
        return Flag(name, None, word.location, dynamic=True)
    if name in SEVERAL:
        taken: list[Word] = []
        while rest and not _is_flag(rest[0].text):
            taken.append(rest.pop(0))
        joined = " ".join(other.text for other in taken) if taken else None
        return Flag(name, joined, word.location, any(other.dynamic for other in taken))
    if rest and not _is_flag(rest[0].text):
        given = rest.pop(0)
        return Flag(name, given.text, word.location, given.dynamic, given.place)
    return Flag(name, None, word.location)


def _option(name: str, word: Word, product: Product, broken: list[InputError]) -> str:
    """The option that a long flag's name stands for; what vLLM does not know, or nothing here reads, stays as it is."""
    if product != "vllm" or "$" in name:
        return name
    meant = meant_by(name)
    if len(meant) == 1:
        return meant[0]
    if READ.intersection(meant):
        shown = ", ".join(f"--{option}" for option in meant[:4]) + (", ..." if len(meant) > 4 else "")
        what = f"--{name} may stand for {shown}: vLLM refuses it"
        broken.append(refuse(what, word.location, mend="write the flag out"))
    return name
