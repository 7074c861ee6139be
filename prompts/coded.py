"""Prompts that code builds instead of a template: who builds a model's, and what their builders share."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from .cut import CodedTokenizer
from .render import Rendered, RenderError, RenderRequest

_ARCHITECTURES = {
    "DeepseekV32ForCausalLM": "vLLM renders DeepSeek-V3.2 with its own encoder",
    "DeepseekV4ForCausalLM": "vLLM renders DeepSeek-V4 with its own encoder",
    "DeepseekV4ForConditionalGeneration": "vLLM renders DeepSeek-V4 with its own encoder",
    "DeepseekV41ForCausalLM": "vLLM renders DeepSeek-V4.1 with its own encoder",
    "KimiK3ForConditionalGeneration": "vLLM renders Kimi-K3 with its own encoder",
    "InklingForCausalLM": "vLLM renders Inkling with its own encoder",
    "InklingForConditionalGeneration": "vLLM renders Inkling with its own encoder",
}
"""Architectures whose template, if any, has no say. Source: vLLM 0.33.0, config/model.py, default tokenizer modes."""

_BY_TYPE = {
    "deepseek_v32": "DeepseekV32ForCausalLM",
    "deepseek_v4": "DeepseekV4ForCausalLM",
    "deepseek_v41": "DeepseekV41ForCausalLM",
    "kimi_k3": "KimiK3ForConditionalGeneration",
}
_MESSAGE_CHARS = 300


class RefusedError(Exception):
    """The server answers such a request with an error of its own."""


class CodedPrompts(ABC):
    """A model's prompts, built by the library that the server itself uses; it has the face of `render.Renderer`.

    Attributes:
        by: the library and its version.
        tokenizer: cuts and joins text as that library does.
        special_tokens: the named ones.
    """

    cuts_outputs: ClassVar[bool]
    """The server's own tokenizer is this library's too, whatever tokenizer.json lies beside."""

    def __init__(
        self,
        *,
        by: str,
        tokenizer: CodedTokenizer,
        special_tokens: Mapping[str, str],
        compared: Mapping[str, tuple[Any, ...]],
    ) -> None:
        self.by = by
        self.tokenizer = tokenizer
        self.special_tokens = special_tokens
        self.compared = compared
        self.reads = self.declared = frozenset(compared)
        self.wants_parts = False
        self.problem: RenderError | None = None

    @property
    def text(self) -> str:
        """All that the code may write of its own; it stands where a template's text would be read for markers."""
        return "\n".join(self.tokenizer.special_tokens)

    @abstractmethod
    def reaching(self, effective: Mapping[str, Any], *, effort: Any, own: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of a request's kwargs the code gets to see; arguments as those of `render.Renderer.reaching`."""

    @abstractmethod
    def ids(self, request: RenderRequest) -> Sequence[int]:
        """The prompt's token ids.

        Raises:
            RefusedError: the server refuses such a request.
            Exception: whatever else the code raises.
        """

    def render(self, request: RenderRequest) -> Rendered:
        """The prompt, or why there is none."""
        try:
            ids = tuple(self.ids(request))
            text, ends = self.tokenizer.joined(ids)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of a Rust library is no Exception
            refused = isinstance(error, RefusedError)
            message = " ".join(str(error).split())[:_MESSAGE_CHARS]
            if not refused:
                message = f"{type(error).__name__}: {message}"
            return Rendered(None, RenderError("raised", message, by_template=refused))
        return Rendered(text, token_ids=ids, ends=ends)

    def render_all(self, requests: Sequence[RenderRequest]) -> list[Rendered]:
        """Many prompts; one that cannot be built leaves the others alone."""
        return [self.render(request) for request in requests]

    def close(self) -> None:  # noqa: B027  (part of the face)
        """Nothing runs that would have to be ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def find(path: Path, config: Mapping[str, Any], *, has_template: bool) -> CodedPrompts | str | None:
    """Who builds this model's prompts by code, or why that is not evaluated; None where a template decides.

    Args:
        path: the model's folder.
        config: its config.json.
        has_template: a plain request has a template to be rendered with.
    """
    architectures = list(config.get("architectures") or ()) or [_BY_TYPE.get(str(config.get("model_type")), "")]
    for architecture in architectures:
        if architecture in _ARCHITECTURES:
            return _ARCHITECTURES[architecture]
    if by_mistral_common(path, has_template=has_template):
        if not (path / "tekken.json").is_file():
            return "mistral-common renders this model, and of its formats only tekken.json is evaluated"
        if importlib.util.find_spec("mistral_common") is None:
            return f"mistral-common renders this model (tekken.json); {_install('mistral')}"
        from . import coded_mistral

        return coded_mistral.read(path / "tekken.json")
    if config.get("model_type") == "gpt_oss" and not has_template:
        if importlib.util.find_spec("openai_harmony") is None:
            return (
                f"openai-harmony renders gpt-oss, and the folder has no template that repeats it; {_install('harmony')}"
            )
        from . import coded_harmony

        return coded_harmony.read(path)
    return None


def by_mistral_common(path: Path, *, has_template: bool) -> bool:
    """Whether vLLM takes mistral-common for this folder.

    It does where the repository also has Mistral's own weight files; params.json goes with those.
    """
    own_format = (path / "params.json").is_file() or any(path.glob("consolidated*.safetensors"))
    tokenizer = (path / "tekken.json").is_file() or any(path.glob("tokenizer.model.v*"))
    return tokenizer and (own_format or not has_template)


def _install(extra: str) -> str:
    return f"to have it evaluated: pip install 'reasonctl[{extra}]'"
