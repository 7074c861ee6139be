"""Registers the name it is served with."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser


@ReasoningParserManager.register_module("my-glim")
class MyGlimParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"
