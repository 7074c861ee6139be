"""gpt-oss prompts, built by openai-harmony as vLLM builds them.

Source: vLLM 0.33.0, entrypoints/openai/parser/harmony_utils.py and renderers/online_renderer.py.
"""

from __future__ import annotations

import base64
import datetime
import functools
import os
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..parsers.models.harmony import VARIABLE, VOCABULARY, is_fork
from .coded import CodedPrompts, RefusedError
from .cut import CodedTokenizer
from .messages import as_sent
from .render import RenderRequest

if TYPE_CHECKING:
    from openai_harmony import HarmonyEncoding, Message

_EFFORTS = ("low", "medium", "high")
_CALL_HEADER = re.compile(r"assistant<\|channel\|>(.+?) to=(.+) <\|constrain\|>(.+)", re.DOTALL)


def read(folder: Path) -> CodedPrompts | str:
    """The prompts of gpt-oss, or why they are not evaluated.

    The fork carries its vocabulary. The original downloads it where the variable is not set, so without it nothing is
    asked of it.
    """
    base = os.environ.get(VARIABLE)
    if not base and not is_fork():
        return (
            "openai-harmony renders gpt-oss, and would download its vocabulary; to have it evaluated: pip install"
            f" 'reasonctl[harmony]' for the fork that has it, or set {VARIABLE} to a folder with {VOCABULARY}"
        )
    try:
        return _read(folder, Path(base) / VOCABULARY if base else None)
    except Exception as error:  # the library's own class for a file it cannot take, OSError for none
        reason = " ".join(str(error).split())[:200]
        where = f"cannot read {VOCABULARY} in {VARIABLE}" if base else "cannot be loaded"
        return f"openai-harmony renders gpt-oss, but {where} ({reason})"


@functools.lru_cache(maxsize=4)
def _read(folder: Path, file: Path | None) -> HarmonyPrompts:
    from openai_harmony import HarmonyEncodingName, load_harmony_encoding

    pieces = _pieces(file) if file is not None else None
    encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    return HarmonyPrompts(folder, encoding, _own_pieces(encoding) if pieces is None else pieces)


class HarmonyPrompts(CodedPrompts):
    """The system message with effort and date, the developer message, then the conversation in channels."""

    cuts_outputs = False

    def __init__(self, folder: Path, encoding: HarmonyEncoding, pieces: Mapping[int, bytes]) -> None:
        by = " ".join(_version())
        self._encoding = encoding
        super().__init__(
            by=by,
            tokenizer=_tokenizer(folder, encoding, pieces, by),
            special_tokens={"eos_token": "<|return|>"},
            compared={"reasoning_effort": _EFFORTS},
        )

    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """The request field alone, behind the server's map; chat-template kwargs have no say."""
        return {} if effort is None else {"reasoning_effort": effective.get("reasoning_effort", effort)}

    def ids(self, request: RenderRequest) -> Sequence[int]:
        """Always with a generation prompt: vLLM asks for none of the request's ways to leave it out."""
        from openai_harmony import Conversation, RenderConversationConfig, Role

        messages = as_sent(request.messages)
        instructions = None
        if messages and messages[0]["role"] in ("system", "developer"):
            instructions = _joined(messages.pop(0))
        built = [_system(request.kwargs.get("reasoning_effort"))]
        if instructions or request.tools:
            built.append(_developer(instructions, request.tools))
        names = {
            call.get("id"): call["function"]["name"] for message in messages for call in message.get("tool_calls", ())
        }
        for message in messages:
            built += _converted(message, names)
        conversation = Conversation.from_messages(_without_old_thoughts(built))
        ids: list[int] = self._encoding.render_conversation_for_completion(
            conversation, Role.ASSISTANT, config=RenderConversationConfig(auto_drop_analysis=False)
        )
        return _with_recipients_first(self._encoding, ids) if _is_fork() else ids


def _system(effort: Any) -> Message:
    from openai_harmony import Message, ReasoningEffort, Role, SystemContent

    content = SystemContent.new().with_conversation_start_date(_today())
    if effort is not None:
        if effort not in _EFFORTS:
            raise RefusedError(f"harmony takes no reasoning_effort {effort!r}, only {', '.join(_EFFORTS)}")
        content = content.with_reasoning_effort(ReasoningEffort(str(effort).capitalize()))
    return Message.from_role_and_content(Role.SYSTEM, content)


def _developer(instructions: str | None, tools: Sequence[Mapping[str, Any]] | None) -> Message:
    from openai_harmony import DeveloperContent, Message, Role, ToolDescription

    content = DeveloperContent.new()
    if instructions is not None:
        content = content.with_instructions(instructions)
    if tools:
        functions = [tool["function"] for tool in tools]
        content = content.with_function_tools(
            [
                ToolDescription.new(
                    name=function["name"],
                    description=function.get("description") or "",
                    parameters=function.get("parameters"),
                )
                for function in functions
            ]
        )
    return Message.from_role_and_content(Role.DEVELOPER, content)


