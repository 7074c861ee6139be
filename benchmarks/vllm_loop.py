"""vLLM's own loop over recorded outputs, timed: run by the interpreter that has vLLM, needs nothing of reasonctl.

    python vllm_loop.py TRACES MODEL PARSER [LIMIT]   ->  one JSON object on standard output

TRACES holds `reasonctl.trace/1` lines with token ids of prompt and output, MODEL the tokenizer they are of. Every
output is streamed at one token a delta as vLLM's chat server streams it: a parser for each, `parse_delta` for each
token. Timed apart are vLLM's incremental detokenizer (`detokenizer`) and the loop over `parse_delta` (`loop`), each as
wall and CPU seconds of this process. `splits` are digests of what the first LIMIT outputs came to.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def main() -> None:
    traces, model, name = sys.argv[1:4]
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # vLLM prints
    answers.write(json.dumps(run(Path(traces), model, name, limit)) + "\n")
    answers.flush()


def run(traces: Path, model: str, name: str, limit: int) -> dict[str, Any]:
    import vllm
    from vllm.parser import ParserManager
    from vllm.tokenizers import get_tokenizer

    tokenizer = get_tokenizer(model)
    parser_class = ParserManager.get_parser(reasoning_parser_name=name)
    spent = {"detokenizer": [0.0, 0.0], "loop": [0.0, 0.0]}
    splits: list[str] = []
    tokens = outputs = 0
    for prompt_ids, ids in recorded(traces):
        request = chat_request(parser_class, tokenizer)
        begun = now()
        texts = detokenized(tokenizer, prompt_ids, ids, request.skip_special_tokens)
        add(spent["detokenizer"], begun)
        begun = now()
        for _ in messages(parser_class, tokenizer, request, prompt_ids, ids, texts):
            pass
        add(spent["loop"], begun)
        tokens += len(ids)
        outputs += 1
        if len(splits) < limit:
            splits.append(digest(messages(parser_class, tokenizer, request, prompt_ids, ids, texts)))
    return {"vllm": vllm.__version__, "tokens": tokens, "outputs": outputs, "splits": splits, **spent}


def recorded(traces: Path) -> Iterator[tuple[list[int], list[int]]]:
    with traces.open(encoding="utf-8") as lines:
        for line in lines:
            trace = json.loads(line)
            yield trace["prompt"]["token_ids"], trace["output"]["token_ids"]


def chat_request(parser_class: Any, tokenizer: Any) -> Any:
    """The request as the server's renderer leaves it: the parser may have turned `skip_special_tokens` off."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
    return make(parser_class, tokenizer).adjust_request(request=request)


def make(parser_class: Any, tokenizer: Any) -> Any:
    return parser_class(tokenizer, None, chat_template_kwargs={}, model_config=None)


def detokenized(tokenizer: Any, prompt_ids: list[int], ids: list[int], skip: bool) -> list[str]:
    """The text each token adds, by vLLM's detokenizer, token by token."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.detokenizer import IncrementalDetokenizer

    request = SimpleNamespace(
        request_id="r",
        prompt_token_ids=prompt_ids,
        prompt_embeds=None,
        sampling_params=SamplingParams(skip_special_tokens=skip),
    )
    detokenizer = IncrementalDetokenizer.from_new_request(tokenizer, request)
    texts = []
    last = len(ids) - 1
    for number, token_id in enumerate(ids):
        detokenizer.update([token_id], number == last)  # a stop token, whose text is not shown
        texts.append(detokenizer.get_next_output_text(number == last, True))
    return texts


def messages(
    parser_class: Any, tokenizer: Any, request: Any, prompt_ids: list[int], ids: list[int], texts: list[str]
) -> Iterator[Any]:
    """What the server gets of each token."""
    parser = make(parser_class, tokenizer)
    last = len(ids) - 1
    for number, (text, token_id) in enumerate(zip(texts, ids, strict=True)):
        yield parser.parse_delta(text, [token_id], request, prompt_token_ids=prompt_ids, finished=number == last)


def digest(deltas: Iterator[Any]) -> str:
    """Of the split that the messages add up to."""
    shown = [delta for delta in deltas if delta is not None]
    split = ["".join(getattr(delta, field) or "" for delta in shown) for field in ("reasoning", "content")]
    return hashlib.sha256("\0".join(split).encode()).hexdigest()


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def add(spent: list[float], begun: tuple[float, float]) -> None:
    for at, (end, begin) in enumerate(zip(now(), begun, strict=True)):
        spent[at] += end - begin


if __name__ == "__main__":
    main()
