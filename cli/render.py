"""`reasonctl render`: the prompt a model's chat template makes, and the state that prompt leaves the model in."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .engines import CalledEngines
from .given import KWARGS, kwargs_in, not_empty, taken

if TYPE_CHECKING:
    from ..parsers.bridge import Bridge
    from ..prompts.asked import VllmPrompts
    from ..prompts.model import Model
    from ..prompts.render import Rendered, RenderRequest
    from ..prompts.rendering import PromptRenderer
    from ..prompts.state import State

_QUESTION = "What is 2 + 2?"
_STDIN = "standard input"
_KEYS = ("messages", "tools", "chat_template_kwargs", "reasoning_effort")
_FLAGS = ("add_generation_prompt", "continue_final_message")


def render(
    model: Annotated[str, typer.Option(metavar="X", help="Model folder, hub id, template file or fixture:NAME.")],
    chat_template_kwargs: Annotated[
        str | None, typer.Option(metavar="JSON", help="The request's chat_template_kwargs, as a JSON object.")
    ] = None,
    messages: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Messages, or a whole request body, in JSON; - is standard input."),
    ] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="FILE", help="Tools in OpenAI form, in JSON; - is standard input.")
    ] = None,
    vllm: Annotated[
        str | None,
        typer.Option(metavar="ENGINE", help="A real vLLM makes the prompt, as its server does; ours is compared."),
    ] = None,
) -> None:
    """Print the prompt a request renders to. The state it leaves the model in goes to stderr."""
    from ..prompts.kwargs import effective_kwargs
    from ..prompts.model import load_model

    not_empty(model=model, messages=messages, tools=tools, chat_template_kwargs=chat_template_kwargs, vllm=vllm)
    request = _request(messages, tools)
    if chat_template_kwargs is not None:
        request["chat_template_kwargs"] = kwargs_in(chat_template_kwargs)
    if "chat_template_kwargs" in request:
        own = taken(request["chat_template_kwargs"], source=KWARGS if chat_template_kwargs else messages or KWARGS)
        if own.get("tools") is not None:  # vLLM lets them win over the request's field
            request["tools"] = _tools(own.pop("tools"), "chat_template_kwargs")
        request["chat_template_kwargs"] = own
    kwargs = effective_kwargs(
        request_kwargs=request.get("chat_template_kwargs"), reasoning_effort=request.get("reasoning_effort")
    )
    engines = CalledEngines([vllm] if vllm is not None else [])
    try:
        loaded, asked = _by_vllm(load_model(model), engines.first())
        result, probed = _render(loaded, asked, request, kwargs)
    finally:
        engines.close()
    if result.text is None:
        error = result.error
        template = loaded.template_for(tools=bool(request.get("tools")))
        place = str(template.path) if template is not None and template.path is not None else model
        maker = "prompt builder" if loaded.coded is not None else "template"
        raise InputError(
            f"the {maker} gives no prompt for these messages: {error.message if error else 'no result'}",
            source=place,
            line=error.line if error else None,
            mend="change the messages or the kwargs" if error and error.by_template else f"mend the {maker}",
        )
    _show(result.text)
    typer.echo(_state_line(loaded, probed or result, is_probed=probed is not None), err=True)
    if asked is not None:
        typer.echo(_made_by(asked, loaded, result), err=True)


def _by_vllm(model: Model, engine: Bridge | None) -> tuple[Model, VllmPrompts | None]:
    """The model as a running vLLM renders it, and that vLLM; (the model, None) without one."""
    if engine is None:
        return model, None
    from ..prompts.asked import vllm_prompts
    from ..prompts.bridged import evaluated

    asked = vllm_prompts(engine, model)
    return evaluated(model, asked), asked


def _made_by(asked: VllmPrompts, model: Model, result: Rendered) -> str:
    """One line on who made the prompt, and where ours is another."""
    from ..prompts.bridged import BridgedPrompts

    if asked.problem is not None:
        return f"{asked.problem}; this is our own prompt"
    if isinstance(model.coded, BridgedPrompts):
        return f"made by {asked.by}; there is none of our own"
    if result.differs is None:
        return f"made by {asked.by}; ours is the same"
    return f"made by {asked.by}; ours differs: {result.differs.said}"


def _render(
    model: Model,
    vllm: VllmPrompts | None,
    request: Mapping[str, Any],
    kwargs: Mapping[str, Any],
) -> tuple[Rendered, Rendered | None]:
    """The prompt, and the same prompt with a sentinel at the end of the last message's text (None where that fails)."""
    from ..prompts.rendering import renderers

    if model.code_prompt is not None:
        raise InputError(
            f"its prompts are built by code: {model.code_prompt}",
            source=model.source,
            mend="give --vllm, which renders it, or another model",
        )
    tools = request.get("tools") or None
    opened = renderers(model, vllm=vllm)
    renderer = opened.get(tools is not None)
    if renderer is None:
        named = ", ".join(sorted({other.name for other in model.templates}))
        raise InputError(
            f"has no default chat template, only {named}" if named else "has no chat template",
            source=model.source,
            mend="give a folder with a chat_template.jinja, or that file itself",
        )
    messages = request["messages"]
    marked = _with_sentinel(messages)
    try:
        plain, probe = renderer.render_all(
            [_asked({**request, "messages": each}, renderer, kwargs) for each in (messages, marked or messages)]
        )
    finally:
        for each in opened.values():
            each.close()
    return plain, probe if marked and probe.text is not None else None


