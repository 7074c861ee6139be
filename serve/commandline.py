"""Serve commands from plain command lines: typed on the spot, in a file, or on stdin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from ..budgets.document import Locate, locator, named, refuse
from ..budgets.files import read_stdin, read_text
from ..checks.finding import Location
from ..errors import InputError
from ..parsers.target import Target
from .command import Flag, Product, ServeCommand, Server
from .flags import LONG, SEVERAL, stands_alone
from .options import ONE_VALUE, READ, meant_by
from .words import Word, split_words

FORMS = "a `vllm serve`, `slimserve` or `python -m vllm.entrypoints.openai.api_server` command line, typed or in a file"
"""The forms that are read, for messages."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BRANCHING = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function"}
)
_OTHER_FORM = re.compile(r"^(?:---\s*$|[\w.-]+:(?:\s|$)|[{\[<])|non-default args:", re.MULTILINE)
_MENTIONED = re.compile(r"\bvllm\b|\bslimserve\b|^\s*--?[a-z]", re.IGNORECASE)


def read_serve(value: str, *, flag: str = "--serve") -> list[ServeCommand]:
    """Every server that a `--serve` value starts.

    Args:
        value: a file, a command line, or `-` for stdin.
        flag: the flag the value came from: the path of findings about a command line that stands in no file.

    Raises:
        InputError: nothing of the forms that are read.
    """
    if value == "-":
        return _commands(read_stdin(), path="-")
    path = Path(value)
    if _is_file(path):
        return _commands(read_text(path, shown=value), path=value)
    if re.search(r"\s", value.strip()) and _MENTIONED.search(value):
        return _commands(value, path=flag)
    what = "a folder is not read yet" if _is_folder(path) else "no such file, and no command line"
    raise InputError(what, source=value, mend=f"give {FORMS}")


def parse_command_line(text: str, *, path: str, line: int = 1) -> ServeCommand:
    """The one serve command in `text`, which begins at `line` of `path`. Raises InputError for none or several."""
    commands = find_commands(text, path=path, line=line)
    if len(commands) != 1:
        what = "no serve command" if not commands else f"{len(commands)} serve commands where one is meant"
        raise InputError(f"{what} in it", source=named(path), line=line, mend=f"give {FORMS}")
    return commands[0]


def find_commands(text: str, *, path: str, line: int = 1) -> list[ServeCommand]:
    """Every serve command in `text`, none where it holds none. Raises InputError where branches decide what runs."""
    return list(_found(split_words(text, locator(text, path, line=line)), {}))


def _commands(text: str, *, path: str) -> list[ServeCommand]:
    suffix = PurePosixPath(path).suffix.lower()
    significant = "\n".join(row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#"))
    if suffix in (".yaml", ".yml", ".json", ".toml") or _OTHER_FORM.match(significant) or "non-default args:" in text:
        raise InputError("this form of a serve command is not read yet", source=named(path), mend=f"give {FORMS}")
    commands = find_commands(text, path=path)
    if not commands:
        raise InputError("no serve command in it", source=named(path), mend=f"give {FORMS}")
    return commands


def _found(words: Sequence[Word], exported: dict[str, str]) -> Iterator[ServeCommand]:
    for simple in _simple_commands(words):
        first = simple[0]
        if first.text in _BRANCHING or first.text in ("{", "}") or any(w.operator and w.text in "()" for w in simple):
            raise InputError(
                "a shell script with branches, functions or arrays is not read yet",
                source=first.location.path,
                line=first.location.line,
                column=first.location.column,
                mend=f"give {FORMS}",
            )
        if first.text == "export":
            exported.update(_assignments(simple[1:]))
            continue
        start = _signature(simple)
        if start is not None:
            product, at, begin = start
            env = {**exported, **_assignments(simple[:at])}
            yield command_of(product, simple[at].location, simple[begin:], env)
            continue
        for index, word in enumerate(simple):  # bash -c "vllm serve ..."
            if index and re.search(r"\s", word.text) and re.fullmatch(r"-\w*c", simple[index - 1].text):
                inner = split_words(word.text, _within(word))
                yield from _found(inner, {**exported, **_assignments(simple[:index])})


def _within(word: Word) -> Locate:
    """Places inside a word that is a command line itself."""
    return word.place


def _simple_commands(words: Sequence[Word]) -> Iterator[list[Word]]:
    """The commands between operators, without redirections."""
    current: list[Word] = []
    skip = False
    for word in words:
        if skip and not word.operator:
            skip = False
        elif word.operator and (word.text[:1] in "<>" or word.text in ("&>", "&>>")):
            if current and not current[-1].operator and current[-1].text in ("1", "2") and _adjacent(current[-1], word):
                current.pop()
            skip = True
        elif word.operator and word.text not in ("(", ")"):
            if current:
                yield current
            current = []
            skip = False
        else:
            current.append(word)
    if current:
        yield current


def _adjacent(left: Word, right: Word) -> bool:
    """No space between: `2>` is a redirection, `2 >` a word and one."""
    return left.offsets[-1] == right.offsets[0]


def _assignments(words: Sequence[Word]) -> dict[str, str]:
    """The environment that words in front of a command set; a value that only the shell knows is left out."""
    pairs = (word.text.partition("=") for word in words if _ASSIGNMENT.match(word.text) and not word.dynamic)
    return {name: value for name, _, value in pairs}


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


def in_words(words: Sequence[Word], env: Mapping[str, str]) -> list[Server]:
    """The servers that one command, already cut into words, starts; `env` is its environment."""
    return list(_found(words, dict(env)))


def command_of(product: Product, location: Location, words: Sequence[Word], env: Mapping[str, str]) -> ServeCommand:
    """The command that these words behind the program's name make."""
    flags: dict[str, Flag] = {}
    positional: list[Word] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_flag(word.text):
            positional.append(word)
            continue
        flag = _flag(word, rest, product)
        flags.pop(flag.name, None)  # the last one wins, and stands last
        flags[flag.name] = flag
    if product == "slimserve" and positional and positional[0].text == "serve":
        positional.pop(0)
    model = flags.get("model")
    if model is not None:
        named = None if model.dynamic else model.value
    else:
        named = positional[0].text if positional and not positional[0].dynamic else None
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
    )


def _is_flag(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and not re.fullmatch(r"-\d+(\.\d+)?", text)


def _flag(word: Word, rest: list[Word], product: Product) -> Flag:
    """The flag that `word` begins; words of its value are taken from `rest`."""
    text, equals, value = word.text.partition("=")
    if text.startswith("--"):
        head, dot, tail = text[2:].partition(".")
        name = _option(head.replace("_", "-"), word, product) + dot + tail
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
        raise refuse(f"--{name} has no value", word.location, mend="write it behind the flag")
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


def _option(name: str, word: Word, product: Product) -> str:
    """The option that a long flag's name stands for; what vLLM does not know, or nothing here reads, stays as it is."""
    if product != "vllm" or "$" in name:
        return name
    meant = meant_by(name)
    if len(meant) == 1:
        return meant[0]
    if READ.intersection(meant):
        shown = ", ".join(f"--{option}" for option in meant[:4]) + (", ..." if len(meant) > 4 else "")
        raise refuse(f"--{name} may stand for {shown}: vLLM refuses it", word.location, mend="write the flag out")
    return name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a command line can be too long for a path
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
