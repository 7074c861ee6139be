"""A serve command: what will be started, with every flag and the place it stands at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .. import versions
from ..budgets.document import MAX_DIGITS, Entry, Locate, Node, NotFinite, duplicates, refuse
from ..budgets.json_text import read_json
from ..checks.finding import Location
from ..errors import InputError
from ..parsers.target import Target
from .secret import told_value
from .words import Word, word_at
from .wrappers import Variable

Product = Literal["vllm", "slimserve"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `name` has dashes and no leading ones (`default-chat-template-kwargs.enable_thinking`).

    A flag that stands alone has no value. `dynamic` values hold a variable that only the shell knows.
    """

    name: str
    value: str | None
    location: Location
    dynamic: bool = False
    value_locate: Locate | None = field(default=None, repr=False, compare=False)
    """From an offset in `value` to its place; None where the source knows only the flag's place."""

    def at(self, offset: int) -> Location:
        """Where this character of the value stands, as near as is known."""
        return self.value_locate(offset) if self.value_locate is not None else self.location


@dataclass(frozen=True)
class ServeCommand:
    """What will be started. `flags` holds the winning one of every name: the last on the command line.

    `target` is the server's own evidence of what it is, None where there is none. `model` is None where the command has
    none or takes it from a variable. `name` tells several servers apart.
    """

    product: Product
    model: str | None
    flags: Mapping[str, Flag]
    env: Mapping[str, str]
    location: Location
    target: Target | None = None
    name: str = "vllm"
    image: str | None = None
    image_at: Location | None = None
    tag_of: str | None = None
    """The product whose version the image's tag is, where it is not vLLM's."""
    platform: str | None = None
    """The platform that hands flags over in the environment, where some came that way."""
    ignored_env: tuple[tuple[str, Variable, str], ...] = ()
    """Variables set for another platform than the image's: name, value and place, the platform that reads it."""
    config_missing: str | None = None
    """The `--config` file whose flags are not known here."""
    min_version: Target | None = None
    """The oldest version the source says it runs on."""
    words: tuple[Word, ...] = field(default=(), repr=False, compare=False)
    """The words behind the program, as they came."""
    prefill: bool = False
    """It fills caches for other servers, and answers no client itself."""
    model_hidden: bool = False
    """It names a model that only the running shell knows."""
    open_words: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Variables that may hold any flags, and that only the running shell knows: `$EXTRA_ARGS`, `$@`."""
    broken: tuple[InputError, ...] = field(default=(), repr=False, compare=False)
    """What an argument parser refuses of these words: a flag without its value, an abbreviation of several flags."""
    forgiving: bool = field(default=False, repr=False, compare=False)
    """A value that nobody can tell or read counts as unknown (None), for a caller that reports it itself."""

    def with_words_before(self, words: Sequence[Word], *, model: Word | None = None) -> ServeCommand:
        """The same command with more words in front of its own, which win; `model` counts where it names none."""
        from .commandline import command_of  # reads words into a command, which this is

        named = self.model is not None or "model" in self.flags
        front = (word_at("--model", model.location), model) if model is not None and not named else ()
        return replace(
            command_of(self.product, self.location, (*front, *words, *self.words), self.env),
            target=self.target,
            name=self.name,
            image=self.image,
            image_at=self.image_at,
            tag_of=self.tag_of,
            platform=self.platform,
            ignored_env=self.ignored_env,
            prefill=self.prefill,
        )

    @property
    def judged_as(self) -> Target:
        """The target it is judged by where nobody names one: its own evidence, else the newest of its product."""
        return self.target or Target(self.product)

    def text(self, flag: str) -> str | None:
        """The flag's value, None without the flag. Raises InputError where only a running shell would know it."""
        found = self.flags.get(flag)
        if found is None or (found.dynamic and self.forgiving):
            return None
        if found.dynamic:
            raise refuse(
                f"--{flag} takes {told_value(found.value or '')}, which only the running shell knows",
                found.location,
                mend="write the value itself into the command",
            )
        return found.value

    def known(self, flag: str) -> bool:
        """Whether the flag is given, plain or dotted, with values that are written out."""
        found = [other for name, other in self.flags.items() if name == flag or name.startswith(f"{flag}.")]
        return bool(found) and not any(other.dynamic for other in found)

    def hidden(self, flag: str) -> bool:
        """Whether the flag, plain or dotted, has a value that only the running shell knows."""
        return any(f.dynamic for name, f in self.flags.items() if name == flag or name.startswith(f"{flag}."))

    def document(self, flag: str) -> Node | None:
        """A JSON-valued flag with the places of its keys: `--flag '{...}'`, or any number of `--flag.key value`.

        Dotted flags become one object that replaces the plain one, as in vLLM (utils/argparse_utils.py, 0.33.0).

        Raises:
            InputError: the value is no JSON object.
        """
        try:
            return self._document(flag)
        except InputError:
            if self.forgiving:
                return None
            raise

    def _document(self, flag: str) -> Node | None:
        dotted = [found for name, found in self.flags.items() if name.startswith(f"{flag}.")]
        if dotted:
            known = [found for found in dotted if not (self.forgiving and found.dynamic)]
            return _merged(flag, [(found, self.text(found.name)) for found in known]) if known else None
        text = self.text(flag)
        if text is None:
            return None
        found = self.flags[flag]
        node = read_json(text, found.at)
        if node.entries is None:
            raise refuse(f"--{flag} takes a JSON object", found.at(0), mend="write '{...}'")
        return node

    def json(self, flag: str, *, twice: bool = False) -> dict[str, Any] | None:
        """A JSON-valued flag as plain data, dotted flags merged; None without it.

        Args:
            flag: its name.
            twice: a key may stand twice, and the last one counts, as in vLLM: for a caller that reports it itself.

        Raises:
            InputError: the value is no JSON object, holds NaN or an infinity, or gives a key twice.
        """
        node = self.document(flag)
        if node is None:
            return None
        odd = next(_not_finite(node), None)
        if odd is not None and self.forgiving:
            return None
        if odd is not None:
            raise refuse(f"--{flag} holds {odd.scalar!r}, which is no JSON", odd.location, mend="write a number")
        again = None if twice or self.forgiving else next(duplicates(node), None)
        if again is not None:
            raise refuse(f'--{flag} gives "{".".join(again.path)}" twice', again.last, mend="keep one of them")
        return dict(node.plain())

    def on(self, flag: str) -> bool:
        """Whether a flag that stands alone is given, and not taken back by a later `--no-` form."""
        given = [name for name in self.flags if name in (flag, f"no-{flag}")]
        return bool(given) and given[-1] == flag

    def place(self, flag: str) -> Location:
        """Where a flag (or the first dotted form of it) stands; the command's own place without it."""
        found = self.flags.get(flag) or next((f for n, f in self.flags.items() if n.startswith(f"{flag}.")), None)
        return found.location if found is not None else self.location

    @property
    def reasoning_parser(self) -> str | None:
        """The parser's name as it is written, None without one. What `none` means depends on the release."""
        return self.text("reasoning-parser") or None

    def parser_in(self, target: Target) -> str | None:
        """The parser that this release takes the command to use.

        `none`, in any case, is no parser since 0.33; before 0.9 a parser is used with `--enable-reasoning` alone.
        """
        name = self.reasoning_parser
        if name is None or self.product != "vllm" or target.product != "vllm":
            return None if name == "none" else name
        alone = target.version < versions.OLDEST or versions.fact("reasoning-parser-alone", target.version)
        if not alone and not self.on("enable-reasoning"):
            return None
        return None if name.lower() == "none" and versions.fact("parser-none", target.version) else name

    @property
    def tool_call_parser(self) -> str | None:
        return self.text("tool-call-parser")

    @property
    def answers(self) -> bool:
        """Whether clients get their answers from it: no headless node, and none that fills caches for others."""
        if self.prefill or self.on("headless"):
            return False
        flag = "kv-transfer-config"
        given = replace(self, forgiving=True).json(flag) if self.known(flag) else None
        return (given or {}).get("kv_role") != "kv_producer"

    @property
    def enable_auto_tool_choice(self) -> bool:
        return self.on("enable-auto-tool-choice")

    @property
    def chat_template(self) -> str | None:
        """A path or the template's text itself."""
        return self.text("chat-template")

    @property
    def default_chat_template_kwargs(self) -> dict[str, Any] | None:
        return self.json("default-chat-template-kwargs")

    @property
    def override_generation_config(self) -> dict[str, Any] | None:
        return self.json("override-generation-config")

    @property
    def reasoning_config(self) -> dict[str, Any] | None:
        return self.json("reasoning-config")

    @property
    def effort_map(self) -> dict[str, str] | None:
        """`--reasoning-effort-map`: effort names to the names the template gets (vllm 0.33.0)."""
        given = self.json("reasoning-effort-map")
        if given is not None and not all(isinstance(value, str) for value in given.values()):
            if self.forgiving:
                return None
            raise refuse(
                "--reasoning-effort-map must map reasoning efforts to strings",
                self.place("reasoning-effort-map"),
                mend='write {"high": "xhigh"}',
            )
        return given

    @property
    def max_model_len(self) -> int | None:
        """Tokens of prompt and output together; None where it is not given or left to vLLM (`auto`, -1)."""
        for flag in ("max-model-len", "ctx") if self.product == "slimserve" else ("max-model-len",):
            text = self.text(flag)
            if text is not None and text.lower() not in ("auto", "-1"):
                try:
                    length = human_int(text)
                except ValueError:
                    length = 0
                if length < 1:
                    if self.forgiving:
                        return None
                    shown = repr(text) if len(text) < 40 else f"{text[:30]!r}..."
                    raise refuse(
                        f"--{flag} takes a positive number, not {shown}", self.place(flag), mend="write 32768 or 32K"
                    )
                return length
        return None

    @property
    def runner(self) -> Literal["v1", "v2"] | None:
        """The model runner that the environment forces; None leaves it to the server."""
        value = self.env.get("VLLM_USE_V2_MODEL_RUNNER", "").strip()
        return "v1" if value == "0" else "v2" if value == "1" else None


