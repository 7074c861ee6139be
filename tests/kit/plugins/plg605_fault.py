"""Its base class looks both markers up in the vocabulary."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser


@ReasoningParserManager.register_module("needs")
class NeedingParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"
