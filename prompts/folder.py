"""Reads a model from files on disk: a Hugging Face folder, a shipped fixture, a lone template or tokenizer config."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..fixtures import model_path
from . import coded
from . import tokenizer as tokenizers_room
from .coded import CodedPrompts
from .cut import CodedTokenizer
from .files import json_object, odd_files, read_text
from .model import LONE_TEMPLATE_TOKENS, Kind, Model, Template, Unreadable
from .typed import SPECIAL_TOKEN_NAMES, typed

EMPTY = "is empty: such a template writes no prompt"
TEMPLATE_FILE = "chat_template.jinja"
NAMED_TEMPLATES = "additional_chat_templates"
CONFIG_FILE = "tokenizer_config.json"


def read_folder(path: Path, *, source: str, kind: Kind = "folder") -> Model:
    """The model in a Hugging Face folder; weights are not needed, and missing parts are said to be missing.

    Raises:
        InputError: nothing in the folder belongs to a model, or a template or tokenizer file is unreadable.
    """
    unreadable = [Unreadable(name, odd) for name, odd in odd_files(path)]
    config = _optional_json(path / "config.json", unreadable)
    generation = _optional_json(path / "generation_config.json", unreadable)
    tokenizer_config = _needed_json(path / CONFIG_FILE, unreadable) if (path / CONFIG_FILE).is_file() else {}
    legacy_tokens = _optional_json(path / "special_tokens_map.json", unreadable)
    templates = _templates(path, tokenizer_config, unreadable)
    default = _default(templates)
    found = coded.find(path, config, has_template=default is not None)
    if not (config or tokenizer_config or templates or found or unreadable or tokenizers_room.vocabulary_files(path)):
        raise InputError(
            "holds no model files (config.json, tokenizer.json, tokenizer_config.json, chat_template.jinja)",
            source=source,
            mend="give the folder of a Hugging Face snapshot",
        )
    if default is not None and not default.text.strip():
        unreadable.append(Unreadable(default.origin, f"chat_template {EMPTY}", key="chat_template"))
        default = None
    special_tokens = _special_tokens(tokenizer_config, legacy_tokens)
    by_code = found if isinstance(found, CodedPrompts) else None
    if by_code is not None:
        default = None
        special_tokens = {**by_code.special_tokens, **special_tokens}
    loaded, problem = _tokenizer(
        path,
        by_code,
        tokenizer_config=tokenizer_config,
        special_tokens=special_tokens,
        chat_template=default.text if default else None,
        expected_size=_text_config(config, "vocab_size"),
    )
    return Model(
        source=source,
        kind=kind,
        path=path,
        model_type=config.get("model_type"),
        architectures=tuple(config.get("architectures") or ()),
        template=default,
        templates=tuple(templates),
        tokenizer=loaded,
        tokenizer_problem=problem,
        code_prompt=found if isinstance(found, str) else None,
        coded=by_code,
        generation_config=generation,
        tokenizer_config=tokenizer_config,
        special_tokens=special_tokens,
        eos_ids=_eos_ids(loaded, special_tokens, generation, config),
        unreadable=tuple(unreadable),
    )


def read_fixture(spec: str) -> Model:
    """The shipped model that `fixture:NAME` names. Raises InputError for an unknown one."""
    return read_folder(model_path(spec.removeprefix("fixture:")), source=spec, kind="fixture")


def read_lone_file(path: Path, *, source: str) -> Model:
    """A model that is only a template or a `tokenizer_config.json`; there is no tokenizer then."""
    problem = "a lone file has no tokenizer"
    if path.suffix in (".jinja", ".jinja2", ".j2"):
        template = _template_file(path)
        return Model(
            source=source,
            kind="template",
            path=path,
            template=template,
            templates=(template,),
            tokenizer_problem=problem,
            special_tokens=LONE_TEMPLATE_TOKENS,
        )
    if path.suffix == ".json":
        unreadable: list[Unreadable] = []
        config = typed(CONFIG_FILE, json_object(path), unreadable)
        templates = list(_templates_in_config(config, path))
        if templates or unreadable or "tokenizer_class" in config:
            return Model(
                source=source,
                kind="tokenizer_config",
                path=path,
                template=_default(templates),
                templates=tuple(templates),
                tokenizer_problem=problem,
                tokenizer_config=config,
                special_tokens=_special_tokens(config, {}),
                unreadable=tuple(dataclasses.replace(each, file=path.name) for each in unreadable),
            )
    raise InputError(
        "is neither a chat template (.jinja) nor a tokenizer_config.json", source=source, mend="give the model's folder"
    )


def with_template(model: Model, path: Path) -> Model:
    """The model as `--chat-template` makes it: the file's template stands in for all of its own.

    Code that builds prompts looks at no template, a given one included.

    Raises:
        InputError: the file cannot be read, or is empty.
    """
    template = _template_file(path)
    return dataclasses.replace(model, template=None if model.coded else template, templates=(template,))


def _template_file(path: Path) -> Template:
    """The template in a file that the user names. Raises InputError for an empty one, too."""
    text = read_text(path)
    if not text.strip():
        raise InputError(EMPTY, source=str(path), mend="give a file with a template in it")
    return Template(text, origin=path.name, path=path)


def _templates(path: Path, tokenizer_config: Mapping[str, Any], unreadable: list[Unreadable]) -> list[Template]:
    """Every template of the folder; of two with one name the first is the one that counts.

    Source: transformers 5.24, tokenization_utils_base.py `_from_pretrained`: template files replace the whole
    `chat_template` of the configuration.
    """
    found: list[Template] = []
    if (path / TEMPLATE_FILE).is_file():
        found.append(Template(read_text(path / TEMPLATE_FILE), TEMPLATE_FILE, path=path / TEMPLATE_FILE))
    for file in filter(Path.is_file, sorted((path / NAMED_TEMPLATES).glob("*.jinja"))):
        found.append(Template(read_text(file), f"{NAMED_TEMPLATES}/{file.name}", name=file.stem, path=file))
    found.extend(_templates_in_config(tokenizer_config, path / CONFIG_FILE))
    legacy = path / "chat_template.json"
    text = _optional_json(legacy, unreadable).get("chat_template")
    if text is not None:
        found.append(Template(text, legacy.name, path=legacy))
    return found


def _templates_in_config(config: Mapping[str, Any], path: Path) -> Iterator[Template]:
    value = config.get("chat_template")
    if isinstance(value, str):
        yield Template(value, CONFIG_FILE, path=path)
    elif isinstance(value, list):
        for entry in value:
            yield Template(entry["template"], CONFIG_FILE, name=entry.get("name", "default"), path=path)
    elif isinstance(value, dict):
        for name, text in value.items():
            yield Template(text, CONFIG_FILE, name=name, path=path)


def _default(templates: list[Template]) -> Template | None:
    """The template of a plain request. Named template files without a default one leave a model without any."""
    files = [template for template in templates if template.origin.endswith(".jinja")]
    for template in files or templates:
        if template.name == "default":
            return template
    return None


def _special_tokens(config: Mapping[str, Any], legacy: Mapping[str, Any]) -> dict[str, str]:
    """The named special tokens, as templates see them. A token is a string or `{"content": ...}`.

    Besides the common names, a model's own: any other key that ends in `_token`, and an object `extra_special_tokens`.
    Source: transformers 5.24, tokenization_utils_base.py `_from_pretrained`.
    """
    extra = config.get("extra_special_tokens")
    own = {name: value for name, value in config.items() if name.endswith("_token")}
    own |= extra if isinstance(extra, dict) else {}
    common = {name: config[name] if name in config else legacy.get(name) for name in SPECIAL_TOKEN_NAMES}
    tokens: dict[str, str] = {}
    for name, value in (common | {name: value for name, value in own.items() if name not in common}).items():
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            tokens[name] = text
    return tokens


def _tokenizer(
    path: Path, by_code: CodedPrompts | None, **known: Any
) -> tuple[tokenizers_room.Tokenizer | CodedTokenizer | None, str | None]:
    """The tokenizer that the server cuts outputs with, or None and what is wrong."""
    if by_code is not None and by_code.cuts_outputs:
        return by_code.tokenizer, None
    loaded, problem = tokenizers_room.load(path, **known)
    return (by_code.tokenizer, None) if loaded is None and by_code is not None else (loaded, problem)


def _eos_ids(
    loaded: tokenizers_room.Tokenizer | CodedTokenizer | None,
    special_tokens: Mapping[str, str],
    generation: Mapping[str, Any],
    config: Mapping[str, Any],
) -> frozenset[int]:
    """The ids that end a run: the tokenizer's and the generation config's (config.json's where that is missing)."""
    listed = generation.get("eos_token_id") if generation else _text_config(config, "eos_token_id")
    ids = {value for value in (listed if isinstance(listed, list) else [listed]) if isinstance(value, int)}
    own = special_tokens.get("eos_token")
    if loaded is not None and own is not None and own in loaded.vocab:
        ids.add(loaded.vocab[own])
    return frozenset(ids)


def _text_config(config: Mapping[str, Any], key: str) -> Any:
    """A value of config.json; multimodal models keep it under `text_config`."""
    inner = config.get("text_config")
    return config.get(key, inner.get(key) if isinstance(inner, dict) else None)


def _optional_json(path: Path, unreadable: list[Unreadable]) -> dict[str, Any]:
    """A JSON object, {} where the file is missing; one that is broken is noted and the rest of the folder is read."""
    try:
        return _needed_json(path, unreadable) if path.is_file() else {}
    except InputError as error:
        unreadable.append(Unreadable(path.name, error.message, line=error.line or 1, column=error.column or 1))
        return {}


def _needed_json(path: Path, unreadable: list[Unreadable]) -> dict[str, Any]:
    """A JSON object without what is of a wrong type. Raises InputError where there is none."""
    return typed(path.name, json_object(path), unreadable)
