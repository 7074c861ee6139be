"""Prompts as this vLLM's own chat server makes them: from a request body to the ids that the model gets.

0.25 and later: `renderers/online_renderer.py`, `OnlineRenderer`. 0.18 to 0.24: `entrypoints/serve/render/serving.py`,
`OpenAIServingRender`. Told apart by what is there. Before, the server's engine was needed for it. Of the server's
configuration only what that code reads is made up here, so no weights and no model class are needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import itertools
import json
import os
import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .layouts import REQUESTS, SERVERS, _attribute, first_there
from .vocabularies import unpacked

if TYPE_CHECKING:
    from .runner import Far

_SERVERS = (
    ("vllm.renderers.online_renderer", "OnlineRenderer"),
    ("vllm.entrypoints.serve.render.serving", "OpenAIServingRender"),
)
_ERRORS = (
    "vllm.entrypoints.serve.exception_handling.error_response",
    "vllm.entrypoints.serve.utils.error_response",
    "vllm.entrypoints.utils",
)
"""Where `create_error_response` is that tells which HTTP status an exception becomes, newest first."""
_HARMONY = "vllm.entrypoints.openai.parser.harmony_utils"
_MODES = {
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV4ForConditionalGeneration": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
    "KimiK3ForConditionalGeneration": "kimi_k3",
    "InklingForCausalLM": "inkling",
    "InklingForConditionalGeneration": "inkling",
    "MoonshotKimiaForCausalLM": "kimi_audio",
    "Alpamayo2Super": "alpamayo2_super",
    "Grok1ForCausalLM": "grok2",
    "QWenLMHeadModel": "qwen_vl",
}
"""Tokenizer modes that an architecture stands for, where this vLLM has them (config/model.py, `__post_init__`)."""
_MOST_TOKENS = 10_000_000
"""Stands for `--max-model-len`: a prompt that is too long for the model is another matter."""
_KEPT = 4
_CHARS = 2000


class TooOldError(Exception):
    """This vLLM renders only inside a server that has an engine."""


def render(far: Far, request: dict[str, Any]) -> dict[str, Any]:
    """The prompts of `bodies`, chat-completion requests.

    Args:
        far: keeps the servers by key.
        request: `key`, of a server; `files` of its model (see `vocabularies.unpacked`) and `server` (see `Server`),
            both absent where the key is known; `bodies`.

    Returns:
        `unknown` where the key is not known (any more), `problem` where no server can be made of the files, else
        `prompts`: for each body `ids` and `text`, or `error`.
    """
    key = request["key"]
    if "files" not in request:
        if key not in far.servers:
            return {"unknown": True}
        return {"prompts": [far.servers[key].prompt(body) for body in request["bodies"]]}
    with unpacked(request["files"]) as folder:
        try:
            server = Server(folder, request["server"])
        except Exception as error:
            return {"problem": _described(error)}
        far.servers[key] = server
        while len(far.servers) > _KEPT:
            far.servers.pop(next(iter(far.servers)))
        return {
            "mode": server.mode,
            "harmony": server.harmony,
            "prompts": [server.prompt(body) for body in request["bodies"]],
        }


OPS = {"render": render}


class Server:
    """That part of a chat server which makes prompts.

    Args:
        folder: the model's small files.
        given: `chat_template` (text), `content_format`, `default_kwargs`, `effort_map`, `tokenizer_mode`,
            `exclude_tools`: what the server was started with; each may be absent.
    """

    def __init__(self, folder: str, given: dict[str, Any]) -> None:
        made = first_there(_SERVERS)
        if made is None:
            # 0.18 imports in a circle, which has to be entered where its server does.
            first_there([(name, "OpenAIServingChat") for name in SERVERS])
            made = first_there(_SERVERS, needed=True)
        if made is None:
            raise TooOldError("this vLLM is too old: 0.18 is the oldest whose prompts can be asked for")
        self._request: Any = first_there([(name, "ChatCompletionRequest") for name in REQUESTS])
        self._status: Any = first_there([(name, "create_error_response") for name in _ERRORS])
        config = _read(folder, "config.json")
        self.harmony = config.get("model_type") == "gpt_oss"
        self.mode = given.get("tokenizer_mode") or _mode(config)
        model = _model_config(folder, config, self.mode)
        self._renderer = _renderer(model, required=not self.harmony)
        values: dict[str, Any] = {
            "model_config": model,
            "renderer": self._renderer,
            "io_processor": None,
            "model_registry": None,
            "request_logger": None,
            "chat_template": given.get("chat_template"),
            "chat_template_content_format": given.get("content_format") or "auto",
            # Whether tools are offered to a parser is not asked here.
            "enable_auto_tools": True,
            "exclude_tools_when_tool_choice_none": bool(given.get("exclude_tools")),
            "default_chat_template_kwargs": given.get("default_kwargs"),
            "reasoning_effort_map": given.get("effort_map"),
        }
        taken = inspect.signature(made.__init__).parameters
        self._server: Any = made(**{name: value for name, value in values.items() if name in taken})
        # A server with a tool parser refuses no tool_choice, and what else parsers change is not the prompt.
        self._server.parser = _AnyParser
        self._server.tool_parser = _AnyTools
        # A template that does not end costs this process instead, as everything else that does not.
        os.environ["VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT"] = "0"
        self._loop = asyncio.new_event_loop()
        # A processor's template is read late, and kept by the folder's name: now, while the folder is there.
        resolve: Any = first_there([("vllm.renderers.hf", "resolve_chat_template")])
        with contextlib.suppress(Exception):
            resolve(self._renderer.tokenizer, None, None, model_config=model)

    def prompt(self, body: dict[str, Any]) -> dict[str, Any]:
        """`ids` and `text` (None where only the ids are known), or `error`: what the client would be answered."""
        try:
            request = self._request(**body)
            answer = self._loop.run_until_complete(self._server.render_chat(request))
            if not isinstance(answer, tuple):
                return {"error": _refusal(answer)}
            ids = [int(number) for number in answer[1][0]["prompt_token_ids"]]
            text = answer[1][0].get("prompt")
            known = isinstance(text, str)
            return {"ids": ids, "text": text if known else None, "shown": None if known else self._shown(ids)}
        except Exception as error:
            return {"error": {**_described(error), "status": self._http(error)}}

    def _shown(self, ids: list[int]) -> str:
        """The text of a prompt that is made as ids."""
        if self.harmony:
            return str(importlib.import_module(_HARMONY).get_encoding().decode(ids))
        return str(self._renderer.tokenizer.decode(ids, skip_special_tokens=False))

    def _http(self, error: Exception) -> int:
        if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
            return 400
        try:
            answer = self._status(error)
            return int(getattr(answer, "error", answer).code)
        except Exception:
            return 500


class _AnyTools:
    """In place of the tool parser of a server: changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def adjust_request(self, request: Any) -> Any:
        return request

    def set_prompt_token_ids(self, ids: Any) -> None:
        pass


