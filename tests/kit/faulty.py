"""The good plugin with one fault each, and a fake vLLM that it runs on."""

from __future__ import annotations

from pathlib import Path

from ..parsers.fake_vllm import fake_vllm

GOOD = Path(__file__).parent / "plugins" / "run" / "good.py"
_FULL = "        if self.off:\n            return None, model_output\n"
_LAST = (
    "        return DeltaMessage(reasoning=reasoning or None, content=content or None)"
    " if reasoning or content else None"
)

FAULTS: dict[str, tuple[str, str]] = {
    "class-state": (
        "        self.streams = True\n",
        "        self.streams = True\n        type(self).latest = current_text\n",
    ),
    "class-state-spoils": (
        "        self.streams = True\n",
        "        self.streams = True\n        cls = type(self)\n        cls.calls = getattr(cls, 'calls', 0) + 1\n"
        "        if cls.calls > 40:\n            return DeltaMessage(content=delta_text)\n",
    ),
    "state-on-the-tokenizer": (
        "    @property\n    def reasoning_start_str",
        '    text = property(\n        lambda self: getattr(self.model_tokenizer, "held", ""),\n'
        '        lambda self, value: setattr(self.model_tokenizer, "held", value),\n    )\n\n'
        "    @property\n    def reasoning_start_str",
    ),
    "one-instance": (
        "    def __init__",
        "    def __new__(cls, *args, **kwargs):\n"
        '        cls.one = vars(cls).get("one") or super().__new__(cls)\n        return cls.one\n\n    def __init__',
    ),
    "marker-in-two-deltas": ("            held = next(", "            held = 0 and next("),
    "last-id-alone": (
        "        for token_id in reversed(input_ids):\n            if token_id in",
        "        for token_id in input_ids[-1:]:\n            if token_id in",
    ),
    "none": ("        if self.off:\n            return True\n", "        if True:\n            return None\n"),
    "ignores-the-switch": ('chat.get("enable_thinking") is False', "False"),
    "says-nothing": (_LAST, _LAST.removesuffix(" if reasoning or content else None")),
    "counts-none": ("        return sum(token_id", "        return 0 and sum(token_id"),
    "raises": (_FULL, f"{_FULL}        model_output[0]\n"),
    "exits": (_FULL, f'{_FULL}        if "Better" in model_output:\n            __import__("os")._exit(3)\n'),
    "exits-on-nothing": (_FULL, f'{_FULL}        if not model_output:\n            __import__("os")._exit(3)\n'),
    "exits-in-a-stream": (
        "        self.streams = True\n",
        '        self.streams = True\n        if "Better" in current_text:\n            raise SystemExit(3)\n',
    ),
    "exits-always": (_FULL, f"{_FULL}        raise SystemExit(3)\n"),
    "crashes": (
        _FULL,
        f'{_FULL}        if "Better" in model_output:\n            import os\n\n            os.kill(os.getpid(), 11)\n',
    ),
    "hangs": (_FULL, f'{_FULL}        while "Better" in model_output:\n            pass\n'),
    "unruly": (
        _FULL,
        f'{_FULL}        print("noise", flush=True)\n        open("litter.txt", "w").close()\n'
        '        if "Better" in model_output:\n            import subprocess\n\n'
        '            print(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid, file=open(PIDS, "a"))\n',
    ),
}
"""What is replaced in the good plugin, by the fault that makes."""


def plugin(folder: Path, fault: str | None = None, **names: str) -> Path:
    """The good plugin with a fault, as a file; `names` are texts that it may need, as constants."""
    text = GOOD.read_text(encoding="utf-8")
    if fault is not None:
        old, new = FAULTS[fault]
        assert text.count(old) == 1, fault
        text = text.replace(old, new)
    text = text.replace(
        "START, END", "".join(f"{name} = {value!r}\n" for name, value in names.items()) + "START, END", 1
    )
    path = folder / f"{fault or 'good'}.py".replace("-", "_")
    path.write_text(text, encoding="utf-8")
    return path


def fake(folder: Path, *, version: str = "0.33.0", layout: str = "parser") -> str:
    """A fake vLLM with what the good plugin imports; the `--vllm` value for it."""
    value = fake_vllm(folder, version=version, layout=layout)
    protocol = folder / "vllm" / "entrypoints" / "generate" / "base" / "protocol"
    protocol.mkdir(parents=True, exist_ok=True)
    for each in (protocol, *list(protocol.parents)[:3]):
        (each / "__init__.py").touch()
    (protocol / "__init__.py").write_text("from vllm.reasoning import DeltaMessage\n", encoding="utf-8")
    reasoning = folder / "vllm" / "reasoning" / "__init__.py"
    text = reasoning.read_text(encoding="utf-8")
    more = "        self.model_tokenizer = tokenizer\n        self.vocab = tokenizer.get_vocab()\n"
    reasoning.write_text(text.replace("        self.model_tokenizer = tokenizer\n", more, 1), encoding="utf-8")
    return value
