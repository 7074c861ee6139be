"""Writes what the battery found as tests: one file that needs vLLM and pytest, and nothing of reasonctl."""

from __future__ import annotations

import inspect
import json
import os
import pprint
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..parsers import Vocabulary
from ..parsers.bridge.far import vocabularies
from ..parsers.differential.vocabulary import SpecVocabulary
from .battery import Battery
from .cases import NamedCase, Outcome
from .generated import Smallest
from .pytest_driver import DRIVER
from .question import Question
from .subject import Subject

_WIDTH = 110
_EMPTY = "assert not empty(deltas, messages(deltas, prompt, kwargs))"


def test_file(battery: Battery, subject: Subject, folder: Path) -> str:
    """The whole file: how the parser is driven, the tokenizer, and a test for each case and each smallest output.

    Args:
        battery: what came of it.
        subject: the parser.
        folder: where the file will be, which the plugin and the model are named from.
    """
    vocabulary = battery.setting.vocabulary
    tests = list(_tests(battery.outcomes, vocabulary))
    tests += [_generated(one, vocabulary) for one in battery.generated.smallest.values()]
    return "\n\n\n".join([_head(battery, subject, folder), _tokenizer(battery, folder), DRIVER.strip(), *tests]) + "\n"


def file_name(subject: Subject) -> str:
    """`test_NAME_reasoning_parser.py`."""
    return f"test_{_identifier(subject.name)}_reasoning_parser.py"


def snippet(battery: Battery, one: Outcome | Smallest) -> str:
    """A failure as one test, to paste into the file that `--emit-tests` writes."""
    vocabulary = battery.setting.vocabulary
    return _named(one, "", vocabulary) if isinstance(one, Outcome) else _generated(one, vocabulary)


def _head(battery: Battery, subject: Subject, folder: Path) -> str:
    plugin, seen = "None", f"vLLM {battery.version}"
    if subject.source is not None:
        plugin = f"Path(__file__).parent / {os.path.relpath(subject.source.path, folder)!r}"
    return f'''"""Tests of the reasoning parser {subject.name}, written by `reasonctl check-parser` ({seen}).

vLLM (0.23 or newer) and pytest are all they need: python -m pytest {file_name(subject)}
"""

import functools
import inspect
from pathlib import Path

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.reasoning import ReasoningParserManager

NAME = {subject.name!r}
PLUGIN = {plugin}
START, END = {battery.setting.thinking.start!r}, {battery.setting.end_marker!r}'''


def _tokenizer(battery: Battery, folder: Path) -> str:
    vocabulary = battery.setting.vocabulary
    if isinstance(vocabulary, SpecVocabulary):
        spec = pprint.pformat(vocabulary.spec.to_json(), width=_WIDTH, compact=True, sort_dicts=False)
        made = inspect.getsource(vocabularies.from_spec)
        spelled = inspect.getsource(vocabularies._byte_spellings)
        body = "def tokenizer():\n    return from_spec(SPEC)"
        made = made.replace("from_spec(spec: dict[str, Any]) -> Any", "from_spec(spec)")
        return f"SPEC = {spec}\n\n\n{made}\n\n{spelled}\n\n@functools.cache\n{body}"
    path = battery.setting.model.path if battery.setting.model is not None else None
    where = os.path.relpath(path, folder) if path is not None else ""
    return f'''MODEL = Path(__file__).parent / {where!r}
"""The model's folder: its tokenizer is all that is read."""


@functools.cache
def tokenizer():
    from vllm.tokenizers import get_tokenizer

    return get_tokenizer(str(MODEL), tokenizer_mode="auto", trust_remote_code=False)'''


def _tests(outcomes: Iterable[Outcome], vocabulary: Vocabulary) -> Iterator[str]:
    """One test a case; a case that comes with several prompts is numbered."""
    taken: dict[str, int] = {}
    for one in outcomes:
        if one.lost is not None or not one.case.weighs:
            continue
        name = _identifier(_case_name(one.case))
        taken[name] = taken.get(name, 0) + 1
        yield _named(one, f"_{taken[name]}" if taken[name] > 1 else "", vocabulary)


def _case_name(case: NamedCase) -> str:
    return f"{case.name} {case.mode}" if case.mode in ("full", "stream") else case.name


def _named(one: Outcome, number: str, vocabulary: Vocabulary) -> str:
    case = one.case
    lines = _given(case.question, vocabulary)
    expected = case.expected
    if case.mode in ("full", "stream"):
        lines += _split(case)
    elif case.name == "is-reasoning-end-before":
        lines.append(f"assert reasoning_parser(kwargs).is_reasoning_end(prompt) is {expected}")
    elif case.aspect == "prompt":
        lines += [
            _ids(case.question),
            f"assert reasoning_parser(kwargs).is_reasoning_end([*prompt, *ids]) is {expected}",
        ]
    elif case.aspect == "content-ids":
        lines += [_ids(case.question), f"assert reasoning_parser(kwargs).extract_content_ids(ids) == {expected}"]
    elif case.aspect == "grammar-end":
        lines += [_ids(case.question), f"assert grammar_starts(ids, prompt, kwargs) == {expected}"]
    elif case.aspect == "token-count":
        lines += [_ids(case.question), f"text = {case.question.text!r}", *_counted(*expected)]
    else:
        lines.append("request = prepared(kwargs, prompt)")
        lines.append("again = reasoning_parser(kwargs).adjust_request(request=request)")
        lines.append("assert again is not None and again.skip_special_tokens == request.skip_special_tokens")
    return _function(f"{_case_name(case)}{number}", case.why, lines)


