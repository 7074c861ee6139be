"""Registers another name than the one it is served with: my-glim."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser


@ReasoningParserManager.register_module("my_glim")
class MyGlimParser(BaseThinkingReasoningParser):
    start_token = "<think>"
    end_token = "</think>"
