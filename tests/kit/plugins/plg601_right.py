"""Imports DeltaMessage from where vLLM 0.32 and 0.33 have it, and elsewhere only where that fails."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser

try:
    from vllm.entrypoints.generate.base.protocol import DeltaMessage
except ImportError:
    from vllm.entrypoints.openai.engine.protocol import DeltaMessage


@ReasoningParserManager.register_module("new_import")
class NewImportParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"

    def extract_reasoning_streaming(self, *texts_and_ids):
        delta = super().extract_reasoning_streaming(*texts_and_ids)
        return delta if isinstance(delta, DeltaMessage) else None
