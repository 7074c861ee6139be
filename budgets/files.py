"""Reading a text file that the user named: its bytes as text, or one line that says what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import InputError
from .document import named

_WIDE = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte-order marks of what Windows tools write, the longer ones first."""
MAX_BYTES = 64 * 1024 * 1024
"""A configuration, or a list of requests, is smaller than this."""


def read_text(path: Path, *, shown: str) -> str:
    """The file's text, CRLF line ends made LF, a byte-order mark left out.

    Args:
        path: the file.
        shown: its name as the user wrote it.

    Raises:
        InputError: it is missing, no file, unreadable, too large or not UTF-8.
    """
    try:
        if path.is_dir():
            raise InputError("this is a folder", source=shown, mend="name the file in it")
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise InputError(f"larger than {MAX_BYTES // 2**20} MiB", source=shown, mend="give the part that matters")
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", source=shown, mend="check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", source=shown, mend="check the path and its permissions") from None
    return decode(data, shown=shown)


def read_stdin() -> str:
    """What stdin holds. Raises InputError where it is no text."""
    return decode(sys.stdin.buffer.read(), shown="-")


def decode(data: bytes, *, shown: str) -> str:
    """Text with LF line ends: UTF-8, or UTF-16 and UTF-32 behind their byte-order marks.

    Raises:
        InputError: it is binary, or a byte is wrong; the first one's line and column are named.
    """
    wide = next((encoding for mark, encoding in _WIDE if data.startswith(mark)), None)
    try:
        text = data.decode(wide or "utf-8-sig")
        if "\x00" in text:
            raise InputError("this is a binary file", source=named(shown), mend="give a text file")
    except UnicodeDecodeError as error:
        if wide is not None or b"\x00" in data:
            what = f"not {wide.upper()}, as its first bytes say" if wide is not None else "this is a binary file"
            raise InputError(what, source=named(shown), mend="save it as UTF-8") from None
        before = data[: error.start].decode("utf-8", errors="replace")
        raise InputError(
            f"not UTF-8: byte 0x{data[error.start]:02x}",
            source=named(shown),
            line=before.count("\n") + 1,
            column=len(before) - (before.rfind("\n") + 1) + 1,
            mend="save it as UTF-8",
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
