"""Keeps a request's text on the instance; the class and the module hold what nobody changes."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser

_MARKERS = ["<think>", "</think>"]


@ReasoningParserManager.register_module("keeps")
class KeepingParser(BaseThinkingReasoningParser):
    start_token = _MARKERS[0]
    end_token = _MARKERS[1]
    buffer = {}  # noqa: RUF012
    deltas = 0

    def __init__(self, tokenizer, *args, **kwargs):
        super().__init__(tokenizer, *args, **kwargs)
        self.buffer = {}

    def extract_reasoning_streaming(self, previous_text, current_text, delta_text, *ids):
        self.buffer["text"] = self.buffer.get("text", "") + delta_text
        self.deltas += 1
        seen = []
        seen.append(delta_text)
        return super().extract_reasoning_streaming(previous_text, current_text, delta_text, *ids)
