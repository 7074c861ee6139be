"""One way through a shell script: its commands in order, with every open condition decided one way."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..budgets.document import Locate, locator, refuse
from ..budgets.files import read_text
from ..errors import InputError
from .command import Server
from .secret import told, told_case
from .shell_values import Values
from .words import Word, split_words
from .work import MAX_INSIDE, MAX_WORDS, bounded

MAX_LOOPS = 64
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*(?:\[[^\]\s]+\])?)(\+?)=")
_KEYED = re.compile(r"\[([^\]]+)\]=")
_TEST = ("[", "[[", "test")

Launch = Callable[[Sequence[Word], Mapping[str, str]], list[Server]]
"""What starts servers: one simple command, its words expanded, in its environment."""


@dataclass
class Way(Values):
    """One way through the script: `decisions` answers its open conditions in their order, True beyond them.

    A block is a stretch of words; statements in it end at `;`, a line end, `&`.
    """

    words: Sequence[Word] = ()
    launch: Launch = lambda words, env: []
    env: dict[str, str] = field(default_factory=dict)
    decisions: Sequence[bool] = ()
    servers: list[Server] = field(default_factory=list)
    open: dict[str, bool] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    functions: dict[str, tuple[int, int]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    inside: int = 0

    def run(self) -> None:
        self.variables = dict(self.env)
        self.block(0, len(self.words))
        for name in [name for name in self.functions if name not in self.called]:
            self.call(name, None)

    def block(self, start: int, end: int) -> None:
        at = start
        while at < end:
            at = self.statement(at, end)

    def statement(self, at: int, end: int) -> int:
        word = self.words[at]
        self.work.step(word.location)
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
        return self.chain(at, end)

    def chain(self, at: int, end: int) -> int:
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
                    result = self.decide(self.words[at:stop], told(self.words[at:stop]))
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
                self.variables[match[1]] = None if value is None or old is None else bounded(old + value)
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
        if name == "eval" and not any(word.dynamic for word in expanded):
            return self.script(" ".join(word.text for word in expanded[1:]), lambda _: words[0].location)
        if name in ("source", ".") and len(expanded) > 1:
            return self.sourced(expanded[1])
        if name in self.functions:
            self.call(name, expanded[1:])
            return None
        self.work.take(sum(len(word.text) for word in expanded), words[0].location)
        env = {**self.env, **before}
        found = self.launch(expanded, env)
        self.servers += found
        return None if not found else True

    def script(self, text: str, locate: Locate) -> bool | None:
        """Another script, run where this one stands."""
        if self.inside >= MAX_INSIDE:
            return None
        self.work.cut(text, locate(0))
        before, self.words = self.words, split_words(text, locate)
        functions, self.functions = self.functions, {}
        started = len(self.servers)
        self.inside += 1
        try:
            self.block(0, len(self.words))
        finally:
            self.inside -= 1
            self.words, self.functions = before, functions
        return True if len(self.servers) > started else None

    def sourced(self, word: Word) -> bool | None:
        """`source FILE`, where the file lies beside the script; what leads to it may be unknown (`$(dirname "$0")`)."""
        name = word.text.rpartition("/")[2] if word.dynamic else word.text
        if not name or "$" in name:
            return None
        for path in (Path(word.location.path).parent / name, Path(name)):
            if path.is_file():
                try:
                    text = read_text(path, shown=str(path))
                    return self.script(text, locator(text, str(path)))
                except InputError:
                    if self.work.spent:
                        raise
                    return None
        return None

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
        words = self.words[start:end]
        return self.decide(words, told(words)) if result is None else result

    def loop(self, at: int, end: int) -> int:
        close = self.matching(at, end, "do", "done", opener=("for", "while", "until", "select"))
        do = next((i for i in range(at, close) if self.words[i].text == "do" and not self.words[i].operator), close)
        name = self.words[at + 1].text if at + 1 < close else ""
        items = [word for word in self.words[at + 3 : do] if not word.operator] if at + 2 < do else []
        values = self.expanded(items)
        known = [None if word.dynamic else word.text for word in values[:MAX_LOOPS]]
        for value in known or [None]:
            self.variables[name] = value
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
                if known or any(word.text == "*" for word in patterns)
                else self.decide([self.words[at + 1], *patterns], told_case(self.words[at + 1], patterns))
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

    def decide(self, words: Sequence[Word], said: str) -> bool:
        """Answer an open condition, as before where it has been met; `said` is what reports may tell of it."""
        condition = " ".join(word.text for word in words)
        if condition not in self.open:
            number = len(self.open)
            self.open[condition] = self.decisions[number] if number < len(self.decisions) else True
            self.said[condition] = said
        return self.open[condition]

    def test(self, words: Sequence[Word]) -> bool | None:
        """`[ ... ]`, where the script's own text decides it."""
        if len(words) > 4 or any(word.text in ("&&", "||", "-a", "-o") for word in words):
            return None
        if words and words[0].text == "!":
            result = self.test(words[1:])
            return None if result is None else not result
        self.revealing = True  # a secret may decide, and is not told
        values = [self.value(word, 0) for word in words]
        self.revealing = False
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
        given = [word for word in words if not word.operator]
        if given and all(_KEYED.match(word.text) for word in given):
            for word in given:
                key = _KEYED.match(word.text)
                if key is not None:
                    self.variables[f"{name}[{key[1]}]"] = self.value(word, key.end())
            return
        values = self.expanded(given)
        old = self.arrays.get(name, []) if add else []
        if add and name in self.variables and not old:
            old = []
        self.arrays[name] = None if old is None or len(old) + len(values) > MAX_WORDS else [*old, *values]

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


_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
}
