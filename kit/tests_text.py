"""The text of a pytest file for a plugin that `plugin_text` wrote: it needs vLLM and nothing of ours."""

from __future__ import annotations

from .plugin_text import assigned, filled, literal
from .traits import Traits


def pytest_text(name: str, stem: str, traits: Traits) -> str:
    """The file.

    Args:
        name: the parser's.
        stem: the plugin's file name without `.py`, beside which the tests lie.
        traits: of the model.
    """
    asked = {one.name: one.on for one in traits.switches[:1] if not one.default_on}
    off = {traits.switches[0].name: traits.switches[0].off} if traits.switches else None
    tokens = (*traits.markers, *traits.turns) if traits.single else traits.turns
    return filled(
        _TESTS,
        name=name,
        stem=stem,
        start=literal(traits.start),
        end=literal(traits.end),
        call=literal(traits.call) if traits.call is not None else None,
        tokens=assigned("TOKENS", tuple(dict.fromkeys(tokens)), indented=0) if tokens else "TOKENS = ()",
        opened=traits.opened,
        prompt=literal(traits.prompt),
        off=_kwargs(off) if off is not None else None,
        on=_kwargs(asked),
        prompt_off=literal(traits.prompt_off or ""),
        turns=bool(traits.turns),
        history=not traits.opened and bool(traits.turns),
        special=traits.special,
    )


def _kwargs(kwargs: dict[str, object]) -> str:
    inside = ", ".join(f"{literal(key)}: {literal(v) if isinstance(v, str) else repr(v)}" for key, v in kwargs.items())
    return f"{{{inside}}}"


_TESTS = '''\
"""Tests of {{ stem }}.py; they need vLLM and no model."""

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.reasoning import ReasoningParserManager

NAME = "{{ name }}"
START = {{ start }}
END = {{ end }}
{% if call %}
TOOL_CALL = {{ call }}
{% endif %}
{{ tokens }}
PROMPT = {{ prompt }}
OPENING = {{ '""' if opened else "START" }}
{% if on != "{}" %}
ON = {{ on }}
{% endif %}
{% if off %}
PROMPT_OFF = {{ prompt_off }}
OFF = {{ off }}
{% endif %}

CASES = {
    "thinks then answers": (f"{OPENING}Add.{END}It is 4.", "Add.", "It is 4."),
    "repeats the start": (f"{START}Add.{END}It is 4.", "Add.", "It is 4."),
    "is cut while thinking": (f"{OPENING}Add.", "Add.", None),
    "is cut inside the marker": (f"{OPENING}Add.{END[:-1]}", f"Add.{END[:-1]}", None),
    "is cut behind the marker": (f"{OPENING}Add.{END}", "Add.", None),
    "thinks nothing": (f"{OPENING}{END}It is 4.", None, "It is 4."),
    "writes the end twice": (f"{OPENING}Add.{END}4{END}5", "Add.", f"4{END}5"),
{% if call %}
    "calls a tool": (f"{OPENING}Look up.{TOOL_CALL}f()", "Look up.", f"{TOOL_CALL}f()"),
{% endif %}
    "writes nothing": ("", None, None),
}

plugin = Path(__file__).with_name("{{ stem }}.py")
ReasoningParserManager.import_reasoning_parser(str(plugin))


@pytest.fixture(scope="module")
def tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    built = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.add_tokens([AddedToken(text, normalized=False) for text in TOKENS])
    return PreTrainedTokenizerFast(tokenizer_object=built)


def make_parser(tokenizer, kwargs=None):
    parser_cls = ParserManager.get_parser(reasoning_parser_name=NAME)
{% if on != "{}" %}
    kwargs = ON if kwargs is None else kwargs
{% endif %}
    return parser_cls(tokenizer, None, chat_template_kwargs=kwargs)


def request():
    return ChatCompletionRequest(model="m", messages=[{"role": "user", "content": ""}])


def full(tokenizer, prompt, output, kwargs=None):
    parser = make_parser(tokenizer, kwargs)
    parser.set_prompt_token_ids(tokenizer.encode(prompt))
    ids = tokenizer.encode(output)
    reasoning, content, _ = parser.parse(output, request(), False, ids)
    return reasoning or None, content or None


def stream(tokenizer, prompt, output, size, late=0, kwargs=None):
    """Feed `size` tokens a delta, the text `late` characters behind its ids."""
    parser = make_parser(tokenizer, kwargs)
    prompt_ids, ids = tokenizer.encode(prompt), tokenizer.encode(output)
    sent, reasoning, content = 0, "", ""
    for i in range(0, len(ids), size):
        finished = i + size >= len(ids)
        text = tokenizer.decode(ids[: i + size])
        end = len(text) if finished else max(sent, len(text) - late)
        delta = parser.parse_delta(
            text[sent:end], ids[i : i + size], request(), prompt_ids, finished=finished
        )
        sent = end
        if delta is not None:
            assert delta.reasoning or delta.content or not text
            reasoning += delta.reasoning or ""
            content += delta.content or ""
    return reasoning or None, content or None


@pytest.mark.parametrize("case", CASES)
def test_full(tokenizer, case):
    output, reasoning, content = CASES[case]
    assert full(tokenizer, PROMPT, output) == (reasoning, content)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("case", CASES)
def test_stream(tokenizer, case, size, late):
    output, reasoning, content = CASES[case]
    assert stream(tokenizer, PROMPT, output, size, late) == (reasoning, content)


def test_is_reasoning_end(tokenizer):
    parser = make_parser(tokenizer)
    before, inside = PROMPT, f"{PROMPT}{OPENING}Add."
    for text, ended in ((before, False), (inside, False), (f"{inside}{END}4", True)):
        assert parser.is_reasoning_end(tokenizer.encode(text)) is ended
{% if history %}
    earlier = f"{PROMPT}{START}Add.{END}It is 4.{PROMPT}"
    assert parser.is_reasoning_end(tokenizer.encode(earlier)) is False
{% endif %}


def test_is_reasoning_end_streaming(tokenizer):
    parser = make_parser(tokenizer).reasoning_parser
    output = f"{OPENING}Add.{END}It is 4."
    ids = tokenizer.encode(output)
    ended = len(tokenizer.encode(f"{OPENING}Add.{END}"))
    steps = range(1, len(ids) + 1)
    first = [parser.is_reasoning_end_streaming(ids[:i], ids[i - 1 : i]) for i in steps]
    assert first.index(True) + 1 == ended
    assert parser.extract_content_ids(ids) == ids[ended:]


def test_count_reasoning_tokens(tokenizer):
    parser = make_parser(tokenizer)
    ids = tokenizer.encode(f"{OPENING}Add.{END}It is 4.")
    assert parser.count_reasoning_tokens(ids) == len(tokenizer.encode("Add."))


def test_delimiter_strings(tokenizer):
    parser = ReasoningParserManager.get_reasoning_parser(NAME)(tokenizer)
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == (START, END)
{% if off %}


def test_thinking_off(tokenizer):
    assert make_parser(tokenizer, OFF).is_reasoning_end(tokenizer.encode(PROMPT_OFF))
    assert full(tokenizer, PROMPT_OFF, "It is 4.", OFF) == (None, "It is 4.")
    for size in (1, 3):
        got = stream(tokenizer, PROMPT_OFF, "It is 4.", size, kwargs=OFF)
        assert got == (None, "It is 4.")
{% endif %}
{% if special %}


def test_markers_are_kept_when_decoded(tokenizer):
    parser = make_parser(tokenizer).reasoning_parser
    assert parser.adjust_request(request()).skip_special_tokens is False
{% endif %}
'''
