"""The text of a reasoning-parser plugin for a model: no line that this model does not need."""

from __future__ import annotations

import functools
import re
from textwrap import wrap
from typing import TYPE_CHECKING

from .traits import Switch, Traits

if TYPE_CHECKING:
    import jinja2

WIDTH = 88
"""vLLM's own line length."""


def class_name(name: str) -> str:
    """The parser's class, from its registered name."""
    joined = "".join(word[:1].upper() + word[1:] for word in re.split(r"\W|_", name) if word)
    return f"{'Model' if not joined or joined[0].isdigit() else ''}{joined}ReasoningParser"


def plugin_text(name: str, traits: Traits) -> str:
    """The plugin's file: one class on BaseThinkingReasoningParser, or on ReasoningParser where markers are no tokens.

    It works on vLLM 0.32.0 and 0.33.0 (vllm/reasoning/basic_parsers.py, vllm/parser/abstract_parser.py).

    Args:
        name: the name it registers.
        traits: of the model.
    """
    return filled(
        _PLUGIN,
        name=name,
        cls=class_name(name),
        single=traits.single,
        call=traits.call,
        special=traits.special,
        switched=bool(traits.switches),
        says=_docstring(_says(traits)),
        start=literal(traits.start),
        end=literal(traits.end),
        call_text=literal(traits.call or ""),
        turns=assigned("turn_tokens", traits.turns) if _by_turns(traits) else None,
        thinking=_thinking(traits) if traits.switches else None,
        base_tells_end=traits.single and traits.opened and traits.closed and traits.call is None,
        START="self.start_token" if traits.single else "self.reasoning_start_str",
        END="self.end_token" if traits.single else "self.reasoning_end_str",
        longest=max(len(traits.end), len(traits.call or "")),
    )


def filled(template: str, **values: object) -> str:
    """A template of this room with its values; blocks that stand alone on a line leave none."""
    return _compiled(template).render(**values)


