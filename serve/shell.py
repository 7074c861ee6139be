"""Runs a shell script on paper: variables, arrays, functions, branches, up to the servers that it starts.

What no script text decides (`[ "$TOOLS" = 1 ]` with TOOLS from outside) is tried both ways, and every server that comes
out of it is kept, with the condition in its name. Nothing is executed.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..budgets.document import Locate, refuse
from .command import ServeCommand, Server
from .words import Word, split_words

MAX_WAYS = 64
"""Ways through a script that are followed: six conditions that nothing decides."""
MAX_STEPS = 20_000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_PARAMETER = re.compile(r"\$(?:([A-Za-z_]\w*|[@*#?$!0-9-])|\{(.*)\})", re.DOTALL)
_BRACED = re.compile(r"([A-Za-z_]\w*|[@*0-9]+)(\[[@*]\])?(?:(:?[-=+?]|##?|%%?)(.*))?", re.DOTALL)
_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(['\"]?)(\w+)\2[^\n]*\n")
_TEST = ("[", "[[", "test")

Launch = Callable[[Sequence[Word], Mapping[str, str]], list[Server]]
"""What starts servers: one simple command, its words expanded, in its environment."""


def script_servers(text: str, locate: Locate, launch: Launch, env: Mapping[str, str] | None = None) -> list[Server]:
    """The servers that the script `text` starts, in the order of their places.

    Args:
        text: the script.
        locate: places in it.
        launch: tells whether a simple command starts a server, and which.
        env: variables that are set outside.

    Raises:
        InputError: a quote or bracket that never closes, or more open conditions than can be followed.
    """
    plain, bodies = _without_heredocs(text)
    return words_servers(split_words(plain, locate), launch, env) + [
        server
        for start, body in bodies
        if "vllm" in body
        for server in script_servers(body, lambda offset, start=start: locate(start + offset), launch, env)
    ]


def words_servers(words: Sequence[Word], launch: Launch, env: Mapping[str, str] | None = None) -> list[Server]:
    """As `script_servers`, for a script that is cut into words already."""
    pending: list[list[bool]] = [[]]
    ways: list[tuple[dict[str, bool], list[Server]]] = []
    while pending:
        if len(ways) >= MAX_WAYS:
            place = words[0].location
            raise refuse(
                "more open conditions than can be followed", place, mend="give the command that is run in the end"
            )
        decisions = pending.pop()
        way = _Way(words, launch, dict(env or {}), decisions)
        way.run()
        ways.append((dict(way.open), way.servers))
        for index in range(len(decisions), len(way.open)):
            pending.append([*list(way.open.values())[:index], False])
    return _joined(ways)


def _joined(ways: Sequence[tuple[dict[str, bool], list[Server]]]) -> list[Server]:
    """Every different server once. Where one place gives several, the conditions that tell them apart are named."""
    kinds: dict[tuple[object, ...], tuple[Server, list[dict[str, bool]]]] = {}
    for conditions, servers in ways:
        for server in servers:
            kinds.setdefault(_identity(server), (server, []))[1].append(conditions)
    at: dict[object, int] = {}
    for server, _ in kinds.values():
        at[server.location] = at.get(server.location, 0) + 1
    found: list[Server] = []
    for server, where in kinds.values():
        always = len(ways) == len(where) or at[server.location] == 1
        found.append(server if always else replace(server, name=f"{server.name} ({_common(where, ways)})"))
    return sorted(found, key=lambda server: (server.location.line or 0, server.location.column or 0))


def _common(where: Sequence[dict[str, bool]], ways: Sequence[tuple[dict[str, bool], list[Server]]]) -> str:
    """The conditions that hold in all these ways, in words."""
    shared = {
        condition: value
        for condition, value in where[0].items()
        if all(other.get(condition) == value for other in where)
    }
    return ", ".join(f"{'if' if value else 'unless'} {condition}" for condition, value in shared.items()) or "one way"


def _identity(server: Server) -> tuple[object, ...]:
    if isinstance(server, ServeCommand):
        flags = tuple((flag.name, flag.value) for flag in server.flags.values())
        return server.location, server.model, flags, tuple(sorted(server.env.items())), server.image
    return server.location, server.engine


def _without_heredocs(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The script with the bodies of its here-documents blanked, and those bodies with their offsets."""
    bodies: list[tuple[int, str]] = []
    position = 0
    while (match := _HEREDOC.search(text, position)) is not None:
        tabs = r"\t*" if match[1] else ""
        end = re.compile(rf"^{tabs}{re.escape(match[3])}[ \t]*$", re.MULTILINE).search(text, match.end())
        stop = end.end() if end is not None else len(text)
        body_stop = end.start() if end is not None else len(text)
        bodies.append((match.end(), text[match.end() : body_stop]))
        blank = re.sub(r"[^\n]", " ", text[match.end() : stop])
        head = text[match.start() : match.end()]
        text = text[: match.start()] + _blank_operator(head) + blank + text[stop:]
        position = match.end()
    return text, bodies


