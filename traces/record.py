"""Records what a server answers: sends requests and makes lossless traces of what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..engine.endpoint import CHAT, BrokenOffError, Endpoint, RefusedError
from ..engine.kinds import Server, extras, prompt_of, text_of, with_ids
from ..errors import ReasonctlError
from .chunks import ChunkAssembler
from .native import SCHEMA
from .response import Origin
from .sse import DONE, sse_values
from .surrogates import whole_trace
from .trace import BrokenLine, Trace

_OURS = ("model", "stream", "stream_options")


@dataclass(frozen=True)
class Recording:
    """One recorded choice.

    Attributes:
        line: the `reasonctl.trace/1` object.
        has_ids, has_prompt: the output's, and the prompt's, token ids are in it.
        lossy: the markers are gone: neither ids nor raw text came.
        broken: why the answer is not whole; None where it is.
    """

    line: Mapping[str, Any]
    has_ids: bool
    has_prompt: bool
    lossy: bool
    broken: str | None = None


class Recorder:
    """Sends chat completions to one server and hands on a recording of every choice of every answer.

    Args:
        endpoint: where the server is.
        server: what it said of itself.
        model: the name it serves the model under.
        keep: gets each recording as soon as it is made; of an answer that broke off, what had come.
        parser: the reasoning parser the server runs, as far as known.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        server: Server,
        model: str,
        keep: Callable[[Recording], None],
        *,
        parser: str | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._server = server
        self._model = model
        self._keep = keep
        self._parser = parser or server.parser
        self._settled: dict[bool, int] = {}

    def record(self, body: Mapping[str, Any], *, stream: bool) -> None:
        """Send one request.

        Args:
            body: a chat-completion body; its model and its way of streaming are replaced.
            stream: how to ask for the answer.

        Raises:
            RefusedError: the server refuses the request.
            EndpointError: it fails, or its answer breaks off; what had come was handed on.
        """
        request = {key: value for key, value in body.items() if key not in _OURS}
        sent = {**request, "model": self._model, "stream": stream}
        if stream:
            sent["stream_options"] = {"include_usage": True}
        assembler = ChunkAssembler(Origin(self._endpoint.url, "chunks", request=request, model=self._model))
        traces: list[Trace] = []
        sight = _Sight()
        broken: str | None = "stopped before the answer was whole"
        try:
            for value in self._answered(sent, stream=stream):
                if value is DONE:
                    traces += assembler.done()
                    sight.ended = True
                    continue
                sight.note(value)
                traces += assembler.chunk(1, value) if stream else assembler.response(1, value)
            if stream and not (sight.ended or sight.finished):
                raise BrokenOffError(f"{self._endpoint.url}: the answer broke off before its end")
            broken = None
        except ReasonctlError as error:
            broken = error.args[0]
            raise
        finally:
            traces += assembler.end()
            if broken is None or sight.says_something:
                for trace in traces:
                    self._keep(self._recording(whole_trace(trace), request, broken, sight))

    def _answered(self, body: Mapping[str, Any], *, stream: bool) -> Iterator[Any]:
        """The values of the answer, asked for in the way that gives most of what this server does not refuse."""
        ways = extras(self._server, stream=stream)
        at = self._settled.get(stream, 0)
        while True:
            try:
                yield from self._values({**body, **ways[at]}, stream=stream)
                return
            except RefusedError as error:
                if error.status not in (400, 422) or at + 1 >= len(ways):
                    raise
            finally:
                self._settled[stream] = at
            at += 1

    def _values(self, body: Mapping[str, Any], *, stream: bool) -> Iterator[Any]:
        if not stream:
            yield self._checked(self._endpoint.post(CHAT, body))
            return
        numbered = enumerate(self._endpoint.lines(CHAT, body), 1)
        for item in sse_values(numbered, self._endpoint.url):
            if isinstance(item, BrokenLine):
                raise BrokenOffError(f"{self._endpoint.url}: the stream holds what is no JSON (line {item.line})")
            yield item[1] if item[1] is DONE else self._checked(item[1])

    def _checked(self, value: Any) -> dict[str, Any]:
        """A chunk or a response, its ids in their place. Raises BrokenOffError for an error sent instead of one."""
        if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
            error = value.get("error", value) if isinstance(value, dict) else value
            said = error.get("message", error) if isinstance(error, dict) else error
            raise BrokenOffError(f"{self._endpoint.url}: answered with {self._endpoint.hidden(str(said))}")
        return with_ids(value)

    def _recording(self, trace: Trace, request: Mapping[str, Any], broken: str | None, sight: _Sight) -> Recording:
        prompt_text, prompt_ids = trace.prompt_text, trace.prompt_ids
        text = trace.output_text
        if broken is None:
            # What the answer lacks is asked for; where the server cannot tell, the recording does without.
            with suppress(ReasonctlError):
                if prompt_ids is None:
                    asked_text, asked_ids = prompt_of(self._endpoint, self._server, self._model, request)
                    prompt_text, prompt_ids = prompt_text or asked_text, tuple(asked_ids) if asked_ids else None
                if prompt_text is None and prompt_ids is not None:
                    prompt_text = text_of(self._endpoint, self._server, self._model, prompt_ids)
                if text is None and trace.output_ids is not None:
                    text = self._text(trace)
        lossy = text is None and trace.output_ids is None
        line = {
            "schema": SCHEMA,
            "id": trace.id,
            "model": self._model,
            "request": dict(request),
            "prompt": _present(text=prompt_text, token_ids=list(prompt_ids) if prompt_ids is not None else None),
            "output": _output(trace, text),
            "recorded": self._recorded(trace, text, sight),
        }
        if broken is not None:
            line["broken"] = broken
        return Recording(line, trace.output_ids is not None, prompt_ids is not None, lossy, broken)

    def _text(self, trace: Trace) -> str | None:
        """The raw text of the output's ids, without that of a stop token, which a server does not show."""
        ids = trace.output_ids or ()
        stop = trace.recorded.stop_reason if trace.recorded is not None else None
        if isinstance(stop, str):
            text = text_of(self._endpoint, self._server, self._model, ids)
            kept = trace.request.get("include_stop_str_in_output") is True
            return text if text is None or kept or stop not in text else text[: text.rindex(stop)]
        short = _before_stop(trace)
        if self._server.kind != "vllm" and short != ids:
            # Not every server sends the stop token's id: the answer tells.
            text = text_of(self._endpoint, self._server, self._model, ids)
            shown = (trace.recorded.content or trace.recorded.reasoning) if trace.recorded is not None else None
            if text is None or (shown and text.endswith(shown)):
                return text
        return text_of(self._endpoint, self._server, self._model, short)

    def _recorded(self, trace: Trace, text: str | None, sight: _Sight) -> dict[str, Any]:
        recorded = trace.recorded
        if recorded is None:
            return _present(server=str(self._server), parser=self._parser)
        # Content that is all of the output shows no parser at work: then there is no split to record.
        split = recorded.has_split or self._parser is not None or text is None or (recorded.content or "") != text
        found = _present(server=str(self._server), parser=self._parser)
        if split:
            found |= {"reasoning": recorded.reasoning, "content": recorded.content}
        return found | _present(
            reasoning_field=recorded.reasoning_field,
            tool_calls=list(recorded.tool_calls) or None,
            finish_reason=recorded.finish_reason,
            stop_reason=recorded.stop_reason,
            usage=dict(recorded.usage) or None,
            traps=dict(recorded.traps) or None,
            deltas=sight.deltas.get(_choice_of(trace)) if trace.streamed else None,
        )


