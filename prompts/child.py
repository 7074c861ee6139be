"""The process in which chat templates are compiled, read and rendered; `prompts.sandbox` starts it.

It imports transformers once, then forks a worker for each template: a worker that runs out of time or memory, or
crashes, costs that one template. Standard input is a Unix socket that carries one JSON object a message, and with
`fork` the worker's own socket. At its end (the parent is gone, however it went) every worker is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_MESSAGE_CHARS = 300
_TAKEN = frozenset(
    {
        *("messages", "tools", "add_generation_prompt", "continue_final_message"),
        *("conversations", "chat_template", "return_assistant_tokens_mask", "tokenize"),
    }
)
"""Arguments of the rendering itself; a chat-template kwarg of that name never reaches the template."""


def main() -> None:
    """Serve forks until the control socket closes."""
    control = socket.socket(fileno=0)
    from transformers.utils.chat_template_utils import render_jinja_template

    from . import reads

    # The first rendering pays for Jinja's own set-up; forked workers find it done.
    reads.parse("{{ messages }}")
    render_jinja_template(conversations=[[{"role": "user", "content": "x"}]], chat_template="{{ messages[0].content }}")
    control.sendall(b"ready\n")
    parent = os.getpid()
    workers: set[int] = set()
    try:
        while True:
            data, handles, _, _ = socket.recv_fds(control, 4096, 1)
            if not data:
                return
            request = json.loads(data)
            if request["op"] == "fork":
                pid = os.fork()
                if pid == 0:
                    control.close()
                    _work(socket.socket(fileno=handles[0]), request["limits"], parent)
                os.close(handles[0])
                workers.add(pid)
                answer: dict[str, Any] = {"pid": pid}
            else:
                workers.discard(request["pid"])
                answer = {"status": _reap(request["pid"], own_end=request["wait"])}
            control.sendall(json.dumps(answer).encode() + b"\n")
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _reap(pid: int, *, own_end: bool) -> int:
    """The worker's exit status. `own_end`: its socket is closed, so it gets a second to end by itself."""
    for _ in range(100 if own_end else 0):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _work(channel: socket.socket, limits: dict[str, Any], parent: int) -> None:
    """One template's life: read it, then answer batches of renderings. Never returns."""
    try:
        _die_with(parent)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _limit_memory(limits["memory_bytes"])
        stream = channel.makefile("rwb")
        worker = _Worker(limits)
        for line in stream:
            for answer in worker.answers(json.loads(line)):
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()
    except BrokenPipeError:
        pass
    finally:
        os._exit(0)