@functools.cache
def _compiled(template: str) -> jinja2.Template:
    import jinja2

    # It makes Python, not HTML.
    environment = jinja2.Environment(  # noqa: S701
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(template)


def literal(text: str) -> str:
    """A string as ruff formats it."""
    shown = repr(text)
    inside = shown[1:-1]
    return f'"{inside}"' if shown[0] == "'" and '"' not in inside else shown


def assigned(name: str, texts: tuple[str, ...], *, indented: int = 4) -> str:
    """`NAME = (...)`, over several lines where one is too short."""
    from rich.cells import cell_len

    line = f"{name} = ({', '.join(map(literal, texts))}{',' if len(texts) == 1 else ''})"
    if cell_len(line) + indented <= WIDTH:
        return line
    return f"{name} = (\n" + "".join(f"    {literal(text)},\n" for text in texts) + ")"


def _says(traits: Traits) -> str:
    opened = "The prompt opens the thinking block." if traits.opened else "The model opens the thinking block itself."
    off = " and ".join(f"`{one.name}={one.off!r}`" for one in traits.switches)
    verb = "switch" if len(traits.switches) > 1 else "switches"
    said = [opened]
    said += [f"{off} {verb} it off{'' if traits.default_on else ', as does saying nothing'}."] if off else []
    said += ["A tool call ends it, too."] if traits.call is not None else []
    return " ".join(said)


def _docstring(text: str) -> str:
    if len(text) + 10 <= WIDTH:
        return f'"""{text}"""'
    # The first line has the quotes before it.
    lines = wrap("123" + text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return '"""' + "\n".join(lines)[3:] + '\n"""'


def _by_turns(traits: Traits) -> bool:
    """Whether markers of an earlier turn or of a user may be the last of a prompt."""
    return bool(traits.turns) and (not traits.single or not traits.opened or not traits.closed)


def _thinking(traits: Traits) -> str:
    first, *more = map(_term, traits.switches)
    sign = "&=" if traits.default_on else "|="
    return "\n".join([f"self._thinking = {first}", *(f"self._thinking {sign} {term}" for term in more)])


def _term(switch: Switch) -> str:
    if isinstance(switch.off, bool):
        return f'bool(chat_kwargs.get("{switch.name}", {switch.default_on}))'
    if switch.default_on:
        return f'chat_kwargs.get("{switch.name}") != "{switch.off}"'
    return f'chat_kwargs.get("{switch.name}") == "{switch.on}"'


_PLUGIN = '''\
"""Reasoning parser of {{ name }} models."""

{% if not single %}
from bisect import bisect_left
{% endif %}
from collections.abc import {{ "Iterable, " if call or not single }}Sequence
from typing import TYPE_CHECKING

from vllm.entrypoints.generate.base.protocol import DeltaMessage
{% if single %}
from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.basic_parsers import BaseThinkingReasoningParser
{% else %}
from vllm.reasoning import ReasoningParser, ReasoningParserManager
{% endif %}

if TYPE_CHECKING:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.tokenizers import TokenizerLike


@ReasoningParserManager.register_module("{{ name }}")
class {{ cls }}({{ "BaseThinkingReasoningParser" if single else "ReasoningParser" }}):
    {{ says | indent(4) }}

    # The text decides, so that neither the size of a delta nor text that comes later
    # than its ids (stop strings) changes the split. vLLM then asks
    # has_engine_confirmed_reasoning_end and, at the end, finish_streaming.
    engine_based_streaming = True
{% if single %}
    start_token = {{ start }}
    end_token = {{ end }}
{% else %}
    reasoning_start_str = {{ start }}
    reasoning_end_str = {{ end }}
{% endif %}
{% if call %}
    tool_call_start = {{ call_text }}
{% endif %}
{% if turns %}
    {{ turns | indent(4) }}
{% endif %}

    def __init__(self, tokenizer: "TokenizerLike", *args, **kwargs):
        super().__init__(tokenizer, *args, **kwargs)
{% if switched %}
        chat_kwargs = kwargs.get("chat_template_kwargs") or {}
        {{ thinking | indent(8) }}
{% else %}
        self._thinking = True
{% endif %}
{% if single and call %}
        self._tool_call_start_id = self.vocab.get(self.tool_call_start)
{% endif %}
{% if turns %}
        self._turn_token_ids = {self.vocab.get(token) for token in self.turn_tokens}
{% endif %}
        self._ended = False
        self._held = ""

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        self._thinking = not self.is_reasoning_end(prompt_token_ids)

{% if base_tells_end and switched %}
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        if self.start_token_id not in input_ids and self.end_token_id not in input_ids:
            return not self._thinking
        return super().is_reasoning_end(input_ids)

{% elif not base_tells_end %}
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
{% if single %}
        for token_id in reversed(input_ids):
{% if call %}
            if token_id in (self.end_token_id, self._tool_call_start_id):
{% else %}
            if token_id == self.end_token_id:
{% endif %}
                return True
            if token_id == self.start_token_id:
                return False
{% if turns %}
            if token_id in self._turn_token_ids:
                break
{% endif %}
        return {{ "not self._thinking" if switched else "False" }}
{% else %}
{% if turns %}
        turn = len(input_ids)
        while turn and input_ids[turn - 1] not in self._turn_token_ids:
            turn -= 1
        text = self.model_tokenizer.decode(input_ids[turn:])
{% else %}
        text = self.model_tokenizer.decode(input_ids)
{% endif %}
        start = text.rfind(self.reasoning_start_str)
        end = text.rfind(self.reasoning_end_str)
{% if call %}
        end = max(end, text.rfind(self.tool_call_start))
{% endif %}
{% if switched %}
        if start == end:
            return not self._thinking
{% endif %}
        return end > start
{% endif %}

{% endif %}
{% if call or not single %}
    def is_reasoning_end_streaming(
        self, input_ids: Sequence[int], delta_ids: Iterable[int]
    ) -> bool:
{% if single %}
        ends = (self.end_token_id, self._tool_call_start_id)
        return any(token_id in ends for token_id in delta_ids)
{% else %}
        # No token of a marker is shorter than a character, so what this delta
        # completes began at most {{ longest }} tokens before it.
        new = len(list(delta_ids))
        window = list(input_ids[-(new + {{ longest }}) :])
        before = self._ends(self.model_tokenizer.decode(window[: len(window) - new]))
        return self._ends(self.model_tokenizer.decode(window)) > before
{% endif %}

{% endif %}
{% if call or switched or not single %}
    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
{% if switched %}
        if not self._thinking:
            return input_ids
{% endif %}
{% if single and call %}
        for i, token_id in enumerate(input_ids):
            if token_id == self.end_token_id:
                return input_ids[i + 1 :]
            if token_id == self._tool_call_start_id:
                return input_ids[i:]
        return []
{% elif single %}
        return super().extract_content_ids(input_ids)
{% else %}
        decode = self.model_tokenizer.decode
        ended = bisect_left(
            range(len(input_ids) + 1),
            True,
            key=lambda n: self._ends(decode(input_ids[:n])) > 0,
        )
{% if call %}
        # A tool call is content, from its first token on.
        content = self._split(decode(input_ids[:ended]))[1]
        begin = ended
        while content and not decode(input_ids[begin:ended]).endswith(content):
            begin -= 1
        return input_ids[begin:]
{% else %}
        return input_ids[ended:]
{% endif %}
{% endif %}

{% endif %}
    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        if not self._thinking:
            return 0
{% if single %}
        count = 0
        for token_id in token_ids:
{% if call %}
            if token_id in (self.end_token_id, self._tool_call_start_id):
{% else %}
            if token_id == self.end_token_id:
{% endif %}
                break
            count += token_id != self.start_token_id
        return count
{% else %}
        reasoning, _ = self._split(self.model_tokenizer.decode(token_ids))
        return len(self.model_tokenizer.encode(reasoning, add_special_tokens=False))
{% endif %}

    def extract_reasoning(
        self, model_output: str, request: "ChatCompletionRequest | ResponsesRequest"
    ) -> tuple[str | None, str | None]:
        if not self._thinking:
            return None, model_output
        reasoning, content = self._split(model_output)
        return reasoning or None, content or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        text = self._held + delta_text
        reasoning, content = self._split(text)
        self._ended = content is not None
        self._held = "" if self._ended else self._partial_marker(text)
        if self._held:
            reasoning, _ = self._split(text.removesuffix(self._held))
        return _delta(reasoning, content)

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return self._ended

    def finish_streaming(self) -> DeltaMessage | None:
        held, self._held = self._held, ""
        return _delta(held, None)

{% if special %}
    def adjust_request(
        self, request: "ChatCompletionRequest | ResponsesRequest"
    ) -> "ChatCompletionRequest | ResponsesRequest":
        # The markers are special tokens, which decoding leaves out by default.
        request.skip_special_tokens = False
        return request

{% endif %}
{% if not single %}
    def _ends(self, text: str) -> int:
{% if call %}
        return text.count(self.reasoning_end_str) + text.count(self.tool_call_start)
{% else %}
        return text.count(self.reasoning_end_str)
{% endif %}

{% endif %}
    def _split(self, text: str) -> tuple[str, str | None]:
        """The reasoning, and the content once reasoning has ended."""
{% if call %}
        ends = (text.find({{ END }}), text.find(self.tool_call_start))
        at = min((found for found in ends if found >= 0), default=None)
        reasoning = text[:at].replace({{ START }}, "")
        if at is None:
            return reasoning, None
        return reasoning, text[at:].removeprefix({{ END }})
{% else %}
        reasoning, end, content = text.partition({{ END }})
        return reasoning.replace({{ START }}, ""), content if end else None
{% endif %}

    def _partial_marker(self, text: str) -> str:
        """The longest end of the text that may still become a marker."""
{% if call and single %}
        markers = (self.start_token, self.end_token, self.tool_call_start)
{% elif call %}
        markers = (
            self.reasoning_start_str,
            self.reasoning_end_str,
            self.tool_call_start,
        )
{% else %}
        markers = ({{ START }}, {{ END }})
{% endif %}
        starts = (marker[:n] for marker in markers for n in range(len(marker)))
        return max(filter(text.endswith, starts), key=len)


def _delta(reasoning: str, content: str | None) -> DeltaMessage | None:
    fields = {"reasoning": reasoning, "content": content}
    said = {name: text for name, text in fields.items() if text}
    return DeltaMessage(**said) if said else None
'''