def _blank_operator(head: str) -> str:
    found = re.match(r"<<-?[ \t]*['\"]?\w+['\"]?", head)
    return " " * found.end() + head[found.end() :] if found is not None else head


@dataclass
class _Way:
    """One way through the script: `decisions` answers its open conditions in their order, True beyond them."""

    words: Sequence[Word]
    launch: Launch
    env: dict[str, str]
    decisions: list[bool]
    servers: list[Server] = field(default_factory=list)
    open: dict[str, bool] = field(default_factory=dict)
    arrays: dict[str, list[Word] | None] = field(default_factory=dict)
    variables: dict[str, str | None] = field(default_factory=dict)
    functions: dict[str, tuple[int, int]] = field(default_factory=dict)
    arguments: list[list[Word]] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    steps: int = 0

    def run(self) -> None:
        self.variables = dict(self.env)
        self.block(0, len(self.words))
        for name in [name for name in self.functions if name not in self.called]:
            self.call(name, None)

    # A block is a stretch of words; statements in it end at `;`, a line end, `&`.

    def block(self, start: int, end: int) -> None:
        at = start
        while at < end:
            at = self.statement(at, end)

    def statement(self, at: int, end: int) -> int:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise refuse("a script that goes on for ever", self.words[at].location, mend="give the command it ends in")
        word = self.words[at]
        if word.operator and word.text not in ("(",):
            return at + 1
        if word.text == "if" and not word.operator:
            return self.branch(at, end)
        if word.text in ("for", "select"):
            return self.loop(at, end)
        if word.text in ("while", "until"):
            return self.repeat(at, end)
        if word.text == "case":
            return self.case(at, end)
        if word.text == "function" or self.is_function(at, end):
            return self.define(at, end)
        if word.text == "{" or (word.operator and word.text == "("):
            close = self.closing(at, end)
            self.block(at + 1, close)
            return close + 1
        return self.list(at, end)

    def list(self, at: int, end: int) -> int:
        """Pipelines joined by `&&` and `||`."""
        result: bool | None = True
        run = True
        while at < end:
            stop = self.simple_end(at, end)
            if run:
                if self.words[at].text == "{" or (self.words[at].operator and self.words[at].text == "("):
                    stop = self.closing(at, end) + 1
                    self.block(at + 1, stop - 1)
                    result = True
                else:
                    result = self.simple(self.words[at:stop])
            operator = self.words[stop].text if stop < end and self.words[stop].operator else ""
            if operator not in ("&&", "||", "|"):
                return stop + 1
            if operator == "|":
                run = True
            elif stop + 1 < end:
                following = self.words[stop + 1]
                matters = following.text not in ("echo", "exit", "true", ":", "return")
                if result is None and matters:
                    result = self.decide(self.shown(at, stop))
                run = (result is not False) if operator == "&&" else (result is False)
            at = stop + 1
            while at < end and self.words[at].operator and self.words[at].text == "\n":
                at += 1
        return at

    def simple_end(self, at: int, end: int) -> int:
        """Where the simple command at `at` ends: an operator that is no redirection; array brackets belong to it."""
        if self.words[at].text == "{" or (self.words[at].operator and self.words[at].text == "("):
            return self.closing(at, end) + 1
        while at < end:
            word = self.words[at]
            if word.operator and word.text == "(" and at and self.words[at - 1].text.endswith("="):
                at = self.closing(at, end)
            elif word.operator and word.text[:1] not in "<>" and word.text not in ("&>", "&>>"):
                return at
            at += 1
        return end

    def simple(self, words: Sequence[Word]) -> bool | None:
        """A simple command. Its result where the script's text tells it, else None."""
        words = self.without_redirections(words)
        if words and words[0].text == "!":
            result = self.simple(words[1:])
            return None if result is None else not result
        while words and words[0].text in ("then", "do", "else", "exec", "time", "command", "builtin"):
            words = words[1:]
        if not words:
            return True
        if words[0].text in ("export", "declare", "local", "readonly", "typeset"):
            words = [word for word in words[1:] if not re.fullmatch(r"-[a-zA-Z]+", word.text)]
            exporting = True
        else:
            exporting = False
        before: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.match(words[0].text)) and not words[0].operator:
            if len(words) > 1 and words[1].operator and words[1].text == "(" and match.end() == len(words[0].text):
                close = next((i for i, w in enumerate(words) if w.operator and w.text == ")"), len(words))
                self.array(match[1], words[2:close], add=bool(match[2]))
                words = words[close + 1 :]
                continue
            value = self.value(words[0], match.end())
            alone = all(_ASSIGNMENT.match(word.text) for word in words)
            if alone or exporting:
                old = self.variables.get(match[1]) if match[2] else ""
                self.variables[match[1]] = None if value is None or old is None else old + value
                if exporting and value is not None:
                    self.env[match[1]] = value
            elif value is not None:
                before[match[1]] = value
            words = words[1:]
        if not words or exporting:
            return True
        return self.command(words, before)

    def command(self, words: Sequence[Word], before: Mapping[str, str]) -> bool | None:
        name = words[0].text
        if name in _TEST:
            return self.test([word for word in words[1:] if word.text not in ("]", "]]")])
        if name in ("true", ":"):
            return True
        if name == "false":
            return False
        if name == "set" and len(words) > 1 and words[1].text == "--":
            self.arguments = [*self.arguments[:-1], self.expanded(words[2:])]
            return True
        if name in ("unset",):
            for word in words[1:]:
                self.variables.pop(word.text, None)
                self.arrays.pop(word.text, None)
            return True
        expanded = self.expanded(words)
        if name in self.functions:
            self.call(name, expanded[1:])
            return None
        env = {**self.env, **before}
        found = self.launch(expanded, env)
        self.servers += found
        return None if not found else True

    # Control flow

    def branch(self, at: int, end: int) -> int:
        close = self.matching(at, end, "if", "fi")
        marks = [at, *self.middle(at, close, "if", "fi", ("elif", "else")), close]
        for index in range(len(marks) - 1):
            start, stop = marks[index], marks[index + 1]
            if self.words[start].text == "else":
                self.block(start + 1, stop)
                break
            then = next((i for i in self.middle(start, stop, "if", "fi", ("then",))), stop)
            if self.condition(start + 1, then):
                self.block(then + 1, stop)
                break
        return close + 1

    def condition(self, start: int, end: int) -> bool:
        """Whether the commands between `if` and `then` succeed; an open one is decided for this way."""
        result: bool | None = True
        at = start
        chain: str | None = None
        while at < end:
            if self.words[at].operator:
                if self.words[at].text in ("&&", "||"):
                    chain = self.words[at].text
                at += 1
                continue
            stop = self.simple_end(at, end)
            mine = self.simple(self.words[at:stop])
            if chain == "&&":
                result = False if result is False or mine is False else None if None in (result, mine) else True
            elif chain == "||":
                result = True if result is True or mine is True else None if None in (result, mine) else False
            else:
                result = mine
            chain = None
            at = stop
        return self.decide(self.shown(start, end)) if result is None else result

    def loop(self, at: int, end: int) -> int:
        close = self.matching(at, end, "do", "done", opener=("for", "while", "until", "select"))
        do = next((i for i in range(at, close) if self.words[i].text == "do" and not self.words[i].operator), close)
        name = self.words[at + 1].text if at + 1 < close else ""
        items = [word for word in self.words[at + 3 : do] if not word.operator] if at + 2 < do else []
        values = self.expanded(items)
        for word in values[:MAX_WAYS] or [None]:
            self.variables[name] = None if word is None or word.dynamic else word.text
            self.block(do + 1, close)
        return close + 1

    def repeat(self, at: int, end: int) -> int:
        close = self.matching(at, end, "do", "done", opener=("for", "while", "until", "select"))
        do = next((i for i in range(at, close) if self.words[i].text == "do" and not self.words[i].operator), close)
        self.block(do + 1, close)
        return close + 1

    def case(self, at: int, end: int) -> int:
        close = self.matching(at, end, "case", "esac")
        subject = self.value(self.words[at + 1], 0) if at + 1 < close else None
        start = next((i + 1 for i in range(at, close) if self.words[i].text == "in"), close)
        for patterns, begin, stop in self.cases(start, close):
            known = subject is not None and not any(word.dynamic for word in patterns)
            hit = (
                any(fnmatch.fnmatchcase(subject or "", word.text) for word in patterns)
                if known
                else self.decide(f"{self.words[at + 1].text} is {'|'.join(word.text for word in patterns)}")
            )
            if hit:
                self.block(begin, stop)
                break
        return close + 1

    def cases(self, start: int, close: int) -> Iterator[tuple[list[Word], int, int]]:
        at = start
        while at < close:
            while at < close and self.words[at].operator and self.words[at].text in ("\n", ";;", "("):
                at += 1
            bracket = next((i for i in range(at, close) if self.words[i].operator and self.words[i].text == ")"), close)
            stop = next(
                (i for i in range(bracket, close) if self.words[i].operator and self.words[i].text == ";;"), close
            )
            if bracket < close:
                yield [word for word in self.words[at:bracket] if not word.operator], bracket + 1, stop
            at = stop + 1

    def is_function(self, at: int, end: int) -> bool:
        following = self.words[at + 1 : at + 3]
        return (
            len(following) == 2
            and all(word.operator for word in following)
            and (
                following[0].text + following[1].text == "()"
                and re.fullmatch(r"[\w.-]+", self.words[at].text) is not None
            )
        )

    def define(self, at: int, end: int) -> int:
        name_at = at + 1 if self.words[at].text == "function" else at
        brace = next((i for i in range(name_at, end) if self.words[i].text == "{"), None)
        if brace is None:
            return at + 1
        close = self.closing(brace, end)
        self.functions[self.words[name_at].text] = (brace + 1, close)
        return close + 1

    def call(self, name: str, arguments: list[Word] | None) -> None:
        if len(self.arguments) > 8:
            return
        self.called.add(name)
        self.arguments.append(arguments if arguments is not None else [])
        self.block(*self.functions[name])
        self.arguments.pop()

    def matching(self, at: int, end: int, word: str, close: str, *, opener: Sequence[str] = ()) -> int:
        """The index of the word that closes what opens at `at`."""
        depth = 0
        openers = opener or (word,)
        for index in range(at, end):
            here = self.words[index]
            if here.operator or not self.starts(index):
                continue
            depth += (here.text in openers) - (here.text == close)
            if depth == 0 and here.text == close:
                return index
        raise refuse(
            f"this {self.words[at].text} has no {close}", self.words[at].location, mend=f"close it with {close}"
        )

    def middle(self, at: int, end: int, word: str, close: str, wanted: Sequence[str]) -> Iterator[int]:
        """Words of this level between `at` and `end`."""
        depth = 0
        for index in range(at, end):
            here = self.words[index]
            if here.operator or not self.starts(index):
                continue
            depth += (here.text == word) - (here.text == close)
            if here.text in wanted and depth == (1 if self.words[at].text == word else 0) and index != at:
                yield index

    def starts(self, index: int) -> bool:
        """A word in the position of a command, where keywords count."""
        before = self.words[index - 1] if index else None
        keywords = ("then", "do", "else", "if", "elif", "while", "until", "{", "!", "in")
        return before is None or (before.operator and before.text[:1] not in "<>") or before.text in keywords

    def closing(self, at: int, end: int) -> int:
        opening = self.words[at].text
        close = {"{": "}", "(": ")"}[opening]
        depth = 0
        for index in range(at, end):
            text = self.words[index].text
            same = self.words[index].operator == self.words[at].operator
            depth += same * ((text == opening) - (text == close))
            if depth == 0:
                return index
        raise refuse("this bracket is never closed", self.words[at].location, mend="close it")

    # Values

    def decide(self, condition: str) -> bool:
        if condition not in self.open:
            number = len(self.open)
            self.open[condition] = self.decisions[number] if number < len(self.decisions) else True
        return self.open[condition]

    def shown(self, start: int, end: int) -> str:
        return " ".join(word.text for word in self.words[start:end] if word.text not in ("\n", ";"))

    def test(self, words: Sequence[Word]) -> bool | None:
        """`[ ... ]`, where the script's own text decides it."""
        if len(words) > 4 or any(word.text in ("&&", "||", "-a", "-o") for word in words):
            return None
        if words and words[0].text == "!":
            result = self.test(words[1:])
            return None if result is None else not result
        values = [self.value(word, 0) for word in words]
        if any(value is None for value in values):
            return None
        texts = [value or "" for value in values]
        if len(texts) == 1:
            return texts[0] != ""
        if len(texts) == 2 and texts[0] in ("-n", "-z"):
            return (texts[1] != "") == (texts[0] == "-n")
        if len(texts) == 3 and texts[1] in ("=", "==", "!="):
            return fnmatch.fnmatchcase(texts[0], texts[2]) == (texts[1] != "!=")
        if len(texts) == 3 and texts[1] in _COMPARE and all(re.fullmatch(r"-?\d+", texts[i]) for i in (0, 2)):
            return _COMPARE[texts[1]](int(texts[0]), int(texts[2]))
        return None

    def array(self, name: str, words: Sequence[Word], *, add: bool) -> None:
        values = self.expanded([word for word in words if not word.operator])
        old = self.arrays.get(name, []) if add else []
        if add and name in self.variables and not old:
            old = []
        self.arrays[name] = None if old is None else [*old, *values]

    def without_redirections(self, words: Sequence[Word]) -> list[Word]:
        kept: list[Word] = []
        skip = False
        for word in words:
            if skip:
                skip = False
            elif word.operator and (word.text[:1] in "<>" or word.text in ("&>", "&>>")):
                if kept and kept[-1].text in ("1", "2") and kept[-1].offsets[-1] == word.offsets[0]:
                    kept.pop()
                skip = True
            else:
                kept.append(word)
        return kept

    def expanded(self, words: Sequence[Word]) -> list[Word]:
        return [part for word in words for part in self.parts(word)]

    def value(self, word: Word, start: int) -> str | None:
        """The text of a word from `start` on, None where something in it is unknown."""
        parts = self.parts(replace_start(word, start), split=False)
        if any(part.dynamic for part in parts):
            return None
        return " ".join(part.text for part in parts)

    def parts(self, word: Word, *, split: bool = True) -> list[Word]:
        """The words that one word becomes. An unknown expansion stays in it, and the word is `dynamic`."""
        if not word.expansions:
            return [word]
        done: list[Word] = []
        chars: list[str] = []
        offsets: list[int] = []
        dynamic = False
        position = 0
        kept: list[tuple[int, int, bool]] = []
        started = False

        def flush(at: int) -> None:
            nonlocal chars, offsets, dynamic, kept, started
            done.append(
                replace(word, text="".join(chars), offsets=(*offsets, at), dynamic=dynamic, expansions=tuple(kept))
            )
            chars, offsets, dynamic, kept, started = [], [], False, [], False

        for begin, end, quoted in word.expansions:
            if begin > position:
                started = True
            chars += word.text[position:begin]
            offsets += word.offsets[position:begin]
            position = end
            origin = word.offsets[begin]
            value = self.expansion(word.text[begin:end], word, begin)
            if value is None:
                dynamic = started = True
                kept.append((len(chars), len(chars) + end - begin, quoted))
                chars += word.text[begin:end]
                offsets += word.offsets[begin:end]
            elif isinstance(value, str):
                pieces = [value] if quoted or not split else re.split(r"\s+", value)
                for number, piece in enumerate(pieces):
                    if number and started:
                        flush(origin)
                    if piece or quoted:
                        started = True
                    chars += piece
                    offsets += [origin] * len(piece)
            else:
                for number, item in enumerate(value):
                    if number:
                        flush(origin)
                    chars += item.text
                    offsets += item.offsets[:-1] if item.locate is word.locate else [origin] * len(item.text)
                    dynamic |= item.dynamic
                    started = True
        if position < len(word.text):
            started = True
        chars += word.text[position:]
        offsets += word.offsets[position:-1]
        if started:
            flush(word.offsets[-1])
        return done

    def expansion(self, text: str, word: Word, begin: int) -> str | list[Word] | None:
        """What an expansion gives: a text, the words of an array, None where it is not known."""
        match = _PARAMETER.fullmatch(text)
        if match is None:
            return None
        if match[1] is not None:
            return self.parameter(match[1])
        braced = _BRACED.fullmatch(match[2])
        if braced is None:
            return None
        name, whole, how, other = braced.groups()
        found = self.array_of(name) if whole else self.parameter(name)
        if how is None:
            return found
        if how in ("#", "##", "%", "%%"):
            return _stripped(found, how, other) if isinstance(found, str) else None
        return self.defaulted(name, found, how, other or "", word, begin + text.index(how) + len(how))

    def defaulted(
        self, name: str, found: str | list[Word] | None, how: str, other: str, word: Word, at: int
    ) -> str | list[Word] | None:
        is_set = found is not None or name in self.variables or name in self.arrays
        empty = how.startswith(":") and not found
        if how.endswith("+"):
            return self.text_of(other, word, at) if is_set and not empty else "" if not self.outer(name) else None
        if is_set and not empty:
            return found
        if how.endswith(("-", "=")):
            value = self.text_of(other, word, at)
            if how.endswith("="):
                self.variables[name] = value
            return value
        return None

    def outer(self, name: str) -> bool:
        """Whether a variable may be set from outside: it is none that the script itself sets."""
        return name not in self.variables

    def text_of(self, text: str, word: Word, at: int) -> str | None:
        words = split_words(text, lambda offset: word.place(min(at + offset, len(word.text))))
        values = [self.value(part, 0) for part in words if not part.operator]
        return None if any(value is None for value in values) else " ".join(value or "" for value in values)

    def array_of(self, name: str) -> list[Word] | None:
        if name in self.arrays:
            return self.arrays[name]
        value = self.variables.get(name)
        return None if value is None else []

    def parameter(self, name: str) -> str | list[Word] | None:
        if name in ("@", "*"):
            return self.arguments[-1] if self.arguments else None
        if name.isdigit():
            given = self.arguments[-1] if self.arguments else []
            index = int(name) - 1
            return given[index].text if 0 <= index < len(given) and not given[index].dynamic else None
        if name in self.arrays and name not in self.variables:
            items = self.arrays[name]
            return items[0].text if items else None if items is None else ""
        return self.variables.get(name)


def replace_start(word: Word, start: int) -> Word:
    """The part of a word behind its first `start` characters."""
    if not start:
        return word
    return replace(
        word,
        text=word.text[start:],
        offsets=word.offsets[start:],
        expansions=tuple((b - start, e - start, q) for b, e, q in word.expansions if b >= start),
    )


_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
}


def _stripped(value: str, how: str, pattern: str) -> str:
    """`${NAME#pattern}` and its kin."""
    ends = range(len(value) + 1)
    if how[0] == "#":
        order = reversed(ends) if how == "##" else iter(ends)
        return next((value[i:] for i in order if fnmatch.fnmatchcase(value[:i], pattern)), value)
    order = iter(ends) if how == "%%" else reversed(ends)
    return next((value[:i] for i in order if fnmatch.fnmatchcase(value[i:], pattern)), value)
