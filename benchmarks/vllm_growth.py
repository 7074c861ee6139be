"""What vLLM's parsers spend on a stream as it gets longer: run by the interpreter that has vLLM.

One JSON object a line on standard input, one answer a line on the real standard output:

    {"spec", "parser", "kwargs", "ids", "texts"}
        -> {"own": seconds} or {"error": what was raised}

`spec` describes the tokenizer as `parsers/differential/vocabulary.py` does. A stream is `texts` and `ids`, one of each
a delta. `own` is the CPU time spent inside the reasoning parser while the server's `parse_delta` runs over them; what
the server does around it, the same for every parser, is left out.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

VOCABULARIES = Path(__file__).parent.parent / "parsers" / "bridge" / "far" / "vocabularies.py"
OWN = ("extract_reasoning_streaming", "is_reasoning_end_streaming", "is_reasoning_end", "finish_streaming")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # vLLM prints
    import vllm

    answers.write(json.dumps({"vllm": vllm.__version__}) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def measure(case: dict[str, Any]) -> dict[str, float]:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager

    tokenizer = vocabularies().cached(vocabularies().from_spec(case["spec"]))
    parser_class = ParserManager.get_parser(reasoning_parser_name=case["parser"])
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}])
    parser = parser_class(tokenizer, None, chat_template_kwargs=case["kwargs"], model_config=None)
    clock = Clock()
    clock.watch(parser)
    gc.collect()
    last = len(case["ids"]) - 1
    for number, (text, token_id) in enumerate(zip(case["texts"], case["ids"], strict=True)):
        parser.parse_delta(text, [token_id], request, prompt_token_ids=None, finished=number == last)
    return {"own": clock.spent}


class Clock:
    """Adds up what is spent inside a reasoning parser; a call from within counts once."""

    def __init__(self) -> None:
        self.spent = 0.0
        self._depth = 0

    def watch(self, parser: Any) -> None:
        inner = getattr(parser, "_reasoning_parser", None)
        if inner is None:  # a parser that does it all itself
            inner, names = parser, ("parse_delta",)
        else:
            names = OWN
        for name in names:
            method = getattr(inner, name, None)
            if method is not None:
                setattr(inner, name, self._timed(method))

    def _timed(self, method: Any) -> Any:
        def timed(*given: Any, **named: Any) -> Any:
            self._depth += 1
            begun = time.thread_time() if self._depth == 1 else 0.0
            try:
                return method(*given, **named)
            finally:
                if self._depth == 1:
                    self.spent += time.thread_time() - begun
                self._depth -= 1

        return timed


def vocabularies() -> Any:
    """The bridge's own module, by its file: this interpreter has no reasonctl."""
    if "vocabularies" not in sys.modules:
        spec = importlib.util.spec_from_file_location("vocabularies", VOCABULARIES)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["vocabularies"] = module
        spec.loader.exec_module(module)
    return sys.modules["vocabularies"]


if __name__ == "__main__":
    main()
