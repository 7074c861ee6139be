"""A folder with a tiny `vllm` package of each layout, and a plugin whose parser does what the text it is given says."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

_BASE = """
import os

class ReasoningParser:
    def __init__(self, tokenizer, *args, **kwargs):
        self.model_tokenizer = tokenizer
        self.kwargs = dict(kwargs.get("chat_template_kwargs") or {})
        if self.kwargs.get("refuse"):
            raise RuntimeError("refused")

    def adjust_request(self, request):
        return request

    def is_reasoning_end(self, ids):
        return self.model_tokenizer.get_vocab()["</think>"] in ids

    def extract_reasoning(self, model_output, request):
        before, marker, after = model_output.partition("</think>")
        return (before, after or None) if marker else (model_output, None)

    def extract_reasoning_streaming(self, before, text, delta, before_ids, ids, delta_ids):
        end = self.model_tokenizer.get_vocab()["</think>"]
        if end in before_ids:
            return DeltaMessage(content=delta)
        if end in delta_ids:
            reasoning, _, content = delta.partition("</think>")
            return DeltaMessage(reasoning=reasoning or None, content=content or None)
        return DeltaMessage(reasoning=delta) if delta else None

    def count_reasoning_tokens(self, ids):
        return len(list(ids))

class DeltaMessage:
    def __init__(self, reasoning=None, content=None):
        self.reasoning, self.content = reasoning, content

class Keeping(ReasoningParser):
    def adjust_request(self, request):
        request.skip_special_tokens = False
        return request

class ReasoningParserManager:
    parsers = {"deepseek_r1": ReasoningParser, "qwen3": Keeping}

    @classmethod
    def list_registered(cls):
        return list(cls.parsers)

    @classmethod
    def get_reasoning_parser(cls, name):
        return cls.parsers[name]

    @classmethod
    def register_module(cls, name=None, force=True, module=None):
        def register(module):
            cls.parsers[name] = module
            return module
        return register
"""

_REQUEST = """
class ChatCompletionRequest:
    def __init__(self, model, messages, chat_template_kwargs=None):
        self.model, self.messages, self.chat_template_kwargs = model, messages, chat_template_kwargs
        self.skip_special_tokens = True
"""

_TOKENIZERS = """
import os

class Tokenizer:
    def __init__(self, folder):
        from tokenizers import Tokenizer
        assert sorted(os.listdir(folder)) == [
            "chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"
        ]
        self.backend = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))

    def get_vocab(self):
        return self.backend.get_vocab()

def get_tokenizer(folder, tokenizer_mode, trust_remote_code):
    assert (tokenizer_mode, trust_remote_code) == ("auto", False)
    return Tokenizer(folder)
"""

_PARSER = """
class Parser:
    def __init__(self, tokenizer, tools=None, **kwargs):
        self.reasoning = self.cls(tokenizer, **kwargs)
        self.text, self.ids, self.ended = "", [], None

    def adjust_request(self, request):
        return self.reasoning.adjust_request(request)

    def is_reasoning_end(self, ids):
        return self.reasoning.is_reasoning_end(ids)

    def parse(self, text, request, enable_auto_tools=False, model_output_token_ids=()):
        return (*self.reasoning.extract_reasoning(text, request), None)

    def parse_delta(self, delta_text, delta_token_ids, request, prompt_token_ids=None, *, finished):
        from vllm.reasoning import DeltaMessage
        if self.ended is None:
            self.ended = bool(prompt_token_ids and self.is_reasoning_end(prompt_token_ids))
        before, before_ids = self.text, self.ids
        self.text, self.ids = before + delta_text, before_ids + list(delta_token_ids)
        if self.ended:
            return DeltaMessage(content=delta_text)
        return self.reasoning.extract_reasoning_streaming(
            before, self.text, delta_text, before_ids, self.ids, list(delta_token_ids)
        )

    def count_reasoning_tokens(self, ids):
        return self.reasoning.count_reasoning_tokens(ids)
"""

_MANAGER = """
from vllm.parser.abstract_parser import Parser