class _AnyParser(_AnyTools):
    """In place of both parsers of a server."""

    tool_parser_cls: Any = _AnyTools
    reasoning_parser_cls: Any = None
    always_adjust_request = False


def _renderer(model: SimpleNamespace, *, required: bool) -> Any:
    """This vLLM's renderer for the model; one without a tokenizer where none can be built and none is `required`."""
    config = SimpleNamespace(
        model_config=model,
        parallel_config=SimpleNamespace(_api_process_rank=0, _api_process_count=1),
        cache_config=SimpleNamespace(enable_prefix_caching=False),
        observability_config=SimpleNamespace(),
        scheduler_config=SimpleNamespace(),
    )
    make: Any = importlib.import_module("vllm.renderers.registry").renderer_from_config
    try:
        return make(config)
    except Exception:
        if required:
            raise
        return SimpleNamespace(tokenizer=None, get_tokenizer=lambda: None)


def _model_config(folder: str, config: dict[str, Any], mode: str) -> SimpleNamespace:
    """All that rendering reads of a `ModelConfig`."""
    values = SimpleNamespace(**{"model_type": "", **config})
    return SimpleNamespace(
        model=folder,
        tokenizer=folder,
        tokenizer_mode=mode,
        tokenizer_revision=None,
        revision=None,
        code_revision=None,
        trust_remote_code=False,
        runner_type="generate",
        model_impl="auto",
        skip_tokenizer_init=False,
        hf_config=values,
        hf_text_config=values,
        max_model_len=_MOST_TOKENS,
        enable_prompt_embeds=False,
        multimodal_config=None,
        is_multimodal_model=False,
        supports_multimodal_inputs=False,
        is_encoder_decoder=False,
        encoder_config=None,
        renderer_num_workers=1,
        allowed_local_media_path="",
        allowed_media_domains=None,
        generation_config="vllm",
        override_generation_config={},
        get_diff_sampling_param=dict,
        get_multimodal_config=lambda: None,
        get_vocab_size=lambda: _MOST_TOKENS,
    )


def _mode(config: dict[str, Any]) -> str:
    """The tokenizer mode that this vLLM takes for the architecture."""
    found = next((_MODES[name] for name in config.get("architectures") or () if name in _MODES), None)
    if found is None:
        return "auto"
    made: Any = _attribute("vllm.config.model", "ModelConfig")
    source = inspect.getsource(made) if made is not None else ""
    return found if f'tokenizer_mode = "{found}"' in source else "auto"


def _read(folder: str, name: str) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _refusal(answer: Any) -> dict[str, Any]:
    """What an `ErrorResponse` says."""
    error = getattr(answer, "error", answer)
    return {"class": str(error.type), "message": str(error.message)[:_CHARS], "status": int(error.code), "line": None}


def _described(error: BaseException) -> dict[str, Any]:
    """The class and text of an error, and of the one below it; `line` is a template's, from 1."""
    chain = list(itertools.islice(_causes(error), 8))
    places = [
        frame.lineno
        for cause in chain
        for frame in traceback.extract_tb(cause.__traceback__)
        if frame.filename in ("<template>", "<unknown>")
    ]
    lines = [cause.lineno for cause in chain if isinstance(getattr(cause, "lineno", None), int)]
    return {
        "class": type(error).__name__,
        "message": _text(error)[:_CHARS],
        "below": type(chain[-1]).__name__ if len(chain) > 1 else None,
        "line": next(iter((*lines, *reversed(places))), None),
    }


def _causes(error: BaseException | None) -> Any:
    while error is not None:
        yield error
        error = error.__cause__


def _text(error: BaseException) -> str:
    """The message as one line; of a request that is none, what is wrong with it where."""
    errors = getattr(error, "errors", None)
    if type(error).__name__ == "ValidationError" and callable(errors):
        parts = (f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in errors())
        return " ".join("; ".join(parts).split())
    return " ".join(str(error).split())