def _converted(message: Mapping[str, Any], names: Mapping[Any, str]) -> list[Message]:
    """One message of the request as harmony messages: a thought, a call and an answer each have their own."""
    from openai_harmony import Author, Message, Role, TextContent

    role, text = message["role"], _joined(message)
    content = text or ""
    if role == "tool":
        author = Author.new(Role.TOOL, f"functions.{names.get(message.get('tool_call_id'), '')}")
        result = Message.from_author_and_content(author, content)
        # The recipient stands behind the channel in the library that vLLM 0.33.0 needs (oss-harmony 0.0.10 and later),
        # before it in openai-harmony, where it has to be a part of the channel's name.
        if _is_fork():
            return [result.with_channel("commentary").with_recipient("assistant")]
        return [result.with_channel("commentary to=assistant")]
    if role in ("system", "developer"):
        return [_developer(text, None)] if text is not None else []
    parts = [TextContent(text=part) for part in _texts(message) or [""]]
    if role != "assistant":
        return [Message.from_role_and_contents(Role(role), parts)]

    def said(text: str, channel: str) -> Message:
        return Message.from_role_and_content(Role.ASSISTANT, text).with_channel(channel)

    thought = [said(message["reasoning"], "analysis")] if message.get("reasoning") else []
    calls = message.get("tool_calls")
    if not calls:
        final = Message.from_role_and_contents(Role.ASSISTANT, parts).with_channel("final")
        return [*thought, final] if parts[0].text else thought
    before = [said(content, "commentary")] if content else []
    functions = [call["function"] for call in calls]
    called = [
        said(function.get("arguments") or "", "commentary")
        .with_recipient(f"functions.{function['name']}")
        .with_content_type("json")
        for function in functions
    ]
    return [*before, *thought, *called]


def _without_old_thoughts(messages: Sequence[Message]) -> list[Message]:
    """The messages without the thoughts before the last final answer."""
    finals = [index for index, message in enumerate(messages) if message.channel == "final"]
    last = finals[-1] if finals else -1
    return [m for index, m in enumerate(messages) if index >= last or m.channel != "analysis"]


def _with_recipients_first(encoding: HarmonyEncoding, ids: Sequence[int]) -> list[int]:
    """The fork's ids with earlier calls as gpt-oss knows them and openai-harmony writes them.

    `<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>` becomes
    `<|start|>assistant to=functions.f<|channel|>commentary json<|message|>`, as in vLLM's
    `_use_legacy_tool_call_headers`. Nothing else holds `<|constrain|>`.
    """
    start, channel, constrain, message = (
        encoding.encode(f"<|{name}|>", allowed_special="all")[0]
        for name in ("start", "channel", "constrain", "message")
    )
    changed: list[int] = []
    begin = 0
    for at, token_id in enumerate(ids):
        if token_id == start:
            changed += ids[begin:at]
            begin = at
        elif token_id == message and constrain in ids[begin:at]:
            header = encoding.decode(ids[begin + 1 : at])
            if found := _CALL_HEADER.fullmatch(header):
                name, recipient, kind = found.groups()
                changed += [start, *encoding.encode(f"assistant to={recipient}")]
                changed += [channel, *encoding.encode(f"{name} {kind}")]
                begin = at
    return [*changed, *ids[begin:]]


def _texts(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message's content, which are cut into tokens one by one."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [] if content is None else [content]
    texts = [part if isinstance(part, str) else part.get("text") for part in parts]
    return [text for text in texts if text is not None]


def _joined(message: Mapping[str, Any]) -> str | None:
    """The same as one text, without anything between; None where there is none."""
    texts = _texts(message)
    return "".join(texts) if texts else None


def _today() -> str:
    """The date in the system message: what a server without VLLM_SYSTEM_START_DATE writes."""
    return datetime.datetime.now().strftime("%Y-%m-%d")


@functools.cache
def _version() -> tuple[str, str]:
    """Name and version of the package that brings the module: the fork that vLLM needs, or the original."""
    for package in ("oss-harmony", "openai-harmony"):
        try:
            return package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return "openai-harmony", "?"


@functools.cache
def _is_fork() -> bool:
    return is_fork()


def _tokenizer(folder: Path, encoding: HarmonyEncoding, pieces: Mapping[int, bytes], by: str) -> CodedTokenizer:
    special: dict[str, int] = {}
    for text in encoding.special_tokens_set:
        special[text] = encoding.encode(text, allowed_special="all")[0]
    special = dict(sorted(special.items(), key=lambda item: item[1]))
    known = {**pieces, **{one: text.encode() for text, one in special.items()}}
    return CodedTokenizer(
        folder=folder,
        loader=by,
        size=max(known) + 1,
        piece=known.__getitem__,
        cut=lambda text: encoding.encode(text, disallowed_special=()),
        special_tokens=special,
        kept=frozenset(),
        spelled=lambda: {**{_byte_level(piece): one for one, piece in pieces.items()}, **special},
    )


def _pieces(file: Path) -> dict[int, bytes]:
    """Id to bytes, of a file with a line `BASE64 ID` for each token."""
    lines = (line.split() for line in file.read_bytes().splitlines())
    return {int(one): base64.b64decode(text) for text, one in lines}


def _own_pieces(encoding: HarmonyEncoding) -> dict[int, bytes]:
    """The same, as the library itself joins each token; its special tokens come behind all others."""
    bytes_of = encoding._inner.decode_bytes
    first_special = min(encoding.encode(text, allowed_special="all")[0] for text in encoding.special_tokens_set)
    return {one: bytes_of([one]) for one in range(first_special)}


def _byte_level(piece: bytes) -> str:
    """The token as a byte-level tokenizer.json spells it."""
    return "".join(map(_letters().__getitem__, piece))


@functools.cache
def _letters() -> tuple[str, ...]:
    """A visible letter for each byte: its own where it has one, else the next from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in shown else chr(next(hidden)) for byte in range(0x100))
