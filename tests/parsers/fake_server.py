"""What makes prompts in a vLLM, for the tiny package of `fake_vllm`: a chat server that does what a message says."""

from __future__ import annotations

from pathlib import Path

from .fake_vllm import fake_vllm

_SERVER = """
import os, time

class Refusal:
    def __init__(self, message, type="BadRequestError", code=400):
        self.message, self.type, self.code = message, type, code

class ErrorResponse:
    def __init__(self, error):
        self.error = error

class Renderer:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

class TemplateError(Exception):
    pass

class CLASS:
    def __init__(self, model_config, renderer, *, request_logger, chat_template, chat_template_content_format,
                 enable_auto_tools=False, default_chat_template_kwargs=None, EXTRA):
        self.renderer, self.parser, self.template = renderer, None, chat_template
        self.mode = model_config.tokenizer_mode
        self.kwargs = default_chat_template_kwargs or {}
        self.format = chat_template_content_format

    async def render_chat(self, request):
        self.parser(self.renderer.tokenizer, None).adjust_request(request)
        word = request.messages[-1]["content"]
        if word == "|exit|":
            os._exit(3)
        if word == "|hang|":
            time.sleep(3600)
        if word == "|refuse|":
            return ErrorResponse(Refusal("not that"))
        if word == "|template|":
            try:
                raise TemplateError("no such role")
            except TemplateError as error:
                raise ValueError("no such role") from error
        if word == "|break|":
            try:
                exec(compile("\\n\\n1 / 0", "<template>", "exec"))
            except ZeroDivisionError as error:
                raise ValueError("division by zero") from error
        if word == "|server|":
            raise KeyError("x")
        text = f"{self.template or ''}{self.mode} {self.format} {self.kwargs} {request.chat_template_kwargs} {word}"
        ids = list(self.renderer.tokenizer.encode(text))
        made = {"prompt_token_ids": ids}
        return [], [made if word == "|ids|" else {**made, "prompt": text}]
"""
_ERRORS = """
def create_error_response(error):
    from SERVER import ErrorResponse, Refusal
    kind = (400, "BadRequestError") if isinstance(error, ValueError) else (500, "InternalServerError")
    return ErrorResponse(Refusal(str(error), kind[1], kind[0]))
"""
_REGISTRY = """
import os

class Words:
    def encode(self, text):
        return [ord(letter) for letter in text]

    def decode(self, ids, skip_special_tokens):
        return "".join(map(chr, ids))

def renderer_from_config(config):
    from SERVER import Renderer
    folder = config.model_config.tokenizer
    if not os.path.exists(os.path.join(folder, "tokenizer.json")):
        raise OSError("no tokenizer there")
    return Renderer(Words())
"""
_REQUEST = """
class ChatCompletionRequest:
    def __init__(self, **fields):
        self.chat_template_kwargs = None
        self.skip_special_tokens = True
        self.__dict__.update(fields)
"""
_CONFIG = """
class ModelConfig:
    def __post_init__(self):
        self.tokenizer_mode = "deepseek_v4"
"""


def fake_server(folder: Path, *, newest: bool = True) -> str:
    """A `--vllm` value whose vLLM makes prompts too: as 0.25 and later do, or as 0.18 to 0.24 did."""
    value = fake_vllm(folder)
    where, name, extra = (
        ("vllm.renderers.online_renderer", "OnlineRenderer", "reasoning_effort_map=None")
        if newest
        else ("vllm.entrypoints.serve.render.serving", "OpenAIServingRender", "model_registry=None")
    )
    errors = "vllm.entrypoints.serve.exception_handling.error_response" if newest else "vllm.entrypoints.utils"
    sources = {
        where: _SERVER.replace("CLASS", name).replace("EXTRA", extra),
        errors: _ERRORS.replace("SERVER", where),
        "vllm.renderers.registry": _REGISTRY.replace("SERVER", where),
        "vllm.config.model": _CONFIG,
        "vllm.entrypoints.openai.chat_completion.protocol": _REQUEST,
    }
    for module, text in sources.items():
        path = folder.joinpath(*module.split("."))
        path.mkdir(parents=True, exist_ok=True)
        for parent in (path, *path.parents):
            if parent == folder:
                break
            (parent / "__init__.py").touch()
        (path / "__init__.py").write_text(text, encoding="utf-8")
    return value
