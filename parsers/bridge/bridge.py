"""A real vLLM as the engine that runs parsers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...errors import InputError
from ..assumed import why_not
from ..base import ParserUnsupportedError, Vocabulary
from ..feed import Chunking
from ..run import ModeResult, Output, ParserRun
from ..target import Target
from .far.supervisor import PROTOCOL
from .plugin import Plugin
from .process import BridgeError, FarProcess, HungError, LostError, TakenOverError
from .spec import EngineSpec
from .tokenizers import Tokenizers, model_files
from .versions import target_of

SECONDS = 60.0
"""How long one result may take; REASONCTL_VLLM_SECONDS says otherwise."""
START_SECONDS = 300.0
"""How long the other interpreter may take until its vLLM is imported, a container's start included."""
_DELTAS = 25_000
"""Deltas that a result's time is enough for; more of them get more."""
_STARTS = 3
"""After so many starts in a row without an answer, none is tried any more."""
_MOST_SECONDS = 1e6
_HANGS = 3
"""A parser that gave no answer so many times in a row is not waited for any more."""
_NOTHING = ModeResult(None, None, None, 0)
T = TypeVar("T")


class Bridge:
    """A `ParserEngine` over a vLLM in another interpreter. Use it in one thread, as a context manager or with `close`.

    Args:
        spec: which interpreter.
        plugin: a user's own parsers, loaded over there.
        seconds: how long one result may take.
        start_seconds: how long the interpreter may take to come up.

    Raises:
        BridgeError: it never came up, or has no vLLM that is known here.
    """

    def __init__(
        self,
        spec: EngineSpec,
        *,
        plugin: Plugin | None = None,
        seconds: float | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.spec = spec
        self.plugin = plugin
        self.plugin_problem: str | None = None
        self._seconds = seconds if seconds is not None else _seconds()
        self._start_seconds = start_seconds
        self._process: FarProcess | None = None
        self._restarts = 0
        self._failed_starts = 0
        self._names: tuple[str, ...] = ()
        self._tokenizers = Tokenizers()
        self._hung: dict[str, int] = {}
        self._given: dict[str, dict[str, Any]] = {}
        self._there: set[str] = set()
        hello = self._start()
        self.described: Mapping[str, str] = {
            "kind": "vllm",
            "vllm_version": str(hello["version"]),
            "python": str(hello["python"]),
        }
        self.target: Target | None = target_of(str(hello["version"]), self._names)

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """How the user names it."""
        return self.spec.text

    @property
    def seconds(self) -> float:
        """How long one result may take."""
        return self._seconds

    @property
    def pid(self) -> int | None:
        """The process that everything over there comes from, as this system knows it; None while none runs."""
        return self._process.pid if self._process is not None else None

    def names(self) -> tuple[str, ...]:
        """The registered names, a plugin's included."""
        return self._names

    def run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        output: Output,
        *,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> ParserRun:
        """As `run_parser`, by vLLM itself. What a crash or a hang costs is in the run's `lost`."""
        given = (name, vocabulary, kwargs or {}, output, chunkings, request_kwargs)
        hung = self._hung.get(name, 0)
        try:
            if hung >= _HANGS:
                raise LostError(f"no answer {hung} times in a row; {name} is not asked any more")
            found = self._not_run(name, vocabulary) or _again(lambda: self._run(*given))
        except ParserUnsupportedError as why:
            return ParserRun(name, _NOTHING, (), None, unsupported=str(why))
        except (LostError, BridgeError) as error:
            self._hung[name] = hung + 1 if isinstance(error, HungError) else hung
            return ParserRun(name, _NOTHING, (), None, lost=str(error))
        self._hung[name] = 0
        return found

    def starter(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> Callable[[Sequence[int]], tuple[int, ...]]:
        """The prompt itself: what another process makes of it is not asked."""
        return tuple

    def refusal(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any] | None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> str | None:
        """What the parser's constructor raises for this tokenizer and these kwargs; None where it raises nothing."""
        asked: dict[str, Any] = {"parser": name, "kwargs": dict(kwargs or {})}
        try:
            answer = _again(lambda: self._with_tokenizer(vocabulary, None, "build", **asked))
        except (LostError, BridgeError, ParserUnsupportedError):
            return None
        return f"{answer['error']}: {answer['message']}" if "error" in answer else None

    def loads(self, folder: Path, texts: Sequence[str]) -> Mapping[str, Any] | None:
        """The tokenizer that the other side's transformers builds from a model's folder (see `ParserEngine`)."""
        try:
            return self.ask("loads", files=model_files(folder), texts=list(texts))
        except (LostError, BridgeError):
            return None

    def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """The answer to one request; `failed` in it is what went wrong over there.

        A tokenizer that was handed over by its `key` is handed over again where another runner has taken over since.

        Raises:
            LostError: a crash or a hang cost the answer.
            BridgeError: the interpreter cannot be brought up again.
        """
        if op == "tokenizer":
            self._given[fields["key"]] = fields
        return _again(lambda: self._asked(op, seconds, fields))

    def put(self, op: str, vocabulary: Vocabulary, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """As `ask`, of something that a tokenizer is needed for: it is handed over, and its key is `tokenizer`.

        Raises:
            LostError: a crash or a hang cost the answer.
            BridgeError: the interpreter cannot be brought up again.
            ParserUnsupportedError: this tokenizer cannot be handed over, or not be built over there.
        """
        return _again(lambda: self._with_tokenizer(vocabulary, None, op, seconds=seconds, **fields))

    def close(self) -> None:
        """End the process, and wait until it is gone. The next question starts another."""
        process, self._process = self._process, None
        self._forget()
        if process is not None:
            process.close()

    def _asked(self, op: str, seconds: float | None, fields: Mapping[str, Any]) -> dict[str, Any]:
        self._up_to_date()
        key = fields.get("tokenizer")
        if key in self._given and key not in self._there:
            self._tell("tokenizer", **self._given[key])
            self._there.add(key)
        answer = self._tell(op, seconds, **fields)
        if op == "tokenizer":
            self._there.add(fields["key"])
        return answer

    def _run(
        self,
        name: str,
        vocabulary: Vocabulary,
        kwargs: Mapping[str, Any],
        output: Output,
        chunkings: Sequence[Chunking],
        request_kwargs: Mapping[str, Any] | None,
    ) -> ParserRun:
        own = kwargs if request_kwargs is None else request_kwargs
        case: dict[str, Any] = {
            "parser": name,
            "kwargs": dict(kwargs),
            "request_kwargs": dict(own),
            "prompt_ids": None if output.prompt_ids is None else list(output.prompt_ids),
        }
        # What the parser makes of the request decides how the server decodes, so that is asked first.
        prepared = self._with_tokenizer(vocabulary, output, "prepare", **case)
        if "unsupported" in prepared:
            return ParserRun(name, _NOTHING, (), None, unsupported=prepared["unsupported"])
        skip = prepared.get("skip_special_tokens")
        found = output.pieces(skip)
        streams = [output.deltas(chunking, skip) for chunking in chunkings]
        answer = self._with_tokenizer(
            vocabulary,
            output,
            "run",
            seconds=self._seconds * max(1.0, sum(map(len, streams)) / _DELTAS),
            text=found.text,
            ids=list(found.token_ids),
            streams=[{"texts": list(s.texts), "ids": list(s.ids), "ends": s.ends and list(s.ends)} for s in streams],
            summed=True,
            **case,
        )
        if "failed" in answer:
            raise LostError(answer["failed"])
        full = _mode(None, answer["full"], 0)
        modes = zip(chunkings, answer["streams"], streams, strict=True)
        stream = tuple(_mode(str(chunking), part, len(deltas)) for chunking, part, deltas in modes)
        parts = [part for part in (answer["full"], *answer["streams"]) if "error" in part]
        error = f"{parts[0]['error']}: {parts[0]['message']}" if parts else None
        text = "" if prepared.get("unbuilt") else found.text
        return ParserRun(name, full, stream, answer["full"].get("tokens"), error=error, text=text)

    def _with_tokenizer(
        self, vocabulary: Vocabulary, output: Output | None, op: str, *, seconds: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Ask something that a tokenizer is needed for; it is handed over first."""
        self._up_to_date()
        key = self._tokenizers.key(vocabulary, output, self._tell)
        return self._tell(op, seconds, tokenizer=key, **fields)

    def _not_run(self, name: str, vocabulary: Vocabulary) -> ParserRun | None:
        """Why nothing is asked for this parser; None where it is."""
        why = why_not(name, vocabulary)
        if why is not None:
            return ParserRun(name, _NOTHING, (), None, unsupported=why)
        if name in self._names:
            return None
        if self.plugin_problem is not None:
            return ParserRun(name, _NOTHING, (), None, lost=f"{name}: {self.plugin_problem}")
        return ParserRun(
            name, _NOTHING, (), None, unsupported=f"vLLM {self.described['vllm_version']} has no such parser"
        )

    def _tell(self, op: str, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        process = self._process
        if process is None:
            raise LostError("the other interpreter is gone")
        try:
            return process.ask(op, fields, seconds=self._seconds if seconds is None else seconds)
        except BridgeError as error:
            raise LostError(str(error)) from None
        finally:
            if process.over:
                self.close()

    def _up_to_date(self) -> None:
        """See to it that somebody answers, who knows the plugin. Raises BridgeError."""
        if self._process is not None:
            self._process.listen()
        if self._process is None or self._process.over:
            self.close()
            self._start()
        elif self._process.restarts != self._restarts:
            self._forget()
            self._restarts = self._process.restarts
            if self.plugin is not None and self.plugin_problem is None:
                self._load_plugin(self.plugin)

    def _start(self) -> dict[str, Any]:
        if self._failed_starts >= _STARTS:
            raise BridgeError(f"--vllm {self.spec.text}: it did not come up {_STARTS} times, and is not tried any more")
        self._failed_starts += 1
        process = FarProcess(self.spec)
        try:
            hello = process.ask("hello", {}, seconds=self._start_seconds)
            if hello.get("protocol") != PROTOCOL:
                raise BridgeError("it answers in another protocol than ours")
        except (LostError, BridgeError) as error:
            process.close()
            raise BridgeError(f"--vllm {self.spec.text}: {_explained(str(error))}") from None
        except BaseException:
            process.close()
            raise
        self._failed_starts = 0
        self._process, self._restarts = process, process.restarts
        self._names = tuple(hello["names"])
        if self.plugin is not None and self.plugin_problem is None:
            self._load_plugin(self.plugin)
        return hello

    def _load_plugin(self, plugin: Plugin) -> None:
        try:
            answer = self._tell("plugin", name=plugin.name, text=plugin.text)
        except LostError as error:
            self.plugin_problem = f"{plugin.name} could not be loaded: {error}"
            self._up_to_date()
            return
        wrong = answer.get("failed") or answer.get("error")
        if wrong:
            self.plugin_problem = f"{plugin.name} could not be loaded: {wrong}"
        self._names = tuple(answer.get("names", self._names))

    def _forget(self) -> None:
        """Whoever answers from now on was told nothing yet."""
        self._tokenizers.clear()
        self._there.clear()


def open_bridge(spec: EngineSpec, *, plugin: Plugin | None = None) -> Bridge:
    """A bridge that is up. Raises BridgeError where none comes up."""
    return Bridge(spec, plugin=plugin)


def _again(ask: Callable[[], T]) -> T:
    """The answer; asked once more where somebody else ended who should have given it."""
    try:
        return ask()
    except TakenOverError:
        return ask()


def _mode(chunking: str | None, part: Mapping[str, Any], deltas: int) -> ModeResult:
    if "error" in part:
        return ModeResult(chunking, None, None, 0, part["error"])
    return ModeResult(chunking, part["reasoning"], part["content"], deltas)


def _seconds() -> float:
    text = os.environ.get("REASONCTL_VLLM_SECONDS")
    if text is None:
        return SECONDS
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < _MOST_SECONDS:
        raise InputError(f"{text!r} is no number of seconds", source="REASONCTL_VLLM_SECONDS", mend="write 60")
    return value


def _explained(error: str) -> str:
    """What went wrong, with the mend where it is a known one."""
    missing = re.search(r"No module named '([\w.]+)'", error)
    if missing and missing[1].partition(".")[0] == "vllm":
        return f"there is no vLLM in that Python ({error})"
    if missing:
        return f"its vLLM cannot be imported ({error}); install {missing[1].partition('.')[0]} there"
    return f"it did not come up: {error}"
