"""A parser for <ponder> ... </ponder> that goes by the text, holds back what may be a marker, and keeps to itself."""

from collections.abc import Sequence

from vllm.entrypoints.generate.base.protocol import DeltaMessage
from vllm.reasoning import ReasoningParser, ReasoningParserManager

START, END = "<ponder>", "</ponder>"


@ReasoningParserManager.register_module("ponder")
class PonderReasoningParser(ReasoningParser):
    def __init__(self, tokenizer, *args, **kwargs):
        super().__init__(tokenizer, *args, **kwargs)
        chat = kwargs.get("chat_template_kwargs") or {}
        self.off = chat.get("enable_thinking") is False
        self.start_id, self.end_id = self.vocab[START], self.vocab[END]
        self.text = ""
        self.begun = self.over = self.streams = False

    @property
    def reasoning_start_str(self):
        return START

    @property
    def reasoning_end_str(self):
        return END

    def is_reasoning_end(self, input_ids):
        if self.off:
            return True
        for token_id in reversed(input_ids):
            if token_id in (self.start_id, self.end_id):
                return token_id == self.end_id
        return False

    def is_reasoning_end_streaming(self, input_ids, delta_ids):
        # Text may come later than its ids: a stream is over when the marker's text is out of it.
        return self.over if self.streams else self.off or self.end_id in delta_ids

    def extract_content_ids(self, input_ids):
        return input_ids[input_ids.index(self.end_id) + 1 :] if self.end_id in input_ids else []

    def count_reasoning_tokens(self, token_ids: Sequence[int]):
        if self.off:
            return 0
        ids = list(token_ids)
        until = ids.index(self.end_id) if self.end_id in ids else len(ids)
        return sum(token_id != self.start_id for token_id in ids[:until])

    def extract_reasoning(self, model_output, request):
        if self.off:
            return None, model_output
        reasoning, end, content = model_output.removeprefix(START).partition(END)
        return reasoning or None, (content or None) if end else None

    def extract_reasoning_streaming(
        self, previous_text, current_text, delta_text, previous_token_ids, current_token_ids, delta_token_ids
    ):
        if self.over:
            return DeltaMessage(content=delta_text)
        self.streams = True
        self.text += delta_text
        if not self.begun:
            if len(self.text) < len(START) and START.startswith(self.text):
                return None
            self.text = self.text.removeprefix(START)
            self.begun = True
        reasoning, end, content = self.text.partition(END)
        self.over = bool(end)
        self.text = ""
        if not end:
            held = next((size for size in range(len(END) - 1, 0, -1) if reasoning.endswith(END[:size])), 0)
            reasoning, self.text = reasoning[: len(reasoning) - held], reasoning[len(reasoning) - held :]
        return DeltaMessage(reasoning=reasoning or None, content=content or None) if reasoning or content else None
