"""openai_gptoss: gpt-oss's channels, told apart by harmony's own parser over token ids.

Models `HarmonyParser` (vllm/parser/harmony.py, 0.33.0, unchanged from 0.32.0), which vLLM composes for every model of
type gpt_oss, and the stub that any other model gets under this name (vllm/reasoning/gptoss_reasoning_parser.py).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..base import Delta, ParserModel, ParserRaisedError, ParserUnsupportedError, Split, Vocabulary

if TYPE_CHECKING:
    from openai_harmony import HarmonyEncoding, Message, StreamableParser

VARIABLE = "TIKTOKEN_ENCODINGS_BASE"
VOCABULARY = "o200k_base.tiktoken"
_MARKER_IDS = {"<|channel|>": 200005, "<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008}
_BUILTIN_TOOLS = ("python", "browser", "container")
_CONSTRAIN = "<|constrain|>"


def build_harmony(vocabulary: Vocabulary) -> ParserModel:
    """The model of openai_gptoss for a tokenizer.

    Raises:
        ParserUnsupportedError: the library is missing or would have to download its vocabulary; or the tokenizer has
            harmony's markers under ids that are not gpt-oss's.
    """
    vocab = vocabulary.vocab
    known = {text: vocab[text] for text in _MARKER_IDS if text in vocab}
    if "<|channel|>" not in known and not hasattr(vocabulary, "token_text"):
        return StubModel()
    # A recording's own tokens are all that is known of its vocabulary: some markers may not be among them.
    if not known or any(token_id != _MARKER_IDS[text] for text, token_id in known.items()):
        raise ParserUnsupportedError("it reads the token ids of gpt-oss's own vocabulary: give --model")
    return HarmonyModel(vocabulary, _load())


@dataclass(frozen=True, slots=True)
class Harmony:
    """The library, loaded, with the ids that end a message."""

    encoding: HarmonyEncoding
    stop_ids: frozenset[int]

    def parser(self, *, begun: bool) -> StreamableParser:
        """A parser of what comes after `<|start|>assistant`, or, where nothing has begun, of a next message."""
        from openai_harmony import Role, StreamableParser

        return StreamableParser(self.encoding, role=Role.ASSISTANT if begun else None)


def is_fork() -> bool:
    """Whether oss-harmony is what `openai_harmony` imports: the fork that vLLM needs, its vocabulary inside."""
    try:
        files = metadata.files("oss-harmony") or ()
    except metadata.PackageNotFoundError:
        return False
    # Both packages write the same files, and either may have been the last.
    compiled = [file for file in files if file.name.startswith("openai_harmony.")]
    return bool(compiled) and all(Path(file.locate()).stat().st_size == file.size for file in compiled)


def _load() -> Harmony:
    return _loaded(os.environ.get(VARIABLE))


@functools.cache
def _loaded(base: str | None) -> Harmony:
    """The library with its vocabulary; never from the network, where the original takes it without a base."""
    try:
        from openai_harmony import HarmonyEncodingName, load_harmony_encoding
    except ImportError:
        raise ParserUnsupportedError("oss-harmony is missing: pip install 'reasonctl[harmony]'") from None
    if not base and not is_fork():
        raise ParserUnsupportedError(
            "openai-harmony would download its vocabulary: pip install 'reasonctl[harmony]' for the fork that has it, "
            f"or set {VARIABLE} to a folder with {VOCABULARY}"
        )
    try:
        encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    except Exception as error:  # the library's own class
        reason = " ".join(str(error).split())[:200]
        raise ParserUnsupportedError(f"{VARIABLE} names no folder with {VOCABULARY}: {reason}") from None
    return Harmony(encoding, frozenset(encoding.stop_tokens()))


class _Step(NamedTuple):
    """What one token did."""

    channel: str | None
    recipient: str | None
    delta: str
    message: Message | None = None


class HarmonyModel(ParserModel):
    """One output. The prompt is not read: an output is what follows `<|start|>assistant`."""

    def __init__(self, vocabulary: Vocabulary, harmony: Harmony) -> None:
        self._vocabulary = vocabulary
        self._harmony = harmony
        self._parser = harmony.parser(begun=True)
        self._counted_tokens = 0
        self._reasoning_tokens = 0
        # The tokens of the message that has begun: what it becomes where the output stops in the middle of a header.
        self._begun: list[int] = []

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return True

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        """Nothing: neither way reads the prompt."""

    def split(self, text: str, ids: Sequence[int]) -> Split:
        reasoning: list[str] = []
        content: list[str] = []
        for step in (*self._read(ids), *self._flush()):
            message = step.message
            if message is None or message.author.role != "assistant" or not message.content:
                continue
            said = _field(message.channel, _plain(message.recipient), reasoning, content)
            if said is not None and (whole := message.content[0].text):
                said.append(whole)
        return Split("\n".join(reasoning) or None, "\n".join(content) or None)

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        reasoning: list[str] = []
        content: list[str] = []
        for step in (*self._read(ids), *(self._flush() if finished else ())):
            if step.message is None and (said := _field(step.channel, step.recipient, reasoning, content)) is not None:
                said.append(step.delta)
        delta = Delta("".join(reasoning) or None, "".join(content) or None)
        return None if delta == Delta() else delta

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        if len(ids) == self._counted_tokens:
            return self._reasoning_tokens
        other = HarmonyModel(self._vocabulary, self._harmony)
        for _ in other._read(ids):
            pass
        return other._reasoning_tokens

    def _read(self, ids: Sequence[int]) -> Iterator[_Step]:
        """What each token does. One that cannot stand where it stands is passed over."""
        from openai_harmony import HarmonyError

        for token_id in ids:
            self._counted_tokens += 1
            parser = self._parser
            try:
                parser.process(token_id)
            except HarmonyError:
                continue
            except Exception as error:
                raise ParserRaisedError(type(error).__name__, str(error)) from error
            channel, recipient = parser.current_channel, _plain(parser.current_recipient)
            delta = parser.last_content_delta or ""
            message = self._message() if token_id in self._harmony.stop_ids else None
            if message is None:
                self._begun.append(token_id)
            else:
                # A parser of its own for each message: asking one for its messages costs all that it has read.
                self._parser = self._harmony.parser(begun=False)
                self._begun.clear()
            thinks = channel == "analysis" or (channel == "commentary" and recipient is not None)
            if thinks and not self._harmony.encoding.is_special_token(token_id):
                self._reasoning_tokens += 1
            yield _Step(channel, recipient, delta, message)

    def _flush(self) -> Iterator[_Step]:
        """The end of the output: the message that it stops in; all of its tokens as an answer if that has no header."""
        from openai_harmony import HarmonyError, Message, Role

        try:
            self._parser.process_eos()
            message = self._message()
        except HarmonyError:
            text = self._vocabulary.decode(self._begun)
            yield _Step("final", None, text)
            message = Message.from_role_and_content(Role.ASSISTANT, text).with_channel("final")
        if message is not None:
            yield _Step(message.channel, _plain(message.recipient), "", message)

    def _message(self) -> Message | None:
        """The message that has just been completed."""
        messages = self._parser.messages
        return messages[0] if messages else None


class StubModel(ParserModel):
    """What a model that is not gpt-oss gets: it knows every prompt to have ended, and refuses to split."""

    def __init__(self) -> None:
        self._passes_through = False

    def is_reasoning_end(self, ids: Sequence[int]) -> bool:
        return True

    def begin(self, prompt_ids: Sequence[int] | None, *, streaming: bool) -> None:
        self._passes_through = streaming and prompt_ids is not None

    def split(self, text: str, ids: Sequence[int]) -> Split:
        raise _refusal()

    def feed(self, text: str, ids: Sequence[int], *, finished: bool = False) -> Delta | None:
        if self._passes_through:
            return Delta(content=text)
        raise _refusal()

    def count_reasoning_tokens(self, ids: Sequence[int]) -> int:
        return 0


def _refusal() -> ParserRaisedError:
    return ParserRaisedError("NotImplementedError", "GptOssReasoningParser only provides boundary detection.")


def _field(channel: str | None, recipient: str | None, reasoning: list[str], content: list[str]) -> list[str] | None:
    """Where the text of a message goes; None for a tool call, and for channels that no client sees."""
    if recipient and _is_function(recipient):
        return None
    if channel == "analysis":
        return reasoning
    return content if channel == "final" or (channel == "commentary" and recipient is None) else None


def _is_function(recipient: str) -> bool:
    if recipient.startswith("functions."):
        return recipient != "functions."
    tool, _, _ = recipient.partition(".")
    return not recipient.startswith("<|") and recipient != "assistant" and tool not in _BUILTIN_TOOLS


def _plain(recipient: str | None) -> str | None:
    """The recipient without a constrained format that was read as a part of it."""
    at = -1 if recipient is None else recipient.find(_CONSTRAIN)
    return recipient if recipient is None or at < 0 else recipient[:at].rstrip() or None