class ParserManager:
    @classmethod
    def get_parser(cls, reasoning_parser_name):
        from vllm.reasoning import ReasoningParserManager
        return type("_Parser", (Parser,), {"cls": ReasoningParserManager.get_reasoning_parser(reasoning_parser_name)})
"""

_SERVING = """
class OpenAIServingChat:
    def chat_completion_stream_generator(self):
        if prompt_is_reasoning_end_arr[i]:
            pass
        elif reasoning_parser:
            if prompt_is_reasoning_end_arr[i]:
                pass
"""

UNRULY = '''
import os, signal, subprocess, sys, time
from vllm.reasoning import ReasoningParser, ReasoningParserManager

def misbehave(text):
    """Do what the text says; what it returns is the reasoning."""
    word = text.split("|")[1] if text.count("|") > 1 else ""
    if word in ("hang", "sleep") and "UNRULY_STARTED" in os.environ:
        open(os.environ["UNRULY_STARTED"], "w").close()
    if word == "hang":
        while True:
            pass
    if word == "sleep":
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    if word == "exit":
        os._exit(7)
    if word == "exit0":
        os._exit(0)
    if word == "sysexit":
        sys.exit(3)
    if word == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "kill":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    if word == "raise":
        raise ZeroDivisionError("by zero")
    if word == "number":
        return 5
    if word == "chatter":
        for stream in (sys.stdout, sys.stderr):
            stream.write("x" * 3_000_000 + "\\n{\\"id\\": 1}\\n")
            stream.flush()
        os.write(1, b"y" * 3_000_000)
    if word == "stdin":
        return sys.stdin.read() + "nothing to read"
    if word == "fork":
        os.fork()
    if word == "daemon":
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        return str(child.pid)
    if word == "orphan":
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            pid = os.fork()
            if pid:
                os.write(write, str(pid).encode())
                os._exit(0)
            while True:
                time.sleep(60)
        os.wait()
        return os.read(read, 100).decode()
    if word == "pids":
        return f"{os.getpid()} {os.getppid()}"
    return text

@ReasoningParserManager.register_module("unruly")
class Unruly(ReasoningParser):
    def is_reasoning_end(self, ids):
        return False

    def extract_reasoning(self, model_output, request):
        return misbehave(model_output), None

    def extract_reasoning_streaming(self, before, text, delta, before_ids, ids, delta_ids):
        return None
'''
"""A plugin for the fake vLLM and for a real one. Its parser obeys the word between the first two bars of an output.

Before it hangs or sleeps it opens the pipe that UNRULY_STARTED names, if that is set.
"""


def fake_vllm(folder: Path, *, version: str | None = "0.33.0", layout: str = "parser") -> str:
    """Write the package; the `--vllm` value that lays it over this Python.

    Args:
        folder: where to.
        version: what it calls itself; None: as a checkout without `_version.py` does.
        layout: `parser`, `delta`, `reasoning`, `blind` (the last without a look at the prompt) or `ancient`.
    """
    serving = _SERVING if layout != "blind" else _SERVING.partition("        elif")[0]
    modules = {
        "": f"__version__ = {version or 'dev'!r}",
        "reasoning": _BASE,
        "tokenizers": _TOKENIZERS,
        "tokenizers.hf": "def get_cached_tokenizer(made):\n    return made",
        "entrypoints.openai.chat_completion.protocol": _REQUEST,
        "entrypoints.openai.chat_completion.serving": serving,
    }
    if layout in ("parser", "delta"):
        modules |= {"parser": _MANAGER, "parser.abstract_parser": _PARSER}
    if layout == "delta":
        old = _PARSER.replace("    def parse(", "    def _parse(").replace(", *, finished):", "):")
        modules["parser.abstract_parser"] = old
    if layout == "ancient":
        modules["reasoning"] = _BASE.replace("def extract_reasoning", "def extract_reasoning_content")
    for name, text in modules.items():
        path = folder.joinpath("vllm", *name.split(".") if name else ())
        path.mkdir(parents=True, exist_ok=True)
        for parent in (path, *path.parents):
            if parent == folder:
                break
            (parent / "__init__.py").touch()
        (path / "__init__.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return f"{folder}:{sys.executable}"
