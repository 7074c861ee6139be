"""One output of one parser, with what vLLM makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reasonctl.parsers.differential.vocabulary import Spec, SpecVocabulary

MARKERS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<|im_start|>",
    "<|im_end|>",
    "<|user|>",
    "<|assistant|>",
    "<seed:think>",
    "</seed:think>",
    "<seed:bos>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<｜DSML｜tool_calls>",
    "<|reserved_12|>",
    "[THINK]",
    "[/THINK]",
    "[TOOL_CALLS]",
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<|turn>",
    "<|message_model|>",
    "<|content_thinking|>",
    "<|content_text|>",
    "<|content_invoke_tool_json|>",
    "<|content_model_end_sampling|>",
    "<|end_message|>",
    "<|plamo:begin_",
    "<|plamo:end_",
    ":plamo|>",
    "<|plamo:tag|>",
)

Message = tuple[str | None, str | None] | None
GLM_5_3 = "[gMASK]<sop>Reasoning Effort:<tool_call><arg_key><arg_value>"


@dataclass(frozen=True)
class Scenario:
    """One output of one parser.

    Attributes:
        label: what it shows; the name of the test.
        output: its tokens, one string each (bytes where a token is part of a character). A string in `markers` is that
            token; every other becomes a token of its own.
        reasoning, content, tokens: the whole output split, and the reasoning tokens counted after it.
        stream: the message each delta gives, as (reasoning, content).
        stream_tokens: counted after streaming, where that differs.
        prompt: as text; None: no prompt is known.
        deltas: numbers of tokens in each delta; one each when empty.
        late: characters by which the text of a stream comes after its ids.
        texts: the tokens' texts where they are not what decoding gives.
        markers: added tokens, and `declared` those that the tokenizer declares special.
        pieces: tokens the vocabulary has beside those of the output.
        version: the vLLM whose values they are.
    """

    label: str
    parser: str
    output: tuple[str | bytes, ...]
    reasoning: str | None
    content: str | None
    tokens: int
    stream: tuple[Message, ...]
    stream_tokens: int | None = None
    prompt: str | None = "<|im_start|>"
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    request_kwargs: Mapping[str, Any] | None = None
    deltas: tuple[int, ...] = ()
    late: int = 0
    texts: tuple[str, ...] = ()
    markers: tuple[str, ...] = MARKERS
    declared: tuple[str, ...] = ("<eos>",)
    chat_template: str | None = None
    pieces: tuple[str, ...] = ()
    version: str = "0.33.0"

    def spec(self) -> Spec:
        markers = dict.fromkeys(self.markers, "plain") | dict.fromkeys(self.declared, "declared")
        pieces = dict.fromkeys(
            token
            for token in (*self.output, *self.pieces)
            if token not in markers and len(token.encode() if isinstance(token, str) else token) > 1
        )
        return Spec(tuple(pieces), tuple(markers.items()), self.chat_template)

    def case(self, vocabulary: SpecVocabulary) -> dict[str, Any]:
        """The case as `vllm_driver.py` takes it, less the tokenizer."""
        ids = [self._id(vocabulary, token) for token in self.output]
        texts = list(self.texts) or vocabulary.texts(ids)
        return {
            "parser": self.parser,
            "kwargs": dict(self.kwargs),
            "request_kwargs": dict(self.kwargs if self.request_kwargs is None else self.request_kwargs),
            "prompt_ids": None if self.prompt is None else vocabulary.encode(self.prompt),
            "text": "".join(texts),
            "ids": ids,
            "streams": [[list(delta) for delta in self._stream(texts, ids)]],
        }

    def answer(self) -> dict[str, Any]:
        """What the case gives, less the answers about the prompt."""
        stream_tokens = self.tokens if self.stream_tokens is None else self.stream_tokens
        return {
            "full": {"reasoning": self.reasoning, "content": self.content, "tokens": self.tokens},
            "streams": [{"deltas": [message and list(message) for message in self.stream], "tokens": stream_tokens}],
        }

    def _id(self, vocabulary: SpecVocabulary, token: str | bytes) -> int:
        if isinstance(token, str) and token in vocabulary.markers:
            return vocabulary.markers[token]
        raw = token.encode() if isinstance(token, str) else token
        return raw[0] if len(raw) == 1 else 256 + vocabulary.spec.pieces.index(token)

    def _stream(self, texts: Sequence[str], ids: Sequence[int]) -> list[tuple[str, list[int]]]:
        whole, sent, at, made = "".join(texts), 0, 0, list[tuple[str, list[int]]]()
        for size in self.deltas or (1,) * len(ids):
            until = len("".join(texts[: at + size]))
            until = len(whole) if at + size == len(ids) else max(sent, until - self.late)
            made.append((whole[sent:until], list(ids[at : at + size])))
            sent, at = until, at + size
        return made
