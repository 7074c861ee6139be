"""`reasonctl record`: send requests to a server and keep what it answers as traces that lose nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .endpoint import model_named
from .given import KWARGS, kwargs_in, not_empty, taken

if TYPE_CHECKING:
    from ..engine.kinds import Server
    from ..traces.record import Recording

_QUESTION = "What is 2 + 2?"
_STDIN = "standard input"
_MEND = 'write [{"role": "user", "content": "hello"}], a request body with "messages", or one of them a line'


def record(
    endpoint: Annotated[
        str, typer.Option(metavar="URL", help="An OpenAI-compatible server: http://localhost:8000, or its /v1 address.")
    ],
    served_model_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Default: the one model it serves.")
    ] = None,
    messages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Messages or request bodies, JSON or JSONL; repeatable; - is standard input. Default: one question.",
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the traces go; - is standard output.")
    ] = "-",
    append: Annotated[bool, typer.Option("--append", help="Add to the file instead of replacing it.")] = False,
    stream: Annotated[
        bool | None, typer.Option("--stream/--no-stream", help="Ask in one way only. Default: both, a trace each.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, metavar="N", help="Send each request this many times.")] = 1,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="The request field max_tokens.")] = None,
    chat_template_kwargs: Annotated[
        str | None, typer.Option(metavar="JSON", help="The request field chat_template_kwargs.")
    ] = None,
    reasoning_effort: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="The request field reasoning_effort.")
    ] = None,
    thinking_token_budget: Annotated[
        int | None, typer.Option(metavar="N", help="The request field thinking_token_budget; -1 is no limit.")
    ] = None,
    extra_body: Annotated[
        str | None, typer.Option(metavar="JSON", help="Further fields of the request, as an object.")
    ] = None,
    parser: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The --reasoning-parser the server runs; noted in the traces."),
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(metavar="VAR", help="The environment variable that holds the API key.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="The longest wait for the next byte of an answer.")
    ] = 600.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="A traceback where something fails.")] = False,
) -> None:
    """Record what a server answers: with token ids and the prompt's, so that `replay` sees what its parser saw."""
    from ..engine.endpoint import Endpoint, key_from
    from ..engine.kinds import identify
    from ..traces.record import Recorder

    not_empty(
        endpoint=endpoint,
        served_model_name=served_model_name,
        output=output,
        reasoning_effort=reasoning_effort,
        parser=parser,
        **{f"messages_{n}": file for n, file in enumerate(messages or [])},
    )
    fields: dict[str, Any] = {
        "max_tokens": max_tokens,
        "reasoning_effort": reasoning_effort,
        "thinking_token_budget": thinking_token_budget,
    }
    if chat_template_kwargs is not None:
        fields["chat_template_kwargs"] = taken(kwargs_in(chat_template_kwargs), source=KWARGS)
    fields = {name: value for name, value in fields.items() if value is not None} | _object(extra_body)
    bodies = [body | fields for body in _bodies(messages)]
    _checked(bodies)
    ways = (True, False) if stream is None else (stream,)
    key = key_from(api_key_env)
    with Endpoint(endpoint, key=key, seconds=timeout) as server_at, _Output(output, append=append, secret=key) as out:
        server = identify(server_at)
        model = model_named(server, served_model_name, server_at)
        recorder = Recorder(server_at, server, model, out.keep, parser=parser)
        total = len(bodies) * repeat * len(ways)
        try:
            with _progress(server, total, shown=not quiet) as advance:
                for body in bodies:
                    for _ in range(repeat):
                        for way in ways:
                            recorder.record(body, stream=way)
                            advance()
        finally:
            if not quiet and out.kept:
                typer.echo(out.without_key(_summary(out.kept, server, output)), err=True)


class _Output:
    """Where traces go. A file is opened, and what it held replaced, only when there is a trace to write.

    `secret` is the server's key: it is written nowhere, whatever the server answers.
    """

    def __init__(self, path: str, *, append: bool, secret: str | None = None) -> None:
        self._path = path
        self._secret = secret
        self._append = append
        self._file: IO[str] | None = None
        self.kept: list[Recording] = []
        if path == "-" and append:
            raise InputError("standard output is always added to", source="--append", mend="name a file with -o")
        if path != "-" and Path(path).is_dir():
            raise InputError("this is a folder", source=path, mend="name a file in it")

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def without_key(self, text: str) -> str:
        """A text, or JSON, that the server may have put the key into which it was sent."""
        for spelled in {self._secret, json.dumps(self._secret, ensure_ascii=False)[1:-1]} if self._secret else ():
            text = text.replace(str(spelled), "***")
        return text

    def keep(self, recording: Recording) -> None:
        """Write one trace at once: what comes later may fail."""
        from ..reports import formats

        try:
            text = self.without_key(json.dumps(recording.line, ensure_ascii=False, separators=(",", ":"))) + "\n"
            if self._path == "-":
                formats.to_stdout(text)
                sys.stdout.flush()
            else:
                if self._file is None:
                    mode = "a" if self._append else "w"
                    self._file = Path(self._path).open(mode, encoding="utf-8")  # noqa: SIM115  (closed on the way out)
                self._file.write(text)
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}", source=self._path, mend="name another file with -o"
            ) from None
        # The line itself may be long, and is on its way.
        self.kept.append(_without_line(recording))