def _asked(request: Mapping[str, Any], renderer: PromptRenderer, kwargs: Mapping[str, Any]) -> RenderRequest:
    """The request as a renderer takes it."""
    from ..prompts.messages import as_handed_over
    from ..prompts.render import RenderRequest

    return RenderRequest(
        as_handed_over(request["messages"]),
        tools=request.get("tools") or None,
        kwargs=renderer.reaching(
            kwargs, effort=request.get("reasoning_effort"), own=request.get("chat_template_kwargs")
        ),
        add_generation_prompt=request.get("add_generation_prompt") is not False,
        continue_final_message=request.get("continue_final_message") is True,
        sent=request,
    )


def _with_sentinel(messages: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The messages with the sentinel behind the last one's own text, None where that has none."""
    from ..prompts.conversations import SENTINEL

    content = messages[-1].get("content")
    if isinstance(content, str):
        marked: Any = content + SENTINEL
    elif isinstance(content, list) and content and isinstance(content[-1], dict) and "text" in content[-1]:
        marked = [*content[:-1], {**content[-1], "text": f"{content[-1]['text']}{SENTINEL}"}]
    else:
        return None
    return [*messages[:-1], {**messages[-1], "content": marked}]


def _state_line(model: Model, rendered: Rendered, *, is_probed: bool) -> str:
    """One line on the state, for stderr."""
    from ..prompts.conversations import SENTINEL
    from ..prompts.state import prompt_state, region_start

    prompt = rendered.text or ""
    start = region_start(prompt, SENTINEL) if is_probed else 0
    read: State = prompt_state(prompt, start, ends=rendered.ends)
    parts = [f"state {read.state}"]
    if read.marker is not None and read.marker_end is not None:
        parts.append(f"last marker {read.marker}")
        if read.state == "open" and model.tokenizer is not None:
            ends = rendered.ends or model.tokenizer.encode_with_ends(prompt)[1]
            after = sum(end > read.marker_end for end in ends)
            parts.append(f"{after} token{'' if after == 1 else 's'} after it")
    parts.append(f"prompt ends {json.dumps(read.tail, ensure_ascii=False)}")
    return "; ".join(parts)


def _show(prompt: str) -> None:
    """The prompt's bytes as they are; on a terminal with markers highlighted and control characters visible."""
    from ..reports import formats

    if not formats.colour(sys.stdout):
        formats.to_stdout(prompt)
        if sys.stdout.isatty():
            formats.to_stdout("\n")
        return
    from rich.console import Console
    from rich.text import Text

    from ..parsers.markers import STATE_MARKERS

    # A template may write escape sequences; a terminal must not obey them.
    safe = "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in prompt)
    text = Text(safe)
    text.highlight_words([pair.start for pair in STATE_MARKERS], "bold black on yellow")
    text.highlight_words([pair.end for pair in STATE_MARKERS], "bold black on cyan")
    Console(file=sys.stdout, highlight=False, soft_wrap=True).print(text)


def _request(messages: str | None, tools: str | None) -> dict[str, Any]:
    """What `--messages` and `--tools` say, as a request body; one plain question without them."""
    if messages == tools == "-":
        raise InputError(
            "cannot be both the messages and the tools", source=_STDIN, mend="put one of the two into a file"
        )
    body: Any = {"messages": [{"role": "user", "content": _QUESTION}]}
    source = _STDIN if messages == "-" else messages
    if messages is not None:
        body = _json(messages)
        body = {"messages": body} if isinstance(body, list) else body
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise InputError("holds neither a list of messages nor a request body", source=source, mend=_MEND)
    if not body["messages"] or not all(isinstance(each, dict) and "role" in each for each in body["messages"]):
        raise InputError("each message is an object with a role, and there is at least one", source=source, mend=_MEND)
    if not all(isinstance(each.get("tool_calls") or [], list) for each in body["messages"]):
        raise InputError("tool_calls are a list", source=source, mend="write a list of calls, or leave them out")
    request = {key: body[key] for key in _KEYS if body.get(key) is not None}
    for key, kind, name in (("chat_template_kwargs", dict, "an object"), ("reasoning_effort", str, "a text")):
        if not isinstance(request.get(key, kind()), kind):
            raise InputError(f"{key} is not {name}", source=source, mend=f"write {name} there")
    request |= {key: body[key] for key in _FLAGS if isinstance(body.get(key), bool)}
    if tools is not None:
        request["tools"] = _json(tools)
    if "tools" in request:
        request["tools"] = _tools(request["tools"], tools if tools not in (None, "-") else source or _STDIN)
    return request


def _tools(value: Any, source: str | None) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise InputError(
            "tools are a list of objects", source=source, mend='write [{"type": "function", "function": {...}}]'
        )
    return value


_MEND = 'write [{"role": "user", "content": "hello"}], or a request body with "messages"'


def _json(name: str) -> Any:
    """The JSON in a file, or in standard input where the name is `-`."""
    from ..prompts.files import parse_json, read_text

    if name != "-":
        return parse_json(read_text(Path(name)), source=name)
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8", source=_STDIN, mend="send it as UTF-8") from None
    return parse_json(text, source=_STDIN)
