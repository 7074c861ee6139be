"""Runs in the interpreter that has vLLM: answers one JSON request on stdin with the ids of prompts that code builds."""

from __future__ import annotations

import copy
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
    from vllm.renderers import mistral as renderer
    from vllm.renderers.online_renderer import OnlineRenderer
    from vllm.tokenizers import get_tokenizer, mistral

    loaded: dict[str, Any] = {}

    def of_tokenizer(case: dict[str, Any]) -> Any:
        """What the tokenizer itself makes of messages as a template gets them; `mode` is its `--tokenizer-mode`."""
        key = (case["folder"], case["mode"])
        if key not in tokenizers:
            tokenizers[key] = get_tokenizer(case["folder"], tokenizer_mode=case["mode"])
        text = tokenizers[key].apply_chat_template(
            case["messages"], tools=case["body"].get("tools"), tokenize=False, **case["kwargs"]
        )
        return tokenizers[key].encode(text, add_special_tokens=False), text

    tokenizers: dict[tuple[str, str], Any] = {}

    def of_mistral(case: dict[str, Any]) -> Any:
        if case["folder"] not in loaded:
            loaded[case["folder"]] = mistral.MistralTokenizer.from_pretrained(case["folder"])
        body = ChatCompletionRequest(**case["body"])
        mistral.maybe_serialize_tool_calls(body)
        mistral.truncate_tool_call_ids(body)
        mistral.validate_request_params(body)
        tools = [tool.model_dump() for tool in body.tools] if body.tools else None
        params = body.build_chat_params(None, "auto", case["effort_map"]).with_defaults(case["default_kwargs"])
        kwargs = params.get_apply_chat_template_kwargs()
        return renderer.safe_apply_chat_template(loaded[case["folder"]], body.messages, tools=tools, **kwargs)

    def of_harmony(case: dict[str, Any]) -> Any:
        server = SimpleNamespace(
            renderer=None,
            supports_browsing=False,
            supports_code_interpreter=False,
            reasoning_effort_map=case["effort_map"] or {},
        )
        body = ChatCompletionRequest(**case["body"])
        _, (engine_input,) = OnlineRenderer._make_request_with_harmony(server, body, bool(body.tools))
        return engine_input["prompt_token_ids"]

    def answer(case: dict[str, Any]) -> dict[str, Any]:
        try:
            if "mode" in case:
                ids, text = of_tokenizer(case)
                return {"ids": list(ids), "text": text}
            ids = (of_mistral if case["folder"] else of_harmony)(copy.deepcopy(case))
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {"ids": list(ids)}

    spelled = {}
    answers = [answer(case) for case in request["cases"]]
    for folder, tokenizer in loaded.items():
        vocab = tokenizer.get_vocab()
        spelled[folder] = {
            "vocab": {text: vocab[text] for text in request["texts"] if text in vocab},
            "ids": {text: tokenizer.encode(text, add_special_tokens=False) for text in request["texts"]},
            "special": tokenizer.all_special_ids,
            "shown": tokenizer.convert_tokens_to_string(
                tokenizer.convert_ids_to_tokens(range(40), skip_special_tokens=True)
            ),
        }
    json.dump({"prompts": answers, "tokenizers": spelled}, out)
    out.close()


if __name__ == "__main__":
    main()
