"""Answers is_reasoning_end from what was generated, and never asks whether thinking is on."""

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser, ReasoningParserManager


@ReasoningParserManager.register_module("blind")
class BlindParser(ReasoningParser):
    reasoning_start_str = "<think>"
    reasoning_end_str = "</think>"

    def __init__(self, tokenizer, *args, **kwargs):
        super().__init__(tokenizer, *args, **kwargs)
        self.ended = False

    def is_reasoning_end(self, input_ids):
        return self.ended

    def extract_content_ids(self, input_ids):
        text = self.model_tokenizer.decode(input_ids)
        return [] if "</think>" not in text else self.model_tokenizer.encode(text.partition("</think>")[2])

    def extract_reasoning(self, model_output, request):
        reasoning, _, content = model_output.partition("</think>")
        return reasoning, content or None

    def extract_reasoning_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids
    ):
        return DeltaMessage(reasoning=delta_text)
