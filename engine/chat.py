"""One question to a server that speaks OpenAI's API, and its whole answer, streamed or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..traces.chunks import ChunkAssembler
from ..traces.response import Origin
from ..traces.sse import DONE, sse_values
from ..traces.trace import BrokenLine, Trace
from .endpoint import BrokenOffError, Endpoint
from .kinds import with_ids


def answer_to(endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> Trace | None:
    """The first choice of the answer to a chat completion or a completion; None where it holds none.

    Args:
        endpoint: where the server is.
        path: of the API.
        body: with `stream` where the answer is to be streamed.

    Raises:
        RefusedError: the server refuses the request.
        EndpointError: it fails, or its answer breaks off.
    """
    assembler = ChunkAssembler(Origin(endpoint.url, "chunks"))
    traces: list[Trace] = []
    if not body.get("stream"):
        traces += assembler.response(1, with_ids(_choices(endpoint, endpoint.post(path, body))))
        return traces[0] if traces else None
    for item in sse_values(enumerate(endpoint.lines(path, body), 1), endpoint.url):
        if isinstance(item, BrokenLine):
            raise BrokenOffError(f"{endpoint.url}: the stream holds what is no JSON")
        if item[1] is not DONE:
            traces += assembler.chunk(1, with_ids(_choices(endpoint, item[1])))
    traces += assembler.end()
    return traces[0] if traces else None


def _choices(endpoint: Endpoint, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("choices"), list):
        said = value.get("error", value) if isinstance(value, dict) else value
        said = said.get("message", said) if isinstance(said, dict) else said
        raise BrokenOffError(f"{endpoint.url}: answered with {endpoint.hidden(str(said))}")
    return value
