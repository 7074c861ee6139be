"""Imports DeltaMessage from where it was before vLLM 0.30."""

from vllm.entrypoints.openai.engine.protocol import DeltaMessage
from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser


@ReasoningParserManager.register_module("old_import")
class OldImportParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"

    def extract_reasoning_streaming(self, *texts_and_ids):
        delta = super().extract_reasoning_streaming(*texts_and_ids)
        return delta if isinstance(delta, DeltaMessage) else None
