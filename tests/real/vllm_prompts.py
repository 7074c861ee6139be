"""Runs in the interpreter that has vLLM: answers one JSON request on stdin with what vLLM's own prompt code does."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.renderers import hf
    from vllm.renderers.chat_utils import chat_message

    def kwargs(case: dict[str, Any]) -> Any:
        body = ChatCompletionRequest(
            messages=[{"role": "user", "content": "x"}],
            chat_template_kwargs=case["request_kwargs"],
            reasoning_effort=case["reasoning_effort"],
        )
        params = body.build_chat_params(None, "auto", case["effort_map"]).with_defaults(case["default_kwargs"])
        return params.chat_template_kwargs

    def handed_over(messages: list[dict[str, Any]], form: str) -> Any:
        body = ChatCompletionRequest(messages=messages)
        config = SimpleNamespace(
            enable_prompt_embeds=False, multimodal_config=None, allowed_local_media_path="", allowed_media_domains=None
        )
        tracker = chat_message.MultiModalItemTracker(config)
        conversation: list[Any] = []
        for message in body.messages:
            conversation += chat_message.parse_chat_message_content(message, tracker, form, False)
        chat_message._postprocess_messages(conversation)
        return conversation

    answer = {
        "kwargs": [kwargs(case) for case in request["kwargs"]],
        "forms": [hf._detect_content_format(text, default="string") for text in request["templates"]],
        "variables": [sorted(hf._resolve_chat_template_kwargs(text)) for text in request["templates"]],
        "messages": [handed_over(messages, form) for messages, form in request["messages"]],
    }
    json.dump(answer, out)
    out.close()


if __name__ == "__main__":
    main()
