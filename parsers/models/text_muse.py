"""muse and muse_glimmer: messages to oneself, the user and tools, told apart by the headers in their text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from ..base import Delta, Split, Vocabulary
from .delegating import LegacyModel
from .id_text import IdText
from .muse_fields import Field
from .muse_spans import GlimmerTools
from .muse_split import split_glimmer, split_spark
from .muse_text import CALLS, EOM, EOT, FRAMING, MESSAGE, START, Lexer, Rope, Tail, Word, has_call, recipient_of, whole
from .muse_tools import Header, Messages, SparkCalls, SparkTools

_LONGEST_CALL = max(map(len, CALLS)) - 1


class _Calls(Protocol):
    """Follows a text up to its tool call."""

    @property
    def found(self) -> bool: ...

    def feed(self, text: str) -> None: ...


class _MuseModel(LegacyModel):
    """What both kinds share: two fields, of which the open message's is held back where it may turn into a header.

    vllm/reasoning/muse_reasoning_parser.py, 0.33.0 (muse_glimmer_reasoning_parser.py in 0.32.0), classifies the whole
    text at every delta and decodes all ids; the models follow both as they grow. The phase ends when the ids' text has
    come to a tool call. Where the output ends before that, content that was classified but never sent is sent.
    """

    skip_special_tokens = False
    _calls: Callable[[], _Calls]

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._id_text, self._id_calls = IdText(vocabulary), self._calls()
        self._reasoning, self._content = Field(), Field()
        self._open: Field | None = None
        self._tail = Tail()
        self._handed_over = False

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        calls = self._calls()
        calls.feed(self._vocabulary.decode(ids))
        return calls.found

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        delta = super().feed(text, ids, finished=finished)
        if not finished or self._ended:
            return delta
        unsent = self._content.unsent(self._content.length - self._held(self._content))
        if not unsent:
            return delta
        return Delta(content=unsent) if delta is None else Delta(delta.reasoning, (delta.content or "") + unsent)

    @property
    @abstractmethod
    def _word(self) -> Word:
        """The word the text ends with."""

    def _ends(self, ids: Sequence[int]) -> bool:
        self._id_calls.feed(self._id_text.feed(ids))
        return self._id_calls.found

    def _held(self, field: Field) -> int:
        return self._tail.held_with(self._word) if field is self._open else 0

    def _taken(self) -> Delta | None:
        reasoning = self._reasoning.take(self._held(self._reasoning))
        content = self._content.take(self._held(self._content))
        return Delta(reasoning or None, content or None) if reasoning or content else None


class MuseModel(_MuseModel):
    """Messages to nobody or oneself are reasoning, those to the user and commentary content, the rest is dropped."""

    _calls = SparkCalls

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._message_id = vocabulary.vocab.get(MESSAGE)
        self._boundary_ids = {vocabulary.vocab.get(marker) for marker in (EOM, EOT, START)} - {None}
        self._messages, self._tools = Messages(), SparkTools()
        self._cut_by_start: tuple[Field, int] | None = None
        self._reasoning_before = self._content_before = 0

    def split(self, text: str, ids: Sequence[int]) -> Split:
        return split_spark(text)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        count, begin, inside = 0, 0, False
        for at, token_id in enumerate(ids):
            if token_id == self._message_id:
                recipient = recipient_of(self._vocabulary.decode(ids[begin:at]))
                inside = recipient in (None, "self")
                begin = at + 1
            elif token_id in self._boundary_ids:
                inside = False
                begin = at + 1
            else:
                count += inside
        return count

    @property
    def _word(self) -> Word:
        return self._messages.word

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        for part, settled in self._messages.feed(text):
            begins = not self._handed_over and self._tools.add(part)
            if isinstance(part, Header):
                self._begin(part, begins)
            elif part in FRAMING:
                closes = part == START and self._open is not None
                self._cut_by_start = (self._open, self._held(self._open)) if closes and self._open else None
                self._open = None
            elif self._open is not None:
                self._open.add(part)
                self._tail.feed(settled)
        if self._handed_over or not self._tools.found:
            return self._taken()
        self._handed_over = True
        reasoning = self._reasoning.unsent(self._reasoning_before)
        content = self._content.unsent(self._content_before)
        framed = f"to=self{MESSAGE}{reasoning}{EOM}" if reasoning else ""
        framed += f"to=commentary{MESSAGE}{content}{EOM}" if content else ""
        return Delta(content=framed + self._tools.text + self._messages.partial)

    def _begin(self, header: Header, to_tool: bool) -> None:
        """A message begins. Where it may be the call, what the fields come to without it is kept.

        Without it, a message it ends, with its `<|start|>` or at once, is one that is still open.
        """
        cut: tuple[Field, int] | None = None
        if self._open is not None:
            self._open.cut(header.to)
            cut = self._open, self._tail.held
        elif header.opens_turn:
            cut = self._cut_by_start
        if to_tool:
            self._reasoning_before, self._content_before = (
                field.length - (cut[1] if cut and cut[0] is field else 0) for field in (self._reasoning, self._content)
            )
        fields = {None: self._reasoning, "self": self._reasoning, "user": self._content, "commentary": self._content}
        self._open = fields.get(header.recipient)
        self._cut_by_start = None
        self._tail.reset()


class MuseGlimmerModel(_MuseModel):
    """Messages to oneself are reasoning, those to the user content unless a tool call stands in them."""

    _calls = GlimmerTools

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._lexer = Lexer(FRAMING)
        self._ending_word = Word()
        self._tools = GlimmerTools()
        self._inside = False
        self._body: Rope = None
        self._body_tail = ""

    def split(self, text: str, ids: Sequence[int]) -> Split:
        return split_glimmer(text)

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0

    @property
    def _word(self) -> Word:
        return self._ending_word

    def _classify(self, text: str, ids: Sequence[int]) -> Delta | None:
        for part in self._lexer.feed(text):
            header = self._ending_word.header if part == MESSAGE else ""
            if header:
                self._begin(header)
            elif part in (EOM, EOT):
                self._inside, self._open = False, None
                self._ending_word.reset()
            else:
                self._write(part)
        delta = self._taken()
        if self._handed_over:
            return delta
        self._tools.feed(text)
        if not self._tools.found:
            return delta
        self._handed_over = True
        return Delta(delta.reasoning if delta else None, self._tools.text)

    def _begin(self, header: str) -> None:
        if self._open is not None:
            self._open.cut(header)
        self._inside = True
        self._open = {"to=self": self._reasoning, "to=user": self._content}.get(header)
        self._ending_word.reset()
        self._tail.reset()
        self._body, self._body_tail = None, ""

    def _write(self, part: str) -> None:
        settled = self._ending_word.feed(part)
        if self._open is None:
            return
        if self._open is self._content:
            window = self._body_tail + part
            if has_call(window):
                self._content.cut(whole(self._body))
                self._open = None
                return
            self._body, self._body_tail = (self._body, part), window[-_LONGEST_CALL:]
        self._open.add(part)
        self._tail.feed(settled)
