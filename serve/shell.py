"""Runs a shell script on paper: variables, arrays, functions, branches, up to the servers that it starts.

What no script text decides (`[ "$TOOLS" = 1 ]` with TOOLS from outside) is tried both ways, and every server that comes
out of it is kept, with the condition in its name. Nothing is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..budgets.document import Locate, refuse
from .command import Flag, ServeCommand, Server
from .options import EVERY, JUDGED, takes_no_value
from .secret import numbered
from .shell_values import behind
from .shell_way import Launch, Way
from .words import Word, split_words
from .work import MAX_INSIDE, working

MAX_WAYS = 64
"""Ways through a script that are all followed: six conditions that nothing decides. Of more, each is tried alone."""
_FAR = 1000
_MOST_TOLD = 3
"""Conditions in the name of a server."""
_OPTIONS = frozenset(EVERY)
_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(['\"]?)(\w+)\2[^\n]*\n")


def script_servers(text: str, locate: Locate, launch: Launch, env: Mapping[str, str] | None = None) -> list[Server]:
    """The servers that the script `text` starts, in the order of their places.

    Args:
        text: the script.
        locate: places in it.
        launch: tells whether a simple command starts a server, and which.
        env: variables that are set outside.

    Raises:
        InputError: a quote or bracket that never closes, or a script that makes too much of itself.
    """
    with working() as work:
        if work.inside > MAX_INSIDE:
            return []
        if work.inside:
            work.cut(text, locate(0))
        work.inside += 1
        try:
            plain, bodies = _without_heredocs(text)
            found = words_servers(split_words(plain, locate), launch, env)
            for start, body in bodies:
                if "vllm" in body:
                    found += script_servers(body, behind(locate, start), launch, env)
        finally:
            work.inside -= 1
    return found


def words_servers(words: Sequence[Word], launch: Launch, env: Mapping[str, str] | None = None) -> list[Server]:
    """As `script_servers`, for a script that is cut into words already."""
    said: dict[str, str] = {}

    def walked(decisions: Sequence[bool]) -> Way:
        way = Way(words=words, launch=launch, env=dict(env or {}), decisions=decisions, work=work)
        way.run()
        said.update(way.said)
        return way

    with working() as work:
        try:
            ways = _every_way(walked) or _one_by_one(walked)
        except RecursionError:
            place = words[0].location
            raise refuse("nested deeper than can be followed", place, mend="give the command it ends in") from None
    return _joined([(dict(way.open), way.servers) for way in ways], numbered(said))


def _every_way(walked: Callable[[Sequence[bool]], Way]) -> list[Way]:
    """Every answer to every open condition; nothing where those are too many."""
    pending: list[list[bool]] = [[]]
    ways: list[Way] = []
    while pending:
        if len(ways) >= MAX_WAYS:
            return []
        decisions = pending.pop()
        way = walked(decisions)
        ways.append(way)
        for index in range(len(decisions), len(way.open)):
            pending.append([*list(way.open.values())[:index], False])
    return ways


def _one_by_one(walked: Callable[[Sequence[bool]], Way]) -> list[Way]:
    """All conditions true, all false, and each of them alone the other way: what each one does is seen."""
    most, least = walked([]), walked([False] * _FAR)
    return [
        most,
        least,
        *(walked([*[True] * index, False]) for index in range(min(len(most.open), MAX_WAYS))),
        *(walked([*[False] * index, True, *[False] * _FAR]) for index in range(min(len(least.open), MAX_WAYS))),
    ]


def _joined(ways: Sequence[tuple[dict[str, bool], list[Server]]], said: Mapping[str, str]) -> list[Server]:
    """Every different server once. Where one place gives several, the conditions that tell them apart are named."""
    kinds: dict[tuple[object, ...], tuple[Server, list[dict[str, bool]]]] = {}
    for conditions, servers in ways:
        mine: dict[tuple[object, ...], Server] = {}
        for server in servers:
            mine.setdefault(_identity(server), server)
        for key, server in mine.items():
            known, where = kinds.get(key, (server, []))
            kinds[key] = (max(known, server, key=_flags), [*where, conditions])
    at: dict[object, int] = {}
    for server, _ in kinds.values():
        at[server.location] = at.get(server.location, 0) + 1
    found: list[Server] = []
    for server, where in kinds.values():
        always = len(ways) == len(where) or at[server.location] == 1
        found.append(server if always else replace(server, name=f"{server.name} ({_common(where, said)})"))
    return sorted(found, key=lambda server: (server.location.line or 0, server.location.column or 0))


def _common(where: Sequence[dict[str, bool]], said: Mapping[str, str]) -> str:
    """The conditions that hold in all these ways, in words."""
    shared = {
        condition: value
        for condition, value in where[0].items()
        if all(other.get(condition) == value for other in where)
    }
    if len(shared) > _MOST_TOLD:  # what sets this one apart are the answers that are rare
        rare = sum(shared.values()) <= len(shared) / 2
        shared = {condition: value for condition, value in shared.items() if value is rare} or shared
    named = [f"{'if' if value else 'unless'} {said[condition]}" for condition, value in shared.items()]
    return ", ".join([*named[:_MOST_TOLD], *(["..."] if len(named) > _MOST_TOLD else [])]) or "one way"


def _identity(server: Server) -> tuple[object, ...]:
    """What two commands share that differ in nothing that is said of them: copies, each on its own port."""
    if isinstance(server, ServeCommand):
        flags = frozenset((flag.name, flag.value) for flag in server.flags.values() if _matters(flag))
        env = tuple(sorted((name, value) for name, value in server.env.items() if name.startswith("VLLM_")))
        return server.location, server.model, flags, env, server.image
    return server.location, server.engine


def _matters(flag: Flag) -> bool:
    """A flag that is judged, that no release of today knows, or that has a value where none is taken."""
    name = flag.name.partition(".")[0]
    known = name in _OPTIONS and name.removeprefix("no-") not in JUDGED
    return not known or (flag.value is not None and takes_no_value(name))


def _flags(server: Server) -> int:
    return len(server.flags) if isinstance(server, ServeCommand) else 0


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
