"""Asking a running vLLM for prompts: one start for all, and what a crash or a hang of its prompt code costs."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..parsers.bridge.process import BridgeError, HungError, LostError
from ..parsers.bridge.tokenizers import model_files
from .coded import by_mistral_common
from .cut import CodedTokenizer
from .model import Model
from .render import ErrorKind, RenderError
from .tokenizer import Tokenizer

_PROCESSORS = ("processor_config.json", "preprocessor_config.json", "video_preprocessor_config.json")
"""Files that a multimodal model's own chat template may be found by."""
_BUILD = 5.0
"""Building a model's tokenizer over there may take so many times the time of one result."""
_PER_RESULT = 50
"""Prompts that one result's time is enough for."""
_LOST = 3
"""After so many prompts in a row that cost their process, none of this model is asked for any more."""
_READS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "deepseek_v32": {"thinking": (), "enable_thinking": ()},
    "deepseek_v4": {
        "thinking": (),
        "enable_thinking": (),
        "reasoning_effort": ("low", "high", "max"),
        "drop_thinking": (),
    },
    "deepseek_v41": {
        "thinking": (),
        "enable_thinking": (),
        "reasoning_effort": ("low", "high", "xhigh", "max"),
        "drop_thinking": (),
    },
    "kimi_k3": {
        "thinking": (),
        "enable_thinking": (),
        "reasoning_effort": ("low", "high", "max"),
        "thinking_effort": ("low", "high", "max"),
    },
    "inkling": {"reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max")},
    "mistral": {"reasoning_effort": ("none", "high")},
    "harmony": {"reasoning_effort": ("low", "medium", "high")},
}
"""Kwargs that vLLM's own prompt code reads, and the values it knows, by tokenizer mode.

Source: vLLM 0.33.0, tokenizers/deepseek_v32.py, deepseek_v4.py, deepseek_v41.py, mistral.py, renderers/kimi_k3.py,
inkling.py.
"""
_numbers = itertools.count(1)


