"""PLG: what a plugin's source shows before anything of it runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from .. import versions
from ..kit.bases import BASES, NO_PARSERS, ROOT, Base, base_of
from ..kit.source import Marker, Method, ParserClass, Place, Registration
from .finding import Finding
from .plg import (
    BaseNeedsSingleToken,
    ClassLevelState,
    MethodMissing,
    NoDelimiterStrings,
    NotImportable,
    NotRegistered,
    PromptStateWrong,
)
from .plg_facts import PluginLook

_DELTA = "take DeltaMessage from vllm.entrypoints.generate.base.protocol"
_GONE: dict[str, tuple[tuple[int, int], str]] = {
    "vllm.entrypoints.openai.protocol": ((0, 30), _DELTA),
    "vllm.entrypoints.openai.engine.protocol": ((0, 30), _DELTA),
    "vllm.transformers_utils.tokenizer": ((0, 32), "take TokenizerLike from vllm.tokenizers"),
}
"""Modules that plugins for older servers import: the version from which they are seen to be missing, and the mend."""
_EXPORTED = frozenset({ROOT, "ReasoningParserManager"})
"""What `vllm.reasoning` itself offers in 0.32.0 and 0.33.0."""

_ASKED = ("is_reasoning_end", "extract_content_ids", "extract_reasoning", "extract_reasoning_streaming")
"""What the server calls and ReasoningParser leaves empty (vLLM 0.33.0 vllm/reasoning/abs_reasoning_parsers.py)."""
_CALLED = {
    "is_reasoning_end": 1,
    "is_reasoning_end_streaming": 2,
    "extract_content_ids": 1,
    "extract_reasoning": 2,
    "extract_reasoning_streaming": 6,
    "count_reasoning_tokens": 1,
    "adjust_request": 1,
    "adjust_initial_state_from_prompt": 1,
    "set_prompt_token_ids": 1,
    "prepare_structured_tag": 2,
    "has_engine_confirmed_reasoning_end": 0,
    "finish_streaming": 0,
}
"""With how many arguments, each given by its place (vLLM 0.33.0 vllm/parser/abstract_parser.py)."""
_OLD_NAMES = {"extract_reasoning_content", "extract_reasoning_content_streaming"}
_BUILT_WITH = frozenset({"chat_template_kwargs", "model_config"})


@dataclass(frozen=True)
class _Judged:
    """A parser class of the file with what it inherits.

    `named` are the names it is registered under, `bases` vLLM's own classes above it, `whole` false where a class from
    elsewhere is above it, so that what it lacks cannot be told.
    """

    cls: ParserClass
    named: tuple[str, ...]
    own: tuple[ParserClass, ...]
    bases: tuple[Base, ...]
    whole: bool

    @property
    def subject(self) -> dict[str, str]:
        return {"parser": self.named[0]} if self.named else {}

    def method(self, name: str) -> Method | None:
        return next((found for one in self.own if (found := one.method(name)) is not None), None)

    def has(self, name: str) -> bool:
        return any(one.has(name) for one in self.own)

    def marker(self, name: str) -> Marker | None:
        return next((found for one in self.own if (found := one.marker(name)) is not None), None)


def static_findings(look: PluginLook) -> Iterator[Finding]:
    """The faults that stand in the source, in the order of their places."""
    found = [*_imports(look), *_registered(look), *_shared(look)]
    for judged in _judged(look):
        found += [*_methods(look, judged), *_single_tokens(look, judged), *_strings(look, judged)]
        found += [*_prompt_state(look, judged), *_switch(look, judged)]
    return iter(sorted(found, key=lambda one: (one.location.line, one.location.column) if one.location else (0, 0)))


def _imports(look: PluginLook) -> Iterator[Finding]:
    for one in look.source.imports:
        since, mend = _GONE.get(one.module, ((0, 0), ""))
        if mend and look.target.version[:2] >= since:
            yield NotImportable.finding(
                f"vLLM {look.target.version_text} has no module {one.module}", hint=mend, location=look.at(one.place)
            )
        moved = one.module == "vllm.reasoning" and one.name is not None and one.name[:1].isupper()
        if moved and one.name not in _EXPORTED and look.target.version >= (0, 32, 0):
            yield NotImportable.finding(
                f"vllm.reasoning has no {one.name}",
                hint=f"import {one.name} from the module of vllm.reasoning that defines it",
                location=look.at(one.place),
            )


def _registered(look: PluginLook) -> Iterator[Finding]:
    given = look.source.registrations
    reached = [one for one in given if one.not_run is None and one.wrong_registry is None]
    for one in reached:
        yield from _class_of(look, one)
    names = [one.name for one in reached]
    if None in names or look.name in names or (look.name is None and names):
        return
    wanted = repr(look.name) if look.name is not None else None
    file = look.source.path.name
    lost = [one for one in given if one not in reached and (look.name is None or one.name in (look.name, None))]
    if lost:
        first = lost[0]
        why = first.not_run or f"it goes to {first.wrong_registry}, which is not the registry of reasoning parsers"
        message = f"{file} does not register {wanted or 'its parser'}: {why}"
        place = first.place
    else:
        known = ", ".join(map(repr, dict.fromkeys(names)))
        message = f"{file} registers no parser{f' {wanted}' if wanted else ''}{f'; it has {known}' if known else ''}"
        place = reached[0].place if reached else _first_class(look)
    near = difflib.get_close_matches(look.name or "", [name for name in names if name], 1)
    hint = f"serve it with --reasoning-parser {near[0]}, or rename it" if near else NotRegistered.instead
    subject = {"parser": look.name} if look.name is not None else {}
    yield NotRegistered.finding(message, hint=hint, subject=subject, location=look.at(place))


def _class_of(look: PluginLook, one: Registration) -> Iterator[Finding]:
    """A registration of a class that is not there, or that is no reasoning parser."""
    if look.name not in (None, one.name):
        return
    subject = {"parser": one.name} if one.name is not None else {}
    here = one.module is None or _last(one.module) == look.source.path.stem
    cls = look.source.class_named(one.class_name)
    if here and one.how == "lazy" and one.class_name is not None and cls is None:
        yield NotRegistered.finding(
            f"{one.name!r} is registered as {one.class_name}, and the file has no such class",
            hint="name the class as the file does",
            subject=subject,
            location=look.at(one.place),
        )
    if cls is not None and here:
        _, outside = look.source.lineage(cls)
        if all(_last(base) in NO_PARSERS for base in outside):
            yield NotRegistered.finding(
                f"{cls.name} is registered as {one.name!r} and is no ReasoningParser: vLLM refuses it",
                hint="inherit from vllm.reasoning.ReasoningParser",
                subject=subject,
                location=look.at(cls.place),
            )


def _shared(look: PluginLook) -> Iterator[Finding]:
    for one in look.source.shared:
        owner = f"{one.holder}.{one.name}" if one.holder is not None else f"the module's {one.name}"
        if one.holder is not None and one.holder.endswith("()"):
            owner = f"the default of {one.name}"
        cache = "; a cache that only ever adds what is the same for every request may stay" if one.by_key else ""
        yield ClassLevelState.finding(
            f"{one.where} changes {owner}, which every request shares",
            hint=f"set it in __init__ on self{cache}",
            confidence="low" if one.by_key else "high",
            location=look.at(one.changed),
            evidence={"name": one.name, "defined": {"line": one.defined.line, "column": one.defined.column}},
        )


def _judged(look: PluginLook) -> Iterator[_Judged]:
    """The classes that are meant: those registered under the name asked for, else parsers that no other builds on."""
    names: dict[str, list[str]] = {}
    for one in look.source.registrations:
        if one.class_name is not None:
            names.setdefault(one.class_name, []).extend([one.name] if one.name is not None else [])
    wanted = {cls for cls, given in names.items() if look.name in given} or set(names)
    built_on = {base for cls in look.source.classes for base in cls.bases}
    for cls in look.source.classes:
        own, outside = look.source.lineage(cls)
        bases = [base_of(dotted) for dotted in outside]
        meant = cls.name in wanted if wanted else cls.name not in built_on and any(map(_is_parser, outside))
        if meant and any(base is not None for base in bases):
            known = [b is not None or _last(d) in NO_PARSERS for b, d in zip(bases, outside, strict=True)]
            yield _Judged(
                cls, tuple(names.get(cls.name, ())), own, tuple(b for b in bases if b is not None), whole=all(known)
            )


def _is_parser(dotted: str) -> bool:
    name = _last(dotted)
    return base_of(dotted) is not None and (name in BASES or "Reasoning" in name)


def _methods(look: PluginLook, judged: _Judged) -> Iterator[Finding]:
    missing = []
    if judged.whole and not any(base.gives for base in judged.bases):
        missing = [name for name in _ASKED if not judged.has(name)]
    if judged.whole and any(base.single_tokens and base.start is None for base in judged.bases):
        missing += [name for name in ("start_token", "end_token") if not judged.has(name)]
    if missing:
        old = [one.name for own in judged.own for one in own.methods if one.name in _OLD_NAMES]
        renamed = f"; {' and '.join(old)} {'are old names' if len(old) > 1 else 'is the old name'}"
        yield MethodMissing.finding(
            f"{judged.cls.name} has no {_listed(missing)}{renamed if old else ''}",
            hint=MethodMissing.instead,
            subject=judged.subject,
            location=look.at(judged.cls.place),
            evidence={"missing": missing},
        )
    for name in dict.fromkeys([*_ASKED, *_CALLED, "__init__"]):
        method = judged.method(name)
        wrong = _wrong_call(method) if method is not None else None
        if method is not None and wrong is not None:
            yield MethodMissing.finding(
                f"{judged.cls.name}.{name} {wrong}",
                hint=_form(name),
                subject=judged.subject,
                location=look.at(method.place),
                evidence={"method": name},
            )


def _wrong_call(method: Method) -> str | None:
    """What is wrong with a method that the server calls, None where nothing is."""
    if method.is_property:
        return "is a property, and the server calls it"
    if method.is_async:
        return "is async or a generator: the server takes what the call gives"
    if method.name == "__init__":
        lacking = sorted(_BUILT_WITH - method.keywords) if not method.star_kwargs else []
        if lacking:
            return f"takes no {_listed(lacking)}, with which every request makes it"
        number = 1
    else:
        number = _CALLED[method.name]
    most = len(method.positional)
    if method.keyword_only or method.required > number or (most < number and not method.star_args):
        takes = f"{method.required} to {most}" if method.required < most else str(most)
        takes = f"at least {method.required}" if method.star_args else takes
        more = f" and needs {_listed(list(method.keyword_only))} by name" if method.keyword_only else ""
        return f"takes {takes} arguments{more}, and the server gives {number}"
    if method.name in _ASKED[1:] and not method.answers:
        return "gives no answer: it returns None"
    return None


def _form(name: str) -> str:
    forms = {
        "__init__": "def __init__(self, tokenizer, *args, **kwargs), and hand all of it to super().__init__",
        "extract_reasoning": "def extract_reasoning(self, model_output, request), which returns (reasoning, content)",
        "extract_reasoning_streaming": """def extract_reasoning_streaming(self, previous_text, current_text, delta_text,
            previous_token_ids, current_token_ids, delta_token_ids); no request""",
    }
    return " ".join(forms.get(name, f"take the parameters of ReasoningParser.{name}").split())


def _single_tokens(look: PluginLook, judged: _Judged) -> Iterator[Finding]:
    base = next((one for one in judged.bases if one.single_tokens), None)
    if base is None or look.vocabulary is None:
        return
    for name, inherited in (("start_token", base.start), ("end_token", base.end)):
        marker = judged.marker(name)
        text = marker.text if marker is not None else inherited
        if text is None or text in look.vocabulary.vocab:
            continue
        pieces = [look.vocabulary.decode([token]) for token in look.vocabulary.encode(text)]
        number = f"{len(pieces)} tokens here ({', '.join(map(repr, pieces))})" if pieces else "no token here"
        yield BaseNeedsSingleToken.finding(
            f"{text!r} is {number}, and the base class of {judged.cls.name} asks for one",
            hint=BaseNeedsSingleToken.instead,
            subject=judged.subject,
            location=look.at(marker.place if marker is not None else judged.cls.place),
            evidence={"marker": text, "tokens": pieces},
        )


def _strings(look: PluginLook, judged: _Judged) -> Iterator[Finding]:
    if not versions.fact("budget-strings-from-parser", look.target.version) or not judged.whole:
        return
    given = any(base.strings for base in judged.bases)
    missing = []
    for name in ("reasoning_start_str", "reasoning_end_str"):
        marker = judged.marker(name)
        if (not marker.given) if marker is not None else not (given or judged.has(name)):
            missing.append((name, marker))
    if missing:
        place = next((marker.place for _, marker in missing if marker is not None), judged.cls.place)
        yield NoDelimiterStrings.finding(
            f"{judged.cls.name} gives no {_listed([name for name, _ in missing])}: requests with a thinking budget "
            "are refused",
            hint=NoDelimiterStrings.instead,
            subject=judged.subject,
            location=look.at(place),
        )


def _prompt_state(look: PluginLook, judged: _Judged) -> Iterator[Finding]:
    holder = next((one for one in judged.own if one.end_answer is not None), None)
    if holder is None or holder.end_place is None:
        return
    said = {
        "none": "returns None: the server is told nothing of the prompt",
        "always-true": "is always true: streamed, every thought is filed as content",
        "own-state": "does not look at the ids it is given: before the first token it knows nothing of the prompt",
    }
    if look.switches:
        said["always-false"] = "is always false, although the template can switch thinking off"
    if holder.end_answer in said:
        yield PromptStateWrong.finding(
            f"{judged.cls.name}.is_reasoning_end {said[holder.end_answer]}",
            hint=PromptStateWrong.instead,
            confidence="medium" if holder.end_answer == "own-state" else "high",
            subject=judged.subject,
            location=look.at(holder.end_place),
        )


def _switch(look: PluginLook, judged: _Judged) -> Iterator[Finding]:
    names = [name for name, _, _ in look.switches or ()]
    if not names or not judged.whole or any(base.reads_kwargs for base in judged.bases):
        return
    reads = any(one.reads_kwargs for one in judged.own)
    by_name = "chat_template_kwargs" in look.source.text
    if reads and (not by_name or any(f"{quote}{name}{quote}" in look.source.text for name in names for quote in "'\"")):
        return
    what = f"never reads {_listed(names, 'or')}" if reads else "never reads chat_template_kwargs"
    yield PromptStateWrong.finding(
        f"the template switches thinking with {_listed(names)}, and {judged.cls.name} {what}",
        hint=f'read {names[0]} from kwargs.get("chat_template_kwargs") in __init__, with the template\'s own default',
        confidence="medium" if reads else "high",
        subject=judged.subject,
        location=look.at(judged.cls.place),
        evidence={"switches": names},
    )


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _first_class(look: PluginLook) -> Place:
    return look.source.classes[0].place if look.source.classes else Place()


def _listed(names: list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
