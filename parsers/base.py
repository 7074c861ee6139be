"""What every parser model offers, and what it may ask of a tokenizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ReasonctlError

if TYPE_CHECKING:
    from .columns import Deltas


class Vocabulary(Protocol):
    """What a parser may ask of a tokenizer. Ids are ints in the model's vocabulary, texts are str."""

    @property
    def vocab(self) -> Mapping[str, int]:
        """Every token, in the tokenizer's own spelling (byte-level ones included), to its id."""

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that decoding with `skip_special_tokens` leaves out."""

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Tokens the tokenizer *declares* special (transformers' `all_special_tokens`, in its order), with their ids.

        Not the set that decoding skips: DeepSeek-V4 flags 1230 added tokens special and declares 2.
        """

    @property
    def chat_template(self) -> str | None:
        """The tokenizer's own template text (GLM's parser looks at it)."""

    @property
    def init_kwargs(self) -> Mapping[str, Any]:
        """What `tokenizer_config.json` says (`token_suffix` for hy_v3, ...)."""

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without adding bos or eos; markers in the text become their added tokens."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of a run of ids."""


@dataclass(frozen=True, slots=True)
class Delta:
    """One message to the client: what a parser adds to each field, None where it says nothing of it."""

    reasoning: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """A whole output, told apart. Strings or None exactly as vLLM's parser returns them."""

    reasoning: str | None
    content: str | None


class Sums:
    """Adds up the messages of a stream."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.content: list[str] = []

    def add(self, message: Delta | None) -> None:
        if message is None:
            return
        if message.reasoning is not None:
            self.reasoning.append(message.reasoning)
        if message.content is not None:
            self.content.append(message.content)

    def split(self) -> Split:
        """The texts so far, None of a field that no message had."""
        return Split(
            "".join(self.reasoning) if self.reasoning else None, "".join(self.content) if self.content else None
        )


class ParserModel(ABC):
    """A model of one vLLM reasoning parser, for one request. Holds no class state; costs O(1) a token; never rescans.

    Call `begin` once, then either `split` once, or `feed` for every delta, or `stream` with all of them. It stands for
    vLLM's `DelegatingParser` (vllm/parser/abstract_parser.py, 0.33.0) with this reasoning parser and no tool parser.
    """

    skip_special_tokens: bool | None = None
    """What the parser's `adjust_request` makes of the request's field; None leaves it alone."""

    @abstractmethod
    def is_reasoning_end(self, ids: Sequence[int]) -> bool | None:
        """What the server reads from the prompt's ids: has thinking ended? None where it has no answer (granite)."""

    @abstractmethod
    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        """Hand over the prompt's token ids before `split` or the first `feed`. None where it is unknown."""

    @property
    def start_state(self) -> Hashable:
        """All that `begin` took from the prompt: models built alike with equal ones do the same from there on.

        None where that cannot be said in a few words.
        """
        return None

    @abstractmethod
    def split(self, text: str, ids: Sequence[int]) -> Split:
        """Non-streaming: the whole output at once (`Parser.parse`)."""

    @abstractmethod
    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        """Streaming: one delta (`Parser.parse_delta`), `finished` on the last. None: nothing reaches the client."""

    def stream(self, deltas: Deltas) -> Split:
        """Streaming, all deltas at once: the sum of what `feed` gives, None where it gives nothing.

        A model may go about it in its own way, as long as the sum is the same.
        """
        sums = Sums()
        last = len(deltas)
        for number, (text, ids) in enumerate(deltas, 1):
            sums.add(self.feed(text, ids, finished=number == last))
        return sums.split()

    @abstractmethod
    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        """What usage reports for an output of these ids."""


class ParserUnsupportedError(ReasonctlError):
    """There is no way to run this parser here (no model yet, an extra is missing, the tokenizer is not real)."""


class ParserRaisedError(ReasonctlError):
    """vLLM's own parser raises at this point.

    Args:
        exception: the class name vLLM raises, such as `RuntimeError`.
        message: its text, as vLLM words it where that helps the reader.
    """

    def __init__(self, exception: str, message: str) -> None:
        self.exception = exception
        self.message = message
        super().__init__(f"{exception}: {message}")
