"""What stands around a trace when it is replayed: its tokenizer, its prompt, and the kwargs of its parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Literal

from ..parsers import Vocabulary
from ..parsers.assumed import AssumedVocabulary
from ..parsers.feed import Deltas, Piece
from ..parsers.run import Output
from ..prompts.kwargs import effective_kwargs
from .rebuild import markers_of, rebuild
from .request import Prompts, messages_of
from .tokens import TraceVocabulary, pieces_of
from .trace import Segment, Trace, TraceDeltas

if TYPE_CHECKING:
    from ..prompts.asked import Served
    from ..prompts.model import Model
    from ..prompts.render import Rendered

Tokenizer = Literal["model", "trace", "assumed"]

PLAIN = ({"role": "user", "content": "What is 2 + 2?"},)
"""What a capture is taken to answer where a serve command is known and the request is not."""
_FEW = 64
_THINKS = re.compile(r"think|reason|effort|<\|channel\|>", re.IGNORECASE)


@dataclass(frozen=True)
class Setting:
    """What the command line says about all traces; plain data, so that it can be handed to another process.

    Args:
        model: a `--model` value, None without one.
        chat_template: a file whose template replaces the model's own; `template_text` is the text of one.
        kwargs: `--chat-template-kwargs`, over each request's own.
        request: the body that a capture which holds none was sent with.
        serve_parser: the serve command's `--reasoning-parser`.
        default_kwargs, effort_map: the serve command's; `served` is what else of it prompts depend on.
        serve_known: a serve command was given, so that a bare capture is taken to answer a plain request.
    """

    model: str | None = None
    chat_template: str | None = None
    template_text: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    serve_parser: str | None = None
    default_kwargs: Mapping[str, Any] | None = None
    effort_map: Mapping[str, str] | None = None
    serve_known: bool = False
    served: Served | None = None

    @property
    def with_template(self) -> bool:
        """A template was given besides the model's own."""
        return self.chat_template is not None or self.template_text is not None


@dataclass(frozen=True)
class Prepared:
    """A trace, ready to be put to parsers.

    Attributes:
        trace: with its text rebuilt where it had lost its markers.
        kwargs: effective; what a parser is built with. `request_kwargs` is what the client itself sent.
        tokenizer: where the ids come from.
        prompt: the prompt's text; None where it is not known.
        prompt_from: `trace`, `template` or `plain` (a plain request is assumed); None where there is none.
        made_of: what the output is made of: the arguments of `Output`.
        notes: what could not be used, and why; said in coverage.
    """

    trace: Trace
    vocabulary: Vocabulary
    kwargs: Mapping[str, Any]
    request_kwargs: Mapping[str, Any]
    tokenizer: Tokenizer
    prompt: str | None
    prompt_from: str | None
    lossy: bool
    made_of: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    @cached_property
    def output(self) -> Output:
        """The output as a server would feed it to a parser."""
        return Output(self.vocabulary, **self.made_of)

    def changed(self, *, prompt: str | None = None, **made_of: Any) -> Prepared:
        """The same run behind another prompt, or made of something else."""
        if prompt is not None:
            made_of["prompt_ids"] = self.vocabulary.encode(prompt)
        return replace(self, prompt=prompt or self.prompt, made_of={**self.made_of, **made_of})


