"""Opening a recording: a file or stdin, plain, gzip or zstd, as text that is read a little at a time."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ..errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD = 64 * 1024
"""Bytes that are looked at to tell a format by its content."""

STDIN = "<stdin>"
"""What standard input is called."""
READ = "reasonctl.trace/1 lines, an event stream, a server's answers, a cassette, a HAR file or plain text"
"""What is read, for messages."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_PIECE = 1024
"""Compressed bytes taken at once: what they become is held in memory, a few ten MiB where someone means us harm."""
_UNDECODABLE = re.compile("[\udc80-\udcff]")


class Source:
    """One input as text. Lines end in LF, CRLF or CR; bytes that are no UTF-8 become lone surrogates (see `decodes`).

    `head` is the text's beginning, up to HEAD bytes, `whole` says that there is no more. `problem` is set once reading
    stopped early (a compressed file cut short); what was read until then is good.
    """

    def __init__(self, name: str, raw: IO[bytes], watch: Callable[[int], None] | None = None) -> None:
        self.name = name
        self.problem: str | None = None
        self._raw = raw
        plain = _decompressed(_Prefixed(_Counted(raw, watch) if watch else raw, self))
        first = _read_up_to(plain, HEAD)
        encoding = "utf-16" if first[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
        self.head = first.decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")
        self.whole = len(first) < HEAD
        if b"\x00" in first and encoding != "utf-16":
            raise InputError("this is a binary file, not a recording", source=name, mend=f"give {READ}")
        plain.push_back(first)
        buffered = cast(IO[bytes], io.BufferedReader(plain, HEAD))
        self.text = io.TextIOWrapper(buffered, encoding=encoding, errors=errors, newline=None)

    def lines(self) -> Iterator[tuple[int, str]]:
        """(1-based number, text without its line end) of every line."""
        for number, line in enumerate(self.text, 1):
            yield number, line.removesuffix("\n")

    def close(self) -> None:
        if self.name != STDIN:
            self._raw.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(path: str, watch: Callable[[int], None] | None = None) -> Source:
    """Open a file, or stdin for `-`.

    Args:
        path: what the user wrote.
        watch: called with the number of bytes of the file read so far (compressed ones, where it is compressed).

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", source=STDIN, mend="pipe a recording into it, or name a file")
        return Source(STDIN, sys.stdin.buffer, watch)
    try:
        raw = Path(path).open("rb")  # noqa: SIM115  (the Source closes it)
    except IsADirectoryError:
        raise InputError("this is a folder", source=path, mend="name the files: FOLDER/*.jsonl") from None
    except FileNotFoundError:
        raise InputError("no such file", source=path, mend="check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot be read: {reason}", source=path, mend="check the path and its permissions") from None
    try:
        return Source(path, raw, watch)
    except BaseException:
        raw.close()
        raise


def decodes(text: str) -> bool:
    """Whether a text that came from a Source was UTF-8."""
    return text.isascii() or _UNDECODABLE.search(text) is None


class _Counted(io.RawIOBase):
    """Tells the watcher how far the file has been read."""

    def __init__(self, inner: IO[bytes], watch: Callable[[int], None]) -> None:
        self._inner = inner
        self._watch = watch
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = self._inner.read(len(view))
        view[: len(data)] = data
        self._count += len(data)
        self._watch(self._count)
        return len(data)


class _Prefixed(io.RawIOBase):
    """A byte stream to which bytes already read can be given back; a decoder's failure ends it, noted in `owner`."""

    def __init__(self, inner: IO[bytes] | io.RawIOBase, owner: Source, *, packed: str = "") -> None:
        self._inner = inner
        self.owner = owner
        self._packed = packed
        self._prefix = b""

    def readable(self) -> bool:
        return True

    def push_back(self, data: bytes) -> None:
        self._prefix = data + self._prefix

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        if self._prefix:
            data = self._prefix[: len(view)]
            self._prefix = self._prefix[len(data) :]
        else:
            errors: tuple[type[Exception], ...] = (zlib.error, gzip.BadGzipFile, *_zstd_errors())
            try:
                data = self._inner.read(len(view)) or b""
            except EOFError:
                self.owner.problem = f"truncated {self._packed}: the compressed data ends here"
                data = b""
            except errors as error:
                self.owner.problem = f"broken {self._packed}: the compressed data cannot be read on from here ({error})"
                data = b""
        view[: len(data)] = data
        return len(data)


def _decompressed(stream: _Prefixed) -> _Prefixed:
    magic = _read_up_to(stream, 4)
    stream.push_back(magic)
    if magic.startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=cast(IO[bytes], stream))
        return _Prefixed(cast(IO[bytes], unpacked), stream.owner, packed="gzip")
    if magic == _ZSTD:
        return _Prefixed(_Zstd(stream), stream.owner, packed="zstd")
    return stream


class _Zstd(io.RawIOBase):
    """Decompressed frames, one after another. Raises EOFError where the last one is cut, which zstandard's own reader
    passes over in silence.
    """

    def __init__(self, packed: io.RawIOBase) -> None:
        import zstandard

        self._packed = packed
        self._start = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._start()
        self._inside = False
        self._data = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        while not self._data:
            piece = self._packed.read(_ZSTD_PIECE)
            if not piece:
                if self._inside:
                    raise EOFError
                return 0
            self._data = self._taken(piece)
        data = self._data[: len(view)]
        self._data = self._data[len(data) :]
        view[: len(data)] = data
        return len(data)

    def _taken(self, piece: bytes) -> bytes:
        parts = []
        while piece:
            parts.append(self._frame.decompress(piece))
            self._inside = not self._frame.eof
            piece = b""
            if self._frame.eof:
                piece = self._frame.unused_data
                self._frame = self._start()
        return b"".join(parts)


def _zstd_errors() -> tuple[type[Exception], ...]:
    zstandard = sys.modules.get("zstandard")
    return (zstandard.ZstdError,) if zstandard else ()


def _read_up_to(stream: io.RawIOBase, size: int) -> bytes:
    """`size` bytes, fewer only at the end: a pipe hands out what it has, which may be less than a head."""
    parts: list[bytes] = []
    missing = size
    while missing:
        part = stream.read(missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
