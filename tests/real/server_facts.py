"""Asks vLLM, once, what its detokenizer makes of ids and what each registered reasoning parser is like.

Self-contained: run by the interpreter that has vLLM, with a request (JSON) on stdin and the answer (JSON) on stdout.

    {"tokenizers": {key: path of a tokenizer.json},
     "runs": [{"tokenizer", "prompt_ids", "ids", "skip", "stop", "stopped", "include"}],
     "markers": [text], "kwargs": {name: kwargs}, "demanded": {name: [text]}, "probes": {name: [start, end]}}
        -> {"runs": [{"deltas", "text", "ids"}], "rows": {name: {...}}}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any


def detokenize(tokenizer: Any, run: dict[str, Any]) -> dict[str, Any]:
    """One token a step, as the engine does without speculation: what each step sends, and what is kept at the end."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.detokenizer import FastIncrementalDetokenizer

    params = SamplingParams(
        stop=run["stop"] or None, skip_special_tokens=run["skip"], include_stop_str_in_output=run["include"]
    )
    request = SimpleNamespace(request_id="r", prompt_token_ids=run["prompt_ids"], sampling_params=params)
    detokenizer = FastIncrementalDetokenizer(tokenizer, request)
    deltas = []
    last = len(run["ids"]) - 1
    for number, token_id in enumerate(run["ids"]):
        found = detokenizer.update([token_id], run["stopped"] and number == last)
        finished = number == last or found is not None
        deltas.append(detokenizer.get_next_output_text(finished, True))
        if finished:
            break
    return {"deltas": deltas, "text": detokenizer.output_text, "ids": list(detokenizer.output_token_ids)}


def plain_tokenizer(markers: Sequence[str]) -> Any:
    """Byte-level BPE without merges, and each marker a token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in markers])
    return PreTrainedTokenizerFast(tokenizer_object=backend)


class Row:
    """What is asked of one parser."""

    def __init__(self, name: str, tokenizer: Any, kwargs: dict[str, Any]) -> None:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.parser import ParserManager

        self._class = ParserManager.get_parser(reasoning_parser_name=name)
        self._tokenizer = tokenizer
        self._kwargs = kwargs
        self._request = ChatCompletionRequest(messages=[{"role": "user", "content": "hi"}], model="m")

    def build(self, kwargs: dict[str, Any] | None = None) -> Any:
        chosen = self._kwargs if kwargs is None else kwargs
        return self._class(self._tokenizer, None, chat_template_kwargs=dict(chosen), model_config=None)

    def facts(self, start: str, end: str) -> dict[str, Any]:
        parser = self.build()
        reasoning = parser.reasoning_parser
        found: dict[str, Any] = {
            "start": reasoning.reasoning_start_str,
            "end": reasoning.reasoning_end_str,
            "skip": parser.adjust_request(self._request).skip_special_tokens,
        }
        engine = next((value for value in vars(reasoning).values() if hasattr(value, "parser_engine_config")), None)
        if engine is not None:
            found["boundaries"] = sorted(engine.parser_engine_config.turn_boundary_tokens)
            found["ends"] = sorted(
                self._tokenizer.convert_ids_to_tokens(token_id) for token_id in engine.reasoning_end_token_ids
            )
        for state, prompt in (("silent", "hi"), ("open", f"hi{start}"), ("closed", f"hi{start}x{end}")):
            found[state] = parser.is_reasoning_end(self._ids(prompt))
        found["truncated"] = attempt(lambda: self._full(f"hi{start}", "abc"))
        found["truncated_by_default"] = attempt(lambda: self._full(f"hi{start}", "abc", {}))
        found["answered"] = attempt(lambda: self._full(f"hi{start}", f"ab{end}cd"))
        found["closed_answer"] = attempt(lambda: self._full(f"hi{start}{end}", "abc"))
        return found

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _full(self, prompt: str, text: str, kwargs: dict[str, Any] | None = None) -> list[Any]:
        parser = self.build(kwargs)
        parser.set_prompt_token_ids(self._ids(prompt))
        ids = self._ids(text)
        reasoning, content, _ = parser.parse(text, self._request, model_output_token_ids=ids)
        return [reasoning, content, parser.count_reasoning_tokens(ids)]


def attempt(run: Any) -> Any:
    try:
        return run()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def row(name: str, request: dict[str, Any], everything: Any) -> dict[str, Any]:
    """One name's facts, and what its constructor says with the tokens it demands and without each of them."""
    start, end = request["probes"][name]
    kwargs, demanded = request["kwargs"].get(name, {}), request["demanded"][name]

    def built(markers: list[str]) -> Any:
        return attempt(lambda: Row(name, plain_tokenizer(markers), kwargs).build() and None)

    # olmo3 looks for its end marker as three ordinary tokens.
    tokenizer = plain_tokenizer(demanded) if name == "olmo3" else everything
    found: dict[str, Any] = attempt(lambda: Row(name, tokenizer, kwargs).facts(start, end))
    found["with_demanded"] = built(demanded)
    found["without"] = {
        token: built([other for other in demanded if other != token]) for token in demanded if len(token) > 1
    }
    return found


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    from transformers import PreTrainedTokenizerFast

    tokenizers = {key: PreTrainedTokenizerFast(tokenizer_file=path) for key, path in request["tokenizers"].items()}
    runs = [detokenize(tokenizers[run["tokenizer"]], run) for run in request["runs"]]
    everything = plain_tokenizer(request["markers"])
    answers.write(
        json.dumps({"runs": runs, "rows": {name: row(name, request, everything) for name in request["probes"]}})
    )
    answers.flush()


if __name__ == "__main__":
    main()