class Context:
    """Prepares traces. Loads the model once; a context manager, since rendering keeps a process."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.model: Model | None = None
        self._assumed = AssumedVocabulary()
        self._prompts: Prompts | None = None
        if setting.model is not None or setting.with_template:
            self._load()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        if self._prompts is not None:
            self._prompts.close()

    def made_by(self, engine: object) -> None:
        """From now on a running vLLM makes the prompts, if the engine is one."""
        from ..prompts.asked import Served, vllm_prompts

        if self.model is None or self._prompts is None:
            return
        served = replace(
            self.setting.served or Served(),
            default_kwargs=self.setting.default_kwargs,
            effort_map=self.setting.effort_map,
        )
        served.tell(self.model)
        asked = vllm_prompts(engine, self.model, served)
        if asked is not None:
            self._prompts.close()
            self._prompts = Prompts(self.model, asked)

    def prepare(self, trace: Trace) -> Prepared:
        """The trace with everything the server would have had."""
        notes: list[str] = []
        if self.setting.request and trace.bare:
            trace = replace(trace, request={**self.setting.request, **trace.request})
        own, kwargs = self.kwargs_of(trace.request)
        prompt, prompt_from, cut = self._prompt(trace, kwargs, notes)
        tokenizer, vocabulary, trace, made = self._tokens(trace, prompt, notes)
        prompt_ids = _prompt_ids(trace, prompt, prompt_from, tokenizer, vocabulary, notes)
        if cut is not None and tokenizer == "model":
            prompt_ids = list(cut)
        if prompt is None and prompt_ids and tokenizer == "model":
            prompt = vocabulary.decode(prompt_ids)
        skip = trace.request.get("skip_special_tokens")
        if not isinstance(skip, bool):
            skip = self.model.generation_config.get("skip_special_tokens") if self.model is not None else None
        made_of = {
            "ids": None if made is not None else trace.output_ids,
            "text": None if trace.output_ids is not None and made is None else trace.output_text,
            "deltas": _raw_deltas(trace, made),
            "made": made,
            "prompt_ids": prompt_ids,
            "stop_ids": self._stop_ids(trace) if tokenizer == "model" else frozenset(),
            "stop": _texts(trace.request.get("stop")),
            "skip_special_tokens": skip if isinstance(skip, bool) else None,
        }
        return Prepared(
            trace, vocabulary, kwargs, own, tokenizer, prompt, prompt_from, trace.lossy, made_of, tuple(notes)
        )

    def kwargs_of(
        self, request: Mapping[str, Any], *, server: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """(the kwargs the client sent, the effective ones) of a request.

        Args:
            request: its body.
            server: further `--default-chat-template-kwargs`.
        """
        effort = request.get("reasoning_effort")
        own = {**_mapping(request.get("chat_template_kwargs")), **self.setting.kwargs}
        kwargs = effective_kwargs(
            request_kwargs=own,
            reasoning_effort=effort if isinstance(effort, str) else None,
            default_kwargs={**(self.setting.default_kwargs or {}), **(server or {})},
            effort_map=self.setting.effort_map,
        )
        return own, kwargs

    def rendered(
        self, request: Mapping[str, Any], kwargs: Mapping[str, Any], messages: Sequence[Mapping[str, Any]] | None = None
    ) -> str | None:
        """The prompt the template makes of a request; None without a template, or where it raises.

        Args:
            request: its body; a plain one where it has no messages.
            kwargs: the effective ones.
            messages: in place of the request's own, as `messages_of` gives them.
        """
        if self._prompts is None:
            return None
        return self._made(list(messages) if messages is not None else messages_of(request), request, kwargs).text

    @property
    def thoughtless(self) -> bool:
        """There is a template, and it writes, strips and reads nothing of thinking."""
        return self.model is not None and self.model.template is not None and not _THINKS.search(self.model.prompt_text)

    def template_place(self, marker: str | None) -> tuple[str, int] | None:
        """The template's file, and the line behind the generation prompt's condition that writes this marker last."""
        template = self.model.template if self.model is not None else None
        if self.model is None or template is None:
            return None
        path = f"{self.model.source}/{template.origin}"
        if template.path is not None and self.model.kind not in ("fixture", "hub"):
            path = str(template.path)
        if template.origin.endswith(".json"):
            return path, 1
        begin = max(template.text.rfind("add_generation_prompt"), 0)
        at = template.text.rfind(marker, begin) if marker else -1
        return path, template.text.count("\n", 0, max(at, begin)) + 1

    def _load(self) -> None:
        from pathlib import Path

        from ..prompts.folder import read_lone_file
        from ..prompts.model import LONE_TEMPLATE_TOKENS, Model, Template, load_model

        setting = self.setting
        path = Path(setting.chat_template) if setting.chat_template is not None else None
        if setting.model is not None:
            self.model = load_model(setting.model, chat_template=path)
        elif path is not None:
            self.model = read_lone_file(path, source=str(path))
        else:
            self.model = Model("--chat-template", "template", None, special_tokens=LONE_TEMPLATE_TOKENS)
        if setting.template_text is not None:
            inline = Template(setting.template_text, origin="--chat-template")
            self.model = replace(self.model, template=inline, templates=(inline,))
        self._prompts = Prompts(self.model)

    def _tokens(
        self, trace: Trace, prompt: str | None, notes: list[str]
    ) -> tuple[Tokenizer, Vocabulary, Trace, list[Piece] | None]:
        """Where this trace's ids come from, and the trace with only what fits that."""
        tokenizer = self.model.tokenizer if self.model is not None else None
        if self.model is not None and self.setting.model is not None and (tokenizer is None or tokenizer.toy):
            notes.append(f"{self.setting.model} has no usable tokenizer: {self.model.tokenizer_problem}")
        if tokenizer is not None and not tokenizer.toy:
            if trace.output_ids is not None and _fits(tokenizer, trace):
                return "model", tokenizer, replace(trace, lossy=False) if trace.lossy else trace, None
            if trace.output_ids is not None:
                notes.append("the recorded token ids are not of this model's tokenizer; its text is used")
                strange = max(trace.output_ids, default=-1)
                trace = _without_ids(trace)
                if trace.output_text is None and not trace.segments:
                    trace = replace(trace, segments=_recorded_segments(trace), lossy=True)
                if trace.output_text is None and not trace.segments:
                    raise NoTextError(
                        f"this trace holds token ids alone, and not this model's: id {strange} is beyond"
                        f" the {tokenizer.size} tokens of its tokenizer; give the --model it was recorded with"
                    )
            return "model", tokenizer, self._with_text(trace, prompt), None
        found = pieces_of(trace)
        if found is not None:
            vocabulary = TraceVocabulary(found, trace.prompt_ids or ())
            text = "".join(piece.text for piece in vocabulary.pieces)
            return "trace", vocabulary, replace(trace, output_text=text, lossy=False), vocabulary.pieces
        if trace.output_text is None and not trace.segments and not _recorded_segments(trace):
            raise NoTextError("this trace holds token ids alone: --model is needed to read them")
        if trace.output_ids is not None:
            notes.append("the recorded token ids need --model to be read")
        if trace.output_text is None and not trace.segments:
            trace = replace(trace, segments=_recorded_segments(trace), lossy=True)
        self._assumed.forget()
        return "assumed", self._assumed, self._with_text(_without_ids(trace), prompt), None

    def _with_text(self, trace: Trace, prompt: str | None) -> Trace:
        if not trace.lossy:
            return trace
        recorded = trace.recorded.parser if trace.recorded is not None else None
        markers = markers_of(recorded or self.setting.serve_parser, trace.model)
        return rebuild(trace, markers, opened=prompt is not None and markers.opened_by(prompt))

    def _prompt(
        self, trace: Trace, kwargs: Mapping[str, Any], notes: list[str]
    ) -> tuple[str | None, str | None, Sequence[int] | None]:
        """The prompt, where it comes from, and its ids where whoever made it cut it into tokens too."""
        if trace.prompt_text is not None:
            return trace.prompt_text, "trace", None
        if trace.prompt_ids is not None:
            return None, "trace", None
        if self._prompts is None:
            return None, None, None
        known = messages_of(trace.request)
        asked = bool(self.setting.kwargs) or self.setting.with_template or self.setting.serve_known
        if not known and not asked:
            return None, None, None
        made = self._made(known, trace.request, kwargs)
        if made.error is not None:
            notes.append(f"the prompt cannot be rendered: {made.error.message}")
        if self._prompts.problem is not None and made.text is not None:
            notes.append(f"{self._prompts.problem}; the prompt is our own")
        if made.differs is not None:
            notes.append(f"the prompt that {self._prompts.by} makes differs from ours: {made.differs.said}")
        return made.text, None if made.text is None else "template" if known else "plain", made.token_ids

    def _made(
        self, messages: Sequence[Mapping[str, Any]], request: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> Rendered:
        """What the template makes of messages, or of a plain question without any."""
        if self._prompts is None:
            raise RuntimeError("there is no template to render with")
        own = self.kwargs_of(request)[0]
        if own:
            request = {**request, "chat_template_kwargs": own}
        return self._prompts.rendered([dict(message) for message in messages or PLAIN], request, kwargs)

    def _stop_ids(self, trace: Trace) -> frozenset[int]:
        if trace.finish_reason not in (None, "stop"):
            return frozenset()
        extra = trace.request.get("stop_token_ids")
        own = {one for one in extra if isinstance(one, int)} if isinstance(extra, list) else set()
        if trace.recorded is not None and isinstance(trace.recorded.stop_reason, int):
            own.add(trace.recorded.stop_reason)
        return (self.model.eos_ids if self.model is not None else frozenset()) | own


class NoTextError(ValueError):
    """A trace of token ids alone, without anything that tells their texts; its text says what is needed."""


def _fits(tokenizer: Any, trace: Trace) -> bool:
    """Whether the recorded ids are this tokenizer's: they give the recorded text, or hold the recorded answer."""
    ids = trace.output_ids or ()
    if max(ids, default=-1) >= tokenizer.size:
        return False
    if trace.output_text is None and not trace.segments:
        return True
    shown = [tokenizer.decode(list(ids), skip_special_tokens=skip) for skip in (True, False)]
    if trace.output_text is not None:
        return any(text.startswith(trace.output_text) for text in shown)
    parts = [text for _, text in trace.segments]
    return all(part in shown[1] for part in parts) if len(parts) < _FEW else "".join(parts[-_FEW:]) in shown[1]


def _recorded_segments(trace: Trace) -> tuple[Segment, ...]:
    recorded = trace.recorded
    if recorded is None:
        return ()
    both: tuple[Segment, ...] = (("reasoning", recorded.reasoning or ""), ("content", recorded.content or ""))
    return tuple(segment for segment in both if segment[1])


def _without_ids(trace: Trace) -> Trace:
    deltas = tuple(replace(delta, token_ids=None) for delta in trace.deltas if delta.text is not None)
    return replace(trace, output_ids=None, deltas=deltas if len(deltas) == len(trace.deltas) else ())


def _prompt_ids(
    trace: Trace,
    prompt: str | None,
    prompt_from: str | None,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    notes: list[str],
) -> list[int] | None:
    if prompt_from == "trace" and trace.prompt_ids is not None and (tokenizer == "model" or prompt is None):
        if tokenizer != "assumed":
            return list(trace.prompt_ids)
        notes.append("the prompt's token ids need --model to be read")
        return None
    return vocabulary.encode(prompt) if prompt is not None else None


def _raw_deltas(trace: Trace, made: list[Piece] | None) -> Deltas | list[tuple[str | None, tuple[int, ...]]] | None:
    if not trace.deltas:
        return None
    if made is None and isinstance(trace.deltas, TraceDeltas):
        ids = [its or () for its in trace.deltas.ids]
        lengths = [*map(len, ids)]
        ends = None if lengths.count(1) == len(lengths) else [*accumulate(lengths)]
        return Deltas([text or "" for text in trace.deltas.texts], [*chain.from_iterable(ids)], ends)
    if made is not None and len(made) == len(trace.deltas):
        return [(piece.text, () if piece.id is None else (piece.id,)) for piece in made]
    return [(delta.text, delta.token_ids or ()) for delta in trace.deltas]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
