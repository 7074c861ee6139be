"""Runs vLLM's own reasoning parsers over JSON lines, the way its chat server drives them.

Self-contained: run by the interpreter that has vLLM (`python vllm_driver.py`, with PYTHONPATH naming an unpacked newer
wheel or not). One request a line on stdin, one answer a line on the real stdout; vLLM's own prints go to stderr.

    {"op": "hello"}                       -> {"version", "names"}
    {"op": "tokenizer", "key", "spec"}    -> {"ok": true}
    {"op": "run", "parser", "tokenizer", "kwargs", "request_kwargs", "prompt_ids", "text", "ids", "streams"}
        -> {"skip_special_tokens", "ended", "full", "streams"} (see `run_case`)

The order of calls is that of vllm/entrypoints/openai/chat_completion/serving.py and vllm/renderers/online_renderer.py.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def take_stdout() -> Any:
    """Keep the real stdout for answers and send everything that prints to stderr instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def byte_spellings() -> list[str]:
    """How byte-level BPE spells each byte: printable Latin-1 as itself, the rest from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    rest = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(rest)) for byte in range(256)]


def build_tokenizer(spec: dict[str, Any]) -> Any:
    """A `PreTrainedTokenizerFast` for a description; id i is byte i below 256, then `pieces`, then `markers`.

    Args:
        spec: `pieces`, texts of ordinary tokens, or lists of bytes where a piece is no whole text; `markers`, lists of
            [text, flag] with flag `plain`, `flagged` (decoding skips it) or `declared` (also in `all_special_tokens`);
            `chat_template` and `init_kwargs`, both optional, as are `placed`, lists of [id, text], and
            `printable_first`, the order of the byte tokens. Or `mistral`, a folder in Mistral's own format.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    spelling = byte_spellings()
    order = (
        sorted(range(256), key=lambda byte: spelling[byte] != chr(byte)) if spec.get("printable_first") else range(256)
    )
    vocab = {spelling[byte]: place for place, byte in enumerate(order)}
    for piece in spec["pieces"]:
        raw = bytes(piece) if isinstance(piece, list) else piece.encode()
        vocab["".join(spelling[byte] for byte in raw)] = len(vocab)
    for place, text in spec.get("placed", ()):
        vocab["".join(spelling[byte] for byte in text.encode())] = place
    # Text is cut greedily, the longest piece first: a WordPiece without a prefix, over one word of any length.
    model = models.WordPiece(vocab=vocab, unk_token="", continuing_subword_prefix="", max_input_chars_per_word=10**6)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    for text, flag in spec["markers"]:
        backend.add_tokens([AddedToken(text, special=flag != "plain", normalized=False)])
    declared = [text for text, flag in spec["markers"] if flag == "declared"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        extra_special_tokens=declared,
        **{"clean_up_tokenization_spaces": False, **spec.get("init_kwargs", {})},
    )
    if spec.get("chat_template") is not None:
        tokenizer.chat_template = spec["chat_template"]
    return tokenizer


class Runner:
    """Holds the tokenizers and parser classes of one process."""

    def __init__(self) -> None:
        self._tokenizers: dict[str, Any] = {}
        self._classes: dict[str, Any] = {}

    def hello(self) -> dict[str, Any]:
        import vllm
        from vllm.reasoning import ReasoningParserManager

        return {"version": vllm.__version__, "names": sorted(ReasoningParserManager.list_registered())}

    def tokenizer(self, key: str, spec: dict[str, Any]) -> dict[str, Any]:
        from vllm.tokenizers import get_tokenizer
        from vllm.tokenizers.hf import get_cached_tokenizer

        if "mistral" in spec:
            import regex._main

            # Its thousand special tokens are compiled anew for every parser otherwise.
            regex._main._MAXCACHE = 10_000
            self._tokenizers[key] = get_tokenizer(spec["mistral"], tokenizer_mode="mistral")
        else:
            self._tokenizers[key] = get_cached_tokenizer(build_tokenizer(spec))
        return {"ok": True}

    def run_case(self, case: dict[str, Any]) -> dict[str, Any]:
        """One output through one parser: whole, and once for every way of cutting it into deltas.

        `skip_special_tokens` is what the parser makes of the request's field, null where it leaves it alone; `ended`
        what it reads from the prompt.

        `full` and each of `streams` are {"tokens": count, ...} with `reasoning` and `content`, or `deltas` (one
        [reasoning, content] or null each); where vLLM raises, {"error": class name} takes the place of what is missing.
        """
        tokenizer = self._tokenizers[case["tokenizer"]]
        prompt_ids = case["prompt_ids"]
        answer: dict[str, Any] = {}

        def build() -> Any:
            return self._parser_class(case["parser"])(
                tokenizer, None, chat_template_kwargs=dict(case["kwargs"]), model_config=None
            )

        request = self._request(case)
        try:
            renderer = build()
            if prompt_ids is not None:
                renderer.set_prompt_token_ids(prompt_ids)
            default = request.skip_special_tokens
            request = renderer.adjust_request(request=request)
            changed = request.skip_special_tokens
            answer["skip_special_tokens"] = None if changed is default else changed
            answer["ended"] = None if prompt_ids is None else renderer.is_reasoning_end(prompt_ids)
        except Exception as error:
            answer["error"] = type(error).__name__
        answer["full"] = self._full(build, case, request)
        answer["streams"] = [self._stream(build, case, request, deltas) for deltas in case["streams"]]
        return answer

    def _parser_class(self, name: str) -> Any:
        if name not in self._classes:
            from vllm.parser import ParserManager

            # A server says so of a gpt-oss model.
            harmony = name == "openai_gptoss"
            self._classes[name] = ParserManager.get_parser(reasoning_parser_name=name, is_harmony=harmony)
        return self._classes[name]

    def _request(self, case: dict[str, Any]) -> Any:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        return ChatCompletionRequest(
            model="m", messages=[{"role": "user", "content": "hi"}], chat_template_kwargs=case["request_kwargs"]
        )

    def _full(self, build: Any, case: dict[str, Any], request: Any) -> dict[str, Any]:
        result: dict[str, Any] = {}
        try:
            parser = build()
            if case["prompt_ids"] is not None:
                parser.set_prompt_token_ids(case["prompt_ids"])
            result["reasoning"], result["content"], _ = parser.parse(
                case["text"], request, enable_auto_tools=False, model_output_token_ids=case["ids"]
            )
            result["tokens"] = parser.count_reasoning_tokens(case["ids"])
        except Exception as error:
            result["error"] = type(error).__name__
        return result

    def _stream(self, build: Any, case: dict[str, Any], request: Any, deltas: list[Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"deltas": []}
        try:
            parser = build()
            for index, (text, ids) in enumerate(deltas):
                delta = parser.parse_delta(
                    text, ids, request, prompt_token_ids=case["prompt_ids"], finished=index == len(deltas) - 1
                )
                result["deltas"].append(None if delta is None else [delta.reasoning, delta.content])
            result["tokens"] = parser.count_reasoning_tokens(tuple(case["ids"]))
        except Exception as error:
            result["error"] = type(error).__name__
        return result


def main() -> None:
    answers = take_stdout()
    runner = Runner()
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("op")
        if operation == "run":
            answer = runner.run_case(request)
        elif operation == "tokenizer":
            answer = runner.tokenizer(request["key"], request["spec"])
        else:
            answer = runner.hello()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
