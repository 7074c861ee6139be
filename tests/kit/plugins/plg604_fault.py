"""Has no extract_content_ids, and takes the request where the server gives none."""

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser, ReasoningParserManager


@ReasoningParserManager.register_module("lacks")
class LackingParser(ReasoningParser):
    reasoning_start_str = "<think>"
    reasoning_end_str = "</think>"

    def is_reasoning_end(self, input_ids):
        text = self.model_tokenizer.decode(input_ids)
        return text.rfind("</think>") > text.rfind("<think>")

    def extract_reasoning(self, model_output, request):
        reasoning, _, content = model_output.partition("</think>")
        return reasoning, content or None

    def extract_reasoning_streaming(
        self, previous_text, current_text, delta_text, previous_ids, current_ids, delta_ids, request
    ):
        return DeltaMessage(reasoning=delta_text)
