"""The formats that recordings are read in, by the names `--from` takes."""

from __future__ import annotations

from collections.abc import Mapping

FORMATS: Mapping[str, str] = {
    "trace": "reasonctl.trace/1 lines",
    "sse": "server-sent events of any API below",
    "chunks": "JSON or JSON lines of chat chunks",
    "response": "whole chat completions",
    "responses": "the Responses API, streamed or whole",
    "anthropic": "the Anthropic Messages API, streamed or whole",
    "ollama": "Ollama's own NDJSON",
    "cohere": "Cohere's chat API, streamed or whole",
    "gemini": "the Gemini API, streamed or whole",
    "bedrock": "Bedrock's Converse API, streamed or whole",
    "vcr": "VCR cassettes",
    "har": "HAR files",
    "pairs": "requests with their responses: batch outputs, logs, nock and WireMock files",
    "canitoolcall": "fixtures of canitoolcall",
    "text": "plain text, one output a file",
}
"""What each of them is, in a few words."""
