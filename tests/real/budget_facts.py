"""Asks vLLM what it makes of budgets in requests and of serve flags.

Self-contained: run by the interpreter that has vLLM, with a request (JSON) on stdin and the answer (JSON) on stdout.

    {"chat": [body], "messages": [body], "generation": [override], "argv": [[word]], "flags": whether to list all flags,
     "tokenizers": {parser: description of a tokenizer}}
        -> {"chat": [budget or {"refused"}], "messages": [...], "generation": [sampling params], "argv": [values],
            "efforts": [...], "responses_fields": [...], "flags": {"alone", "valued", "several", "short"},
            "strings": {parser: [start, end] or {"refused"}}}
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

sys.modules.setdefault("orjson", types.ModuleType("orjson"))  # 0.33.0 wants it where nothing here calls it


def posted(model: Any, body: dict[str, Any]) -> Any:
    """The validated request's own dump, or why it is refused."""
    try:
        return model.model_validate(body)
    except Exception as error:
        return {"refused": " ".join(str(error).split())}


def chat_budget(body: dict[str, Any]) -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    found = posted(ChatCompletionRequest, body)
    return found if isinstance(found, dict) else {"budget": found.thinking_token_budget}


def messages_budget(body: dict[str, Any]) -> Any:
    from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest

    found = posted(AnthropicMessagesRequest, body)
    return found if isinstance(found, dict) else {"budget": getattr(found.thinking, "budget_tokens", None)}


def generation(override: dict[str, Any]) -> Any:
    from vllm.config import ModelConfig

    config = types.SimpleNamespace(generation_config="vllm", override_generation_config=override)
    return ModelConfig.get_diff_sampling_param(config)


def parsed(words: list[str]) -> Any:
    from vllm.utils.argparse_utils import FlexibleArgumentParser, human_readable_int_or_auto

    parser = FlexibleArgumentParser()
    parser.add_argument("--reasoning-parser")
    parser.add_argument("--override-generation-config", type=json.loads)
    parser.add_argument("--default-chat-template-kwargs", type=json.loads)
    parser.add_argument("--max-model-len", type=human_readable_int_or_auto)
    parser.add_argument("--enable-auto-tool-choice", action="store_true")
    try:
        return vars(parser.parse_args(words))
    except (SystemExit, Exception) as error:
        return {"refused": f"{type(error).__name__}: {error}"}


def flags() -> dict[str, Any]:
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = ServeSubcommand().subparser_init(FlexibleArgumentParser().add_subparsers())
    found: dict[str, Any] = {"alone": [], "valued": [], "several": [], "short": {}}
    for action in parser._actions:
        long = [option[2:] for option in action.option_strings if option.startswith("--")]
        kind = "alone" if action.nargs == 0 else "several" if action.nargs in ("+", "*") else "valued"
        found[kind] += long
        found["short"] |= {option[1:]: long[0] for option in action.option_strings if long and option[1] != "-"}
    return found


def strings(tokenizers: dict[str, Any]) -> dict[str, Any]:
    """The start and end strings of each parser built without kwargs, or why it cannot be built."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tokenizers.hf import get_cached_tokenizer
    from vllm_driver import build_tokenizer

    found: dict[str, Any] = {}
    for name, spec in tokenizers.items():
        try:
            cls = ReasoningParserManager.get_reasoning_parser(name)
            built = cls(get_cached_tokenizer(build_tokenizer(spec)))
            found[name] = [built.reasoning_start_str, built.reasoning_end_str]
        except Exception as error:
            found[name] = {"refused": " ".join(str(error).split())}
    return found


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM prints on stdout while it is imported
    asked = json.load(sys.stdin)
    from typing import get_args

    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    effort = next(kind for kind in get_args(ChatCompletionRequest.model_fields["reasoning_effort"].annotation) if kind)

    answer = {
        "chat": [chat_budget(body) for body in asked["chat"]],
        "messages": [messages_budget(body) for body in asked["messages"]],
        "generation": [generation(override) for override in asked["generation"]],
        "argv": [parsed(words) for words in asked["argv"]],
        "efforts": list(get_args(effort)),
        "responses_fields": sorted(ResponsesRequest.model_fields),
        "flags": flags() if asked["flags"] else None,
        "strings": strings(asked["tokenizers"]),
    }
    answers.write(json.dumps(answer))
    answers.close()


if __name__ == "__main__":
    main()
