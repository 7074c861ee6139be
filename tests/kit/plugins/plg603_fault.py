"""Keeps one request's text on the class, and counts on the module."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser

_seen = []


@ReasoningParserManager.register_module("shares")
class SharingParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"
    buffer = {}  # noqa: RUF012
    requests = 0

    def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
        self.buffer["text"] = self.buffer.get("text", "") + delta_text
        _seen.append(delta_text)
        SharingParser.requests += 1
        return super().extract_reasoning_streaming(previous_text, current_text, delta_text, *ids)