@dataclass(frozen=True, slots=True)
class OtherServer:
    """A server of an engine that is not judged here: named, and "not evaluated"."""

    engine: str
    name: str
    location: Location


Server = ServeCommand | OtherServer


def _not_finite(node: Node) -> Iterator[Node]:
    if isinstance(node.scalar, NotFinite):
        yield node
    for child in (*(node.items or ()), *(entry.value for entry in node.entries or ())):
        yield from _not_finite(child)


_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def human_int(text: str) -> int:
    """`32768`, `32k` (thousands) or `32K` (1024s), as vLLM reads them (utils/argparse_utils.py). Raises ValueError."""
    if len(text) > MAX_DIGITS:
        raise ValueError("too long for a number")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip())
    if match is None:
        return int(text)
    number, unit = match.groups()
    try:
        return int(number) * _UNITS[unit] if unit.isupper() else int(float(number) * _UNITS[unit])
    except OverflowError:  # more than a float holds
        raise ValueError("too long for a number") from None


def _merged(flag: str, dotted: list[tuple[Flag, str | None]]) -> Node:
    """One object out of `--flag.a.b value` flags; a later value for the same key replaces the earlier one."""
    entries: list[Entry] = []
    for found, text in dotted:
        keys = found.name[len(flag) + 1 :].split(".")
        value = _dotted_value(found, text or "", as_list=keys[-1].endswith("+"))
        for key in reversed(keys[1:]):
            value = Node(found.location, entries=(Entry(key.removesuffix("+"), found.location, value),))
        entries = _with(entries, Entry(keys[0].removesuffix("+"), found.location, value))
    return Node(dotted[0][0].location, entries=tuple(entries))


def _with(entries: list[Entry], new: Entry) -> list[Entry]:
    """`entries` with `new` merged in: objects under the same key grow together, anything else is replaced."""
    old = next((entry for entry in entries if entry.key == new.key), None)
    if old is None:
        return [*entries, new]
    value = new.value
    if old.value.entries is not None and value.entries is not None:
        grown = list(old.value.entries)
        for entry in value.entries:
            grown = _with(grown, entry)
        value = Node(old.value.location, entries=tuple(grown))
    elif old.value.items is not None and value.items is not None:
        value = Node(old.value.location, items=(*old.value.items, *value.items))
    return [Entry(new.key, new.location, value) if entry is old else entry for entry in entries]


def _dotted_value(found: Flag, text: str, *, as_list: bool) -> Node:
    """JSON where it is JSON, a number with a unit (`80g`), else the text itself."""
    if as_list:
        return Node(found.at(0), items=tuple(Node(found.at(0), scalar=part) for part in text.split(",")))
    try:
        return read_json(text, found.at)
    except InputError as error:
        if not error.message.startswith("not JSON"):
            raise
    try:
        return Node(found.at(0), scalar=human_int(text))
    except ValueError:
        return Node(found.at(0), scalar=text)
