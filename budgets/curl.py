"""Request bodies out of `curl` commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ..serve.words import Word, split_words
from .document import Locate, Node, locator, refuse
from .files import read_text
from .json_text import read_json

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n")
_DATA = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json")


def read_curl(text: str, locate: Locate, *, folder: Path) -> list[tuple[Node, str | None]]:
    """The body of every `curl` command in `text` that posts one, with the URL it goes to.

    Args:
        text: shell text.
        locate: places in it.
        folder: where `-d @FILE` is looked for.

    Raises:
        InputError: a body is no JSON, or stands in a file that cannot be read.
    """
    found = []
    for words, heredoc in _curl_commands(text, locate):
        body: Node | None = None
        url = None
        for index, word in enumerate(words):
            name, equals, _ = word.text.partition("=")
            if word.text in _DATA and index + 1 < len(words):
                body = _body(words[index + 1], 0, heredoc, folder)
            elif equals and name in _DATA[1:]:
                body = _body(word, len(name) + 1, heredoc, folder)
            elif word.text.startswith("-d") and len(word.text) > 2 and not word.text.startswith("--"):
                body = _body(word, 2, heredoc, folder)
            elif word.text == "--url" and index + 1 < len(words):
                url = words[index + 1].text
            elif url is None and ("://" in word.text or "/v1/" in word.text) and not word.text.startswith("-"):
                url = word.text
        if body is not None:
            found.append((body, url))
    return found


def _body(word: Word, begin: int, heredoc: tuple[str, Locate] | None, folder: Path) -> Node:
    text = word.text[begin:]
    if text == "@-" and heredoc is not None:
        return read_json(*heredoc)
    if text.startswith("@"):
        path = folder / text[1:]
        return read_json(content := read_text(path, shown=str(path)), locator(content, str(path)))
    if word.dynamic and not text.lstrip().startswith("{"):
        raise refuse("the body comes from a variable, which only the shell knows", word.location, mend="write the body")
    return read_json(text, lambda offset: word.place(begin + offset))


def _curl_commands(text: str, locate: Locate) -> Iterator[tuple[Sequence[Word], tuple[str, Locate] | None]]:
    """Every curl command, and the here-document it reads, if any."""
    for piece, base, heredoc in _without_heredocs(text, locate):
        words: list[Word] = []
        for word in split_words(piece, _shifted(locate, base)):
            if word.operator and word.text in ("\n", ";", "&", "|", "&&", "||"):
                yield from _finished(words, None)
                words = []
            elif not word.operator:
                words.append(word)
        yield from _finished(words, heredoc)


def _finished(
    words: list[Word], heredoc: tuple[str, Locate] | None
) -> Iterator[tuple[Sequence[Word], tuple[str, Locate] | None]]:
    start = next((i for i, word in enumerate(words) if PurePosixPath(word.text).name in ("curl", "curl.exe")), None)
    if start is not None:
        yield words[start + 1 :], heredoc


def _shifted(locate: Locate, base: int) -> Locate:
    return lambda offset: locate(base + offset)


def _without_heredocs(text: str, locate: Locate) -> Iterator[tuple[str, int, tuple[str, Locate] | None]]:
    """Shell text up to each here-document, its offset, and the document."""
    start = 0
    for match in _HEREDOC.finditer(text):
        if match.start() < start:
            continue
        end = re.compile(rf"^[ \t]*{match[2]}[ \t]*$", re.MULTILINE).search(text, match.end())
        stop = end.start() if end is not None else len(text)
        yield text[start : match.start()], start, (text[match.end() : stop], _shifted(locate, match.end()))
        start = end.end() if end is not None else len(text)
    yield text[start:], start, None
