"""The program that runs in the other interpreter, as one text, and the loader that reads it there."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

LOADER = """
import os, sys
sys.path[:] = [entry for entry in sys.path if entry]
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(1)
        data += part
    return data
length = b""
while not length.endswith(b"\\n"):
    length += read(1)
exec(compile(read(int(length)), "<reasonctl bridge>", "exec"), {"__name__": "reasonctl_bridge"})
""".strip()
"""What `-c` gets: it reads the length of the program in bytes, a line break, and the program, from standard input."""


@cache
def program() -> bytes:
    """The length and the text of everything in `far/`, for the loader."""
    sources = {
        file.name.removesuffix(".py"): file.read_text(encoding="utf-8")
        for file in files(f"{__package__}.far").iterdir()
        if file.name.endswith(".py") and file.name != "__init__.py"
    }
    text = f"{sources.pop('bootstrap')}\nstart({dict(sorted(sources.items()))!r})\n".encode()
    return b"%d\n%s" % (len(text), text)
