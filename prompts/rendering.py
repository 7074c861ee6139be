"""Which renderer makes a model's prompts: code, or a template in its own process."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .asked import PromptMaker
from .bridged import BridgedPrompts
from .coded import CodedPrompts
from .model import Model
from .render import Limits, Renderer

PromptRenderer = Renderer | CodedPrompts | BridgedPrompts


def renderers(
    model: Model,
    *,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    vllm: PromptMaker | None = None,
) -> dict[bool, PromptRenderer]:
    """The renderer of a request without tools (False) and of one with them (True); often the same. Close them all.

    Empty where the model has no template for a plain request, and where code that is not evaluated has the say.

    Args:
        model: whose prompts they make.
        limits: what a template may use here.
        vllm: makes the prompts in place of our own renderers, which are held against it.
    """
    if isinstance(model.coded, BridgedPrompts):
        return {False: model.coded, True: model.coded}
    own = _own(model, limits)
    if vllm is None:
        return dict(own)
    made = {each: BridgedPrompts(vllm, model, each) for each in own.values()}
    return {tools: made[each] for tools, each in own.items()}


def _own(model: Model, limits: Limits) -> dict[bool, Renderer | CodedPrompts]:
    if model.code_prompt is not None:
        return {}
    if model.coded is not None and not isinstance(model.coded, BridgedPrompts):
        return {False: model.coded, True: model.coded}
    found: dict[bool, Renderer | CodedPrompts] = {}
    tokens = special_tokens(model) if model.template is not None else {}
    opened: dict[str, Renderer] = {}
    try:
        for tools in (False, True):
            template = model.template_for(tools=tools)
            if template is not None:
                if template.sha256 not in opened:
                    opened[template.sha256] = Renderer(template, special_tokens=tokens, limits=limits)
                found[tools] = opened[template.sha256]
    except BaseException:
        for renderer in opened.values():
            renderer.close()
        raise
    return found


def special_tokens(model: Model) -> Mapping[str, str]:
    """The special tokens a template renders with; the tokenizer's class is asked only for one that no file names."""
    texts = [template.text for template in (model.template, *model.templates) if template is not None]
    read = {name for text in texts for name in re.findall(r"\b(?:bos|eos|pad|unk|sep|cls|mask)_token\b", text)}
    if model.tokenizer is None or not (read - model.special_tokens.keys() - model.tokenizer_config.keys()):
        return model.special_tokens
    built = model.tokenizer.check()
    return {**(built.special_tokens or {}), **model.special_tokens}