class _Worker:
    """Holds the template and the clock. The alarm that ends a rendering is the kernel's: no Python code holds it up."""

    def __init__(self, limits: dict[str, Any]) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.text = ""
        self.declared: frozenset[str] = frozenset()
        self.parts = False
        self.dead = False

    def answers(self, request: dict[str, Any]) -> Any:
        """Yield one answer for a template, or one for each rendering of a batch."""
        if request["op"] == "template":
            yield self._guarded(lambda: self._read(request["text"]))
            return
        for item in request["items"]:
            if self.dead:
                yield _failed("unseen", "not rendered: the template had already used up its memory")
            else:
                yield self._guarded(lambda item=item: self._render(item))

    def _guarded(self, action: Any) -> dict[str, Any]:
        left = self.limits["template_seconds"] - (time.monotonic() - self.started)
        signal.setitimer(signal.ITIMER_REAL, max(0.001, min(self.limits["render_seconds"], left)))
        try:
            answer: dict[str, Any] = action()
        except MemoryError:
            self.dead = True
            answer = _failed("memory", f"the template needs more than {self.limits['memory_bytes'] >> 20} MiB")
        except Exception as error:  # whatever a foreign template raises is its result
            answer = _explained(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return answer

    def _read(self, text: str) -> dict[str, Any]:
        from . import reads

        self.text = text
        tree = reads.parse(text)
        self.declared = reads.declared(tree)
        self.parts = reads.wants_parts(tree)
        names = reads.kwargs_read(tree, self.declared)
        return {
            "reads": sorted(names),
            "declared": sorted(self.declared),
            "compared": {
                name: [value for value in values if _is_whole(value)]
                for name, values in reads.compared_values(tree, names).items()
            },
            "wants_parts": self.parts,
        }

    def _render(self, item: dict[str, Any]) -> dict[str, Any]:
        """One prompt. Contents go in the form that vLLM would take, in the other one where the template needs that."""
        if item["parts"] is not None:
            return self._render_as(item, parts=item["parts"])
        try:
            return self._render_as(item, parts=self.parts)
        except MemoryError:
            raise
        except Exception:
            with contextlib.suppress(Exception):
                return self._render_as(item, parts=not self.parts)
            raise

    def _render_as(self, item: dict[str, Any], *, parts: bool) -> dict[str, Any]:
        from transformers.utils.chat_template_utils import render_jinja_template

        # `apply_chat_template` drops keys whose value is None before it renders.
        messages = [
            {key: value for key, value in message.items() if value is not None}
            for message in (_in_form(message, parts) for message in item["messages"])
        ]
        kwargs = {name: value for name, value in item["kwargs"].items() if name in self.declared and name not in _TAKEN}
        (text,), _ = render_jinja_template(
            conversations=[messages],
            tools=item["tools"],
            chat_template=self.text,
            add_generation_prompt=item["add_generation_prompt"],
            continue_final_message=item["continue_final_message"],
            **{**item["special_tokens"], **kwargs},
        )
        if len(text) > self.limits["output_chars"]:
            return _failed("output", f"the prompt is longer than {self.limits['output_chars']} characters")
        if not _is_whole(text):
            return _failed("raised", "the prompt holds half a character (a lone surrogate), which no tokenizer takes")
        return {"text": text}


def _in_form(message: dict[str, Any], parts: bool) -> dict[str, Any]:
    """The message with its text as a list of parts, or as one string with a line for each part.

    Tool results are strings in either form. Lists that hold more than text stay lists (vLLM 0.33.0,
    renderers/chat_utils/chat_message.py; it puts a model's own placeholders there, which no rendering here knows).
    """
    content = message.get("content")
    parts = parts and message.get("role") != "tool"
    if isinstance(content, str) and parts:
        return {**message, "content": [{"type": "text", "text": content}]}
    if isinstance(content, list) and not parts:
        parts_read = (
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part for part in content
        )
        texts = [text for text in parts_read if isinstance(text, str)]
        if len(texts) == len(content):
            return {**message, "content": "\n".join(texts)}
    return message


def _is_whole(value: Any) -> bool:
    """No text of half a character: UTF-8 has none, so neither has a prompt or a report."""
    try:
        str(value).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _failed(kind: str, message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, "line": None, "by_template": False, **more}}


def _explained(error: Exception) -> dict[str, Any]:
    """What went wrong, as the template's author would look for it: the message and the template's line."""
    from jinja2 import TemplateError
    from jinja2.exceptions import SecurityError, TemplateSyntaxError

    line = None
    if isinstance(error, TemplateSyntaxError):
        line = error.lineno
    else:
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<template>":
                line = trace.tb_lineno
            trace = trace.tb_next
    # transformers' raise_exception raises the bare class; Jinja's own errors are subclasses.
    by_template = type(error) is TemplateError
    # transformers quotes the whole prompt in some of its messages.
    text = " ".join(str(error).encode("utf-8", "backslashreplace").decode().split())[:_MESSAGE_CHARS]
    message = text if by_template else f"{type(error).__name__}: {text}"
    kind = "refused" if isinstance(error, SecurityError) else "raised"
    return _failed(kind, message, line=line, by_template=by_template)


def _die_with(parent: int) -> None:
    """Linux: the kernel kills this worker when the process that forked it is gone; elsewhere `main` ends it."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _limit_memory(extra: int) -> None:
    """Allow `extra` bytes of address space more than the process has now. No limit where there is no such thing."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as statm:  # noqa: PTH123  (read under a limit: no extra import)
            pages = int(statm.read().split()[0])
        limit = pages * resource.getpagesize() + extra
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