@runtime_checkable
class PromptServer(Protocol):
    """A running vLLM: what is asked of `parsers.bridge.Bridge` here."""

    @property
    def described(self) -> Mapping[str, str]:
        """`vllm_version` and more."""

    @property
    def seconds(self) -> float:
        """How long one result may take."""

    def ask(self, op: str, *, seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """One answer. Raises LostError where a crash or a hang cost it, BridgeError where nobody answers any more."""


class PromptMaker(Protocol):
    """Whoever makes a model's prompts in place of our own renderers: a vLLM behind a bridge, or a server that runs.

    Attributes:
        by: who that is, for the reader.
        problem: why it makes none of this model; the first question finds out. None as far as is known.
        exact_texts: its texts are what was cut into ids; else they were made of the ids, and may lack a blank.
    """

    by: str
    problem: str | None
    exact_texts: bool

    @property
    def reads(self) -> Mapping[str, tuple[Any, ...]]:
        """The kwargs its prompts depend on, and values of them, where no template tells."""

    def start(self) -> str | None:
        """Make it ready; the `problem` that this meets."""

    def answers(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each chat-completion body one of: `ids` and `text` (None: only `shown` is known); `error`; `lost`."""


class Flags(Protocol):
    """What is asked of a serve command here (`serve.command.ServeCommand`)."""

    def text(self, flag: str) -> str | None:
        """A flag's value."""

    def on(self, flag: str) -> bool:
        """Whether a switch is on."""


@dataclass(frozen=True)
class Served:
    """What of a serve command prompts depend on, besides the template."""

    default_kwargs: Mapping[str, Any] | None = None
    effort_map: Mapping[str, str] | None = None
    content_format: str | None = None
    tokenizer_mode: str | None = None
    exclude_tools: bool = False

    def tell(self, model: Model) -> None:
        """Have a running vLLM build the model's tokenizer in the mode it is served with, where a command names one."""
        if isinstance(model.tokenizer, (Tokenizer, CodedTokenizer)):
            model.tokenizer.mode = self.tokenizer_mode or "auto"

    def with_flags(self, command: Flags | None) -> Served:
        """With those flags of the command that nothing but its renderer reads."""
        if command is None:
            return self
        return replace(
            self,
            content_format=command.text("chat-template-content-format"),
            tokenizer_mode=command.text("tokenizer-mode"),
            exclude_tools=command.on("exclude-tools-when-tool-choice-none"),
        )


class VllmPrompts:
    """The prompts of one model, as a running vLLM serves it.

    Args:
        engine: that vLLM.
        model: with a folder; its template, where that is not the folder's own, is given as `--chat-template` would be.
        served: how it is served.

    Attributes:
        by: who makes them, for the reader.
        problem: why it makes none of this model; the first question finds out. None as far as is known.
    """

    exact_texts = True

    def __init__(self, engine: PromptServer, model: Model, served: Served = Served()) -> None:
        self.by = f"vLLM {engine.described['vllm_version']}"
        self.problem = _not_asked(model)
        self.mode = "auto"
        self._engine = engine
        self._model = model
        self._served = served
        self._key = f"model {next(_numbers)}"
        self._is_up = False
        self._lost = 0
        self._costly: set[str] = set()

    @property
    def reads(self) -> Mapping[str, tuple[Any, ...]]:
        """The kwargs that its prompt code reads; nothing is known of a template that is not here."""
        return _READS.get(self.mode, {})

    def start(self) -> str | None:
        """Have the model's tokenizer built over there; the `problem` that this meets."""
        if self.problem is None and not self._is_up:
            try:
                self._build()
            except (LostError, BridgeError) as error:
                self.problem = f"{self.by} cannot be asked for its prompts: {error}"
        return self.problem

    def answers(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each request body what `far/render.py` says, or `lost`, the error that stands for its prompt.

        All are asked for at once; only where that costs the process over there, one by one.
        """
        if self.start() is not None or not bodies:
            return [{"lost": RenderError("crashed", str(self.problem))} for _ in bodies]
        if len(bodies) == 1 or self._lost >= _LOST:
            return [self._one(body) for body in bodies]
        try:
            return self._ask(bodies)
        except (LostError, BridgeError):
            return [self._one(body) for body in bodies]

    def _one(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._lost >= _LOST:
            return {"lost": RenderError("unseen", f"not rendered: {self.by} was lost over {_LOST} prompts in a row")}
        told = json.dumps(body["messages"])
        if told in self._costly:
            return {"lost": RenderError("unseen", f"not rendered: {self.by} was lost over these messages before")}
        try:
            (answer,) = self._ask([body])
        except (LostError, BridgeError) as error:
            self._costly.add(told)
            self._lost += 1
            kind: ErrorKind = "timeout" if isinstance(error, HungError) else "crashed"
            return {"lost": RenderError(kind, f"{self.by}: {error}")}
        self._lost = 0
        return answer

    def _ask(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        seconds = self._engine.seconds * max(1.0, len(bodies) / _PER_RESULT)
        for _ in range(2):
            answer = self._engine.ask("render", seconds=seconds, key=self._key, bodies=list(bodies))
            if "failed" in answer:
                raise LostError(answer["failed"])
            if not answer.get("unknown"):
                found: list[dict[str, Any]] = answer["prompts"]
                return found
            self._build()  # another process has taken over, which was told nothing yet
            if self.problem is not None:
                break
        raise LostError(self.problem or "its process does not last")

    def _build(self) -> None:
        answer = self._engine.ask(
            "render",
            seconds=self._engine.seconds * _BUILD,
            key=self._key,
            files=_files(self._model),
            server=_server(self._model, self._served),
            bodies=[],
        )
        self._is_up = True
        wrong = answer.get("problem")
        if wrong is not None:
            self.problem = f"{self.by} cannot render this model ({wrong['class']}: {wrong['message'][:300]})"
            lacking = re.search(r"No module named '(\w+)", wrong["message"])
            self.problem += f"; install {lacking[1]} there" if lacking is not None else ""
        elif "failed" in answer:
            self.problem = f"{self.by} cannot render this model ({answer['failed'][:300]})"
        else:
            self.mode = "harmony" if answer["harmony"] else answer["mode"]


def vllm_prompts(engine: object, model: Model, served: Served = Served()) -> VllmPrompts | None:
    """The prompts of a model by whoever runs its parsers; None where that is no running vLLM."""
    return VllmPrompts(engine, model, served) if isinstance(engine, PromptServer) else None


def _not_asked(model: Model) -> str | None:
    """Why no vLLM can be asked for this model's prompts."""
    if model.kind == "gguf":
        return "vLLM is asked about model folders, not about a GGUF file"
    if model.path is None or not model.path.is_dir():
        return "vLLM renders no template without a tokenizer beside it"
    return None


def _files(model: Model) -> dict[str, str]:
    """The model's small files; the tokenizer's where that is another folder's."""
    folder = model.path
    if folder is None:
        return {}
    other = getattr(model.tokenizer, "folder", folder)
    found = model_files(folder) if other == folder else model_files(other)
    for name in ("config.json", *_PROCESSORS):
        if (folder / name).is_file():
            found[name] = base64.b64encode((folder / name).read_bytes()).decode()
    return found


def _server(model: Model, served: Served) -> dict[str, Any]:
    """The settings of `far/render.py`'s `Server`."""
    template = model.template
    folders = [folder for folder in (model.path, getattr(model.tokenizer, "folder", None)) if folder is not None]
    # A processor's template is found by vLLM only where the libraries for images are there too.
    own = template is None or (
        template in model.templates
        and template.origin != "chat_template.json"
        and template.path is not None
        and any(Path(template.path).is_relative_to(folder) for folder in folders)
    )
    mode = served.tokenizer_mode
    if mode in (None, "auto") and any(by_mistral_common(f, has_template=template is not None) for f in folders):
        mode = "mistral"  # it goes by weight files, which are not sent
    return {
        "chat_template": None if template is None or own else template.text,
        "content_format": served.content_format,
        "default_kwargs": dict(served.default_kwargs) if served.default_kwargs else None,
        "effort_map": dict(served.effort_map) if served.effort_map else None,
        "tokenizer_mode": None if mode == "auto" else mode,
        "exclude_tools": served.exclude_tools,
    }