class _Sight:
    """What a client sees of one answer, chunk by chunk."""

    def __init__(self) -> None:
        self.deltas: dict[int, list[dict[str, Any]]] = {}
        self.ended = False
        self.says_something = False
        self._open: dict[int, bool] = {}

    @property
    def finished(self) -> bool:
        """Every choice has said why it ended."""
        return bool(self._open) and not any(self._open.values())

    def note(self, value: Mapping[str, Any]) -> None:
        for choice in value.get("choices") or ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index")
            at = index if isinstance(index, int) else 0
            self._open[at] = self._open.get(at, True) and not choice.get("finish_reason")
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self.deltas.setdefault(at, []).append(delta)
            said = delta if isinstance(delta, dict) else choice.get("message")
            spoken = isinstance(said, dict) and any(said.get(key) for key in said if key != "role")
            self.says_something = self.says_something or spoken or bool(choice.get("token_ids"))


def _output(trace: Trace, text: str | None) -> dict[str, Any]:
    deltas = [
        _present(text=delta.text, token_ids=list(delta.token_ids) if delta.token_ids is not None else None)
        for delta in trace.deltas
    ]
    ids = list(trace.output_ids) if trace.output_ids is not None else None
    return _present(text=text, token_ids=ids, deltas=deltas or None)


def _before_stop(trace: Trace) -> tuple[int, ...]:
    """The output's ids without the last one, where that is a stop token."""
    ids = trace.output_ids or ()
    recorded = trace.recorded
    stopped = recorded is not None and recorded.finish_reason in ("stop", "tool_calls")
    return ids[:-1] if recorded is not None and stopped and not isinstance(recorded.stop_reason, str) else ids


def _choice_of(trace: Trace) -> int:
    """The index of the choice a trace was made of: further ones are named `ID#INDEX`."""
    _, mark, index = trace.id.rpartition("#")
    return int(index) if mark and index.isdecimal() else 0


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
