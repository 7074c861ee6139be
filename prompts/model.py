"""A model as the checks see it: where it came from, its chat templates, its tokenizer and what its config files say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError

if TYPE_CHECKING:
    from .bridged import BridgedPrompts
    from .coded import CodedPrompts
    from .cut import CodedTokenizer
    from .served import ServedTokenizer
    from .tokenizer import Tokenizer

Kind = Literal["folder", "hub", "template", "tokenizer_config", "fixture", "gguf", "served"]

LONE_TEMPLATE_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "<unk>"}
"""What a template without a tokenizer beside it renders with."""


@dataclass(frozen=True)
class Template:
    """One chat template. `origin` is the file it stands in, `name` is `default` unless the model names several."""

    text: str
    origin: str
    name: str = "default"
    path: Path | None = None

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the UTF-8 text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class Unreadable:
    """A part of a model that was not read, and that the rest was read without.

    `file` is its name inside the model's folder, `key` the one value in it that is meant (None: all of it). `line` and
    `column`, from 1, are where reading stopped.
    """

    file: str
    reason: str
    key: str | None = None
    line: int = 1
    column: int = 1


@dataclass(frozen=True)
class Model:
    """What was found under one `--model` value; a part that is missing is None and never guessed.

    `template` is the one a plain request is rendered with, `templates` holds all that were found (named ones, and the
    copy that a `chat_template.jinja` hides). `tokenizer_problem` says why there is no usable tokenizer. Of a model
    whose prompts the server builds by code, so that no template has a say, either `coded` builds them, here or by a
    running vLLM (then `template` is None), or `code_prompt` says whose code it is and why it is not evaluated.
    `unreadable` lists what the rest was read without. `revision` is the commit that a hub id resolved to, `known_as`
    where a running server says that it has the model from.
    """

    source: str
    kind: Kind
    path: Path | None
    model_type: str | None = None
    architectures: tuple[str, ...] = ()
    template: Template | None = None
    templates: tuple[Template, ...] = ()
    tokenizer: Tokenizer | CodedTokenizer | ServedTokenizer | None = None
    tokenizer_problem: str | None = None
    code_prompt: str | None = None
    coded: CodedPrompts | BridgedPrompts | None = None
    generation_config: Mapping[str, Any] = field(default_factory=dict)
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    eos_ids: frozenset[int] = frozenset()
    unreadable: tuple[Unreadable, ...] = ()
    revision: str | None = None
    known_as: str | None = None

    @property
    def prompt_text(self) -> str:
        """All that the prompts' maker writes of its own: its templates' text, or the markers that code has."""
        if self.coded is not None:
            return self.coded.text
        used = (self.template_for(tools=False), self.template_for(tools=True))
        return "\n".join(dict.fromkeys(template.text for template in used if template is not None))

    def template_for(self, *, tools: bool) -> Template | None:
        """The template a request uses: `tool_use`, if the model has one and the request offers tools, else the default.

        Source: transformers 5.24, `PreTrainedTokenizerBase.get_chat_template`.
        """
        if tools and self.template is not None and self.template.name == "default":
            named = [other for other in self.templates if other.name == "tool_use"]
            return named[0] if named else self.template
        return self.template


def load_model(spec: str, *, chat_template: Path | None = None) -> Model:
    """Read the model that a `--model` value names.

    Args:
        spec: a folder, a hub id with optional `@REVISION`, a `.gguf` file, a lone `.jinja` or
            `tokenizer_config.json`, `fixture:NAME`.
        chat_template: a file whose template replaces the model's own (`--chat-template`).

    Raises:
        InputError: there is no such model, or one of its files cannot be read.
    """
    from . import folder, gguf, hub

    path = _expanded(spec)
    if spec.startswith("fixture:"):
        model = folder.read_fixture(spec)
    elif path.is_dir():
        model = folder.read_folder(path, source=spec)
    elif path.is_file() and path.suffix.lower() == ".gguf":
        model = gguf.read_gguf(path, source=spec)
    elif path.is_file():
        model = folder.read_lone_file(path, source=spec)
    elif hub.looks_like_id(spec) and not _means_a_path(spec):
        model = hub.read_hub(spec)
    else:
        raise InputError(
            "no such file or folder",
            source=spec,
            mend="give a model folder, a hub id (owner/name), a chat_template.jinja, a tokenizer_config.json"
            " or fixture:NAME",
        )
    return folder.with_template(model, chat_template) if chat_template is not None else model


_FILE_ENDINGS = (".json", ".jinja", ".jinja2", ".j2", ".gguf")


def _means_a_path(spec: str) -> bool:
    """A mistyped path must not be asked for on the network: it looks like a file or begins in a folder of ours."""
    name = spec.partition("@")[0]
    return (
        name.lower().endswith(_FILE_ENDINGS)
        or name.startswith((".", "/", "~"))
        or name.count("/") != 1
        or Path(name.partition("/")[0]).is_dir()
    )


def _expanded(spec: str) -> Path:
    """The path with `~` spelled out. Raises InputError for a user that is not there, or a text no path can be."""
    try:
        path = Path(spec).expanduser()
        path.exists()
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"no such file or folder ({error})", source=repr(spec)[:200], mend="give a path") from None
    return path