def _split(case: NamedCase) -> list[str]:
    expected = f"{case.probe.reasoning!r}, {case.probe.content!r}"
    if case.aspect == "empty-delta":
        return [_deltas(case.question, case.chunking), _EMPTY]
    judge = "same_without_markers" if case.name == "nested" else "same"
    if case.chunking is None:
        question = case.question
        return [f"text = {question.text!r}", _ids(question), f"{judge}(full(text, ids, prompt, kwargs), {expected})"]
    return [_deltas(case.question, case.chunking), f"{judge}(streamed(deltas, prompt, kwargs), {expected})"]


def _counted(least: int, most: int) -> list[str]:
    return [
        "parser = make(kwargs)",
        "if hasattr(parser, 'set_prompt_token_ids'):",
        "    parser.set_prompt_token_ids(list(prompt))",
        "parser.parse(text, prepared(kwargs, prompt), enable_auto_tools=False, model_output_token_ids=ids)",
        f"assert {least} <= parser.count_reasoning_tokens(ids) <= {most}",
    ]


def _generated(one: Smallest, vocabulary: Vocabulary) -> str:
    question, probe, label = one.example.question, one.example.probe, one.found.chunking
    lines = _given(question, vocabulary)
    lines += [f"text = {question.text!r}", _ids(question)]
    streams = [stream for stream in question.streams if stream.label == label]
    if streams:
        lines.append(_deltas(question, label))
    split = "streamed(deltas, prompt, kwargs)" if streams else "full(text, ids, prompt, kwargs)"
    places = one.example.places
    match one.invariant:
        case "stream-equals-full":
            lines.append("same(streamed(deltas, prompt, kwargs), *full(text, ids, prompt, kwargs))")
        case "chunk-sizes-agree" | "hold-back-agrees":
            lines.append(_deltas(question, "token", "tokens"))
            lines.append("same(streamed(deltas, prompt, kwargs), *streamed(tokens, prompt, kwargs))")
        case "split-is-right":
            lines.append(f"same({split}, {probe.reasoning!r}, {probe.content!r})")
        case "no-marker-leaks":
            lines.append(f"no_marker({split})")
        case "no-text-lost":
            lines.append(f"all_there({split}, text)")
        case "no-empty-delta":
            lines.append(_EMPTY)
        case "instances-do-not-touch":
            other = question.other or question
            lines.append(_deltas(question, "token", "one"))
            lines.append(_deltas(other, other.streams[0].label, "other"))
            lines.append("same(in_turns(one, other, prompt, kwargs), *streamed(one, prompt, kwargs))")
        case "token-counts-add-up" if places is not None:
            least = max(0, places.begin - places.head - 2)
            lines += _counted(least, places.begin + max(2, places.head))
        case "content-ids-agree" if places is not None:
            wanted = list(question.ids[places.behind :])
            lines.append(f"assert reasoning_parser(kwargs).extract_content_ids(ids) == {wanted}")
        case "grammar-starts-in-time" if places is not None:
            lines.append(f"assert grammar_starts(ids, prompt, kwargs) == {places.behind}")
        case "ends-agree":
            lines.append("parser = reasoning_parser(kwargs)")
            lines.append("ended = parser.is_reasoning_end(prompt) or grammar_starts(ids, prompt, kwargs) is not None")
            lines.append("assert ended == parser.is_reasoning_end([*prompt, *ids])")
        case _:
            lines.append("full(text, ids, prompt, kwargs)")
            lines += ["streamed(deltas, prompt, kwargs)"] if streams else []
    return _function(f"generated {one.invariant}", f"{one.found.wrong}: the smallest output found", lines)


def _given(question: Question, vocabulary: Vocabulary) -> list[str]:
    """The prompt, as a text where that gives the same ids, and the kwargs."""
    ids = list(question.cell.prompt_ids)
    text = vocabulary.decode(ids)
    prompt = f"encode({text!r})" if vocabulary.encode(text) == ids else _list(ids)
    return [f"prompt = {prompt}", f"kwargs = {dict(question.cell.kwargs)!r}"]


def _ids(question: Question) -> str:
    return f"ids = {_list(question.ids)}"


def _deltas(question: Question, label: str | None, name: str = "deltas") -> str:
    stream = next(stream for stream in question.streams if stream.label == label)
    pairs = [(text, list(ids)) for text, ids in stream.deltas]
    return f"{name} = {pprint.pformat(pairs, width=_WIDTH, compact=True)}"


def _list(ids: Iterable[int]) -> str:
    return pprint.pformat(list(ids), width=_WIDTH, compact=True)


def _function(name: str, why: str, lines: Iterable[str]) -> str:
    body = "\n".join(textwrap.indent(line, "    ") for line in lines)
    return f"def test_{_identifier(name)}():\n    {_docstring(why)}\n{body}"


def _docstring(text: str) -> str:
    plain = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    return json.dumps(plain, ensure_ascii=False) if plain.endswith('"') else f'"""{plain[:1].upper()}{plain[1:]}."""'


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower() or "parser"