def _without_line(recording: Recording) -> Recording:
    from dataclasses import replace

    return replace(recording, line={})


def _summary(kept: Sequence[Recording], server: Server, output: str) -> str:
    """What was recorded, what the server could not give, and what to do about it."""
    count = len(kept)
    where = "" if output == "-" else f" in {output}"
    have = [
        f"{name} in {'all' if number == count else number or 'none'}"
        for name, number in (
            ("token ids", sum(one.has_ids for one in kept)),
            ("prompt ids", sum(one.has_prompt for one in kept)),
        )
    ]
    lines = [f"recorded {count} trace{'' if count == 1 else 's'} of {server}{where}: {', '.join(have)}"]
    broken = sum(one.broken is not None for one in kept)
    if broken:
        lines.append(f"  {broken} broke off; what had come of {'it' if broken == 1 else 'them'} was kept")
    lossy = sum(one.lossy for one in kept)
    if lossy:
        lines.append(
            f"  {lossy} lossy: no token ids came, and the markers are gone from the text. {_LOSSLESS[server.kind]}"
        )
    return "\n".join(lines)


_LOSSLESS = {
    "vllm": "Use vLLM 0.10.2 or newer",
    "sglang": "Use --no-stream with SGLang 0.5.13 or newer, or send --extra-body '{\"separate_reasoning\": false}'",
    "llama.cpp": "Start llama-server with --reasoning-format none, or use a newer one",
    "other": "Record from the server itself, without what stands before it, or start it without a reasoning parser",
}


@contextmanager
def _progress(server: Server, total: int, *, shown: bool) -> Iterator[Any]:
    """A line on stderr, where that is a terminal, that says how far the requests are."""
    if not shown or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console

    done = 0
    with Console(stderr=True).status(f"{server}: request 1 of {total}") as status:

        def advance() -> None:
            nonlocal done
            done += 1
            status.update(f"{server}: request {min(done + 1, total)} of {total}")

        yield advance


def _object(text: str | None) -> dict[str, Any]:
    from ..prompts.files import parse_json

    if text is None:
        return {}
    mend = """write '{"temperature": 0}'"""
    value = parse_json(text, source="--extra-body", mend=mend, exact=True)
    if not isinstance(value, dict):
        raise InputError("is not a JSON object", source="--extra-body", mend=mend)
    return value


def _bodies(files: Sequence[str] | None) -> list[dict[str, Any]]:
    """The request bodies in the files; one plain question without any."""
    if not files:
        return [{"messages": [{"role": "user", "content": _QUESTION}]}]
    if list(files).count("-") > 1:
        raise InputError("standard input can be read once only", source="-", mend="name a file in place of the others")
    return [body for file in files for body in _read(file)]


def _read(file: str) -> Iterator[dict[str, Any]]:
    from ..traces.source import open_source
    from ..traces.surrogates import holds_half
    from ..traces.trace import BrokenLine
    from ..traces.values import json_values

    shown = _STDIN if file == "-" else file
    found = False
    with open_source(file) as source:
        for item in json_values(source, open_arrays=False):
            if isinstance(item, BrokenLine):
                raise InputError(item.reason, source=shown, line=item.line, mend=_MEND)
            line, value = item
            if holds_half(value):
                raise InputError(
                    "half a character (\\ud800 to \\udfff alone), which no server takes",
                    source=shown,
                    line=line,
                    mend="write the whole character",
                )
            for body in _bodies_in(value):
                if body is None:
                    raise InputError("neither messages nor a request body", source=shown, line=line, mend=_MEND)
                found = True
                yield body
    if not found:
        raise InputError("no messages in it", source=shown, mend=_MEND)


def _bodies_in(value: Any) -> list[dict[str, Any] | None]:
    """The bodies a JSON value holds: messages, a body, a trace, a line of a batch file, or a list of these."""
    if isinstance(value, list):
        if value and all(isinstance(each, dict) and "role" in each for each in value):
            return [{"messages": value}]
        return [body for each in value for body in (_bodies_in(each) if not isinstance(each, list) else [None])]
    if not isinstance(value, dict):
        return [None]
    for inner in ("request", "body"):
        if isinstance(value.get(inner), dict) and "messages" not in value:
            return _bodies_in(value[inner])
    messages = value.get("messages")
    fits = isinstance(messages, list) and messages and all(isinstance(m, dict) and "role" in m for m in messages)
    return [dict(value) if fits else None]


def _checked(bodies: Sequence[dict[str, Any]]) -> None:
    from ..traces.forms import request_fault

    for body in bodies:
        fault = request_fault(body)
        if fault is not None:
            raise InputError(fault.message, mend=fault.mend)
