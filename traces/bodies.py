"""Bodies of recorded requests and responses: out of base64 and compression, parsed where they are JSON."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from .decode import BadValueError, NotJsonError, loads

MAX_BODY = 256 * 1024 * 1024
"""Bytes that a compressed body may become."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MEDIA = ("image/", "font/", "audio/", "video/")
"""What browsers record besides: no body of it is an answer."""
_EVENT_STREAM = "application/vnd.amazon.eventstream"
_PRELUDE = struct.Struct(">II")


class BodyError(ValueError):
    """A body that cannot be decoded; the message says why, `mend` what to do where that is known."""

    def __init__(self, message: str, mend: str | None = "record it with its body as text, or take it out") -> None:
        super().__init__(message)
        self.mend = mend


def body_of(message: Mapping[str, Any]) -> Any:
    """The body of a recorded request or response: parsed where it is JSON, else text; None where there is none.

    Knows the shapes of vcrpy, Ruby's VCR, go-vcr, PHP-VCR, Betamax, HAR, Polly.JS, nock, WireMock and batch outputs.

    Raises:
        BodyError: it is packed or compressed in a way that cannot be undone.
    """
    body = _found(message)
    if isinstance(body, dict):
        if str(body.get("mimeType") or "").startswith(_MEDIA):
            return None
        body = _inside(body)
    if isinstance(body, bytes):
        body = _decoded(body, headers_of(message))
    return parsed(body) if isinstance(body, str) else body


def parsed(text: str) -> Any:
    """A text as JSON where it is JSON, else itself. Raises BodyError for JSON that cannot be taken."""
    try:
        return loads(text)
    except BadValueError as error:
        raise BodyError(f"a body of this interaction cannot be taken ({error})") from None
    except NotJsonError:
        return text


def headers_of(message: Mapping[str, Any]) -> Mapping[str, str]:
    """A message's headers, names in lower case: given as a map, as a list of names and values, or as HAR has them."""
    found: dict[str, str] = {}
    headers = message.get("headers", message.get("rawHeaders"))
    if isinstance(headers, dict):
        for key, one in headers.items():
            found[str(key).lower()] = _first(one)
    elif isinstance(headers, list) and all(isinstance(one, dict) for one in headers):
        for one in headers:
            found[str(one.get("name")).lower()] = _first(one.get("value"))
    elif isinstance(headers, list):
        for name, value in zip(headers[::2], headers[1::2], strict=False):
            found[str(name).lower()] = _first(value)
    return found


def _first(value: Any) -> str:
    one = value[0] if isinstance(value, list) and value else value
    return one.decode("latin-1") if isinstance(one, bytes) else str(one or "")


def _found(message: Mapping[str, Any]) -> Any:
    for key in ("parsed_body", "jsonBody", "body", "base64Body", "postData", "content"):
        if message.get(key) is not None:
            return _unpacked(message[key]) if key == "base64Body" else message[key]
    return None


def _inside(body: dict[str, Any]) -> Any:
    """What a body that is an object holds: the text or bytes of one that is packed, else itself."""
    packed = body.get("base64_string")
    if isinstance(packed, str):
        return _unpacked(packed)
    text = body.get("string", body.get("text"))
    named = body.keys() == {"text"} or bool({"mimeType", "encoding", "encoded"} & body.keys())
    is_package = "string" in body or (isinstance(text, str) and named)
    if not is_package:
        return None if "mimeType" in body else body
    if "_file" in body:
        message = "the body of this interaction is in a file beside the recording"
        raise BodyError(message, "write the body of that file into the recording")
    if not isinstance(text, str):
        return text
    if "base64" in (body.get("encoding"), body.get("encoded")):
        return _in_pieces(text, _unpacked)
    if body.get("encoding") == "hex" or body.get("_isBinary") is True:
        return _in_pieces(text, _from_hex)
    return text


def _in_pieces(text: str, unpack: Callable[[str], bytes]) -> bytes:
    """Packed bytes, or a JSON list of them as Polly.JS keeps the pieces that a compressed answer arrived in."""
    try:
        pieces = loads(text)
    except NotJsonError:
        pieces = None
    if isinstance(pieces, list) and all(isinstance(one, str) for one in pieces):
        return b"".join(map(unpack, pieces))
    return unpack(text)


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise BodyError(f"the body of this interaction cannot be unpacked ({error})") from None


def hex_pieces(pieces: list[Any]) -> bytes | None:
    """The bytes of a list of hexadecimal texts, as nock keeps answers that are no text; None for any other list."""
    try:
        return b"".join(bytes.fromhex(one) for one in pieces) if pieces else None
    except (ValueError, TypeError):
        return None


def _unpacked(packed: Any) -> bytes:
    try:
        return base64.b64decode("".join(packed.split()), validate=True)
    except (ValueError, TypeError, AttributeError) as error:
        raise BodyError(f"the body of this interaction cannot be unpacked ({error})") from None


def _decoded(body: bytes, headers: Mapping[str, str]) -> Any:
    encoding = headers.get("content-encoding", "").lower()
    try:
        body = _decompressed(body, encoding)
    except _errors() as error:
        raise BodyError(f"the body of this interaction cannot be unpacked ({error})") from None
    if headers.get("content-type", "").startswith(_EVENT_STREAM):
        return list(_amazon_events(body))
    try:
        return body.decode()
    except UnicodeDecodeError:
        unread = f" ({encoding}-compressed)" if encoding else ""
        raise BodyError(f"the body of this interaction is no text{unread}") from None


def _decompressed(body: bytes, encoding: str) -> bytes:
    if body.startswith(_GZIP):
        return _bounded(zlib.decompressobj(31), body)
    if body.startswith(_ZSTD):
        zstandard = import_module("zstandard")
        unpacked: bytes = zstandard.ZstdDecompressor().stream_reader(body).read(MAX_BODY)
        return unpacked
    if encoding == "deflate":
        try:
            return _bounded(zlib.decompressobj(), body)
        except zlib.error:
            return _bounded(zlib.decompressobj(-15), body)
    if encoding == "br":
        return _brotli(body)
    return body


def _bounded(unpacker: Any, body: bytes) -> bytes:
    unpacked: bytes = unpacker.decompress(body, MAX_BODY)
    if unpacker.unconsumed_tail:
        raise BodyError(f"the body of this interaction becomes more than {MAX_BODY >> 20} MiB")
    if not unpacker.eof:
        raise BodyError("the body of this interaction cannot be unpacked (its compressed data is cut)")
    return unpacked


def _brotli(body: bytes) -> bytes:
    """A body that says it is Brotli: recorders often keep the header and the text it was unpacked to."""
    try:
        body.decode()
    except UnicodeDecodeError:
        pass
    else:
        return body
    for name in ("brotli", "brotlicffi"):
        try:
            module = import_module(name)
        except ImportError:
            continue
        try:
            unpacked: bytes = module.decompress(body)
        except module.error as error:
            raise BodyError(f"the body of this interaction cannot be unpacked ({error})") from None
        return unpacked
    raise BodyError("the body of this interaction is Brotli-compressed", "pip install brotli")


def _errors() -> tuple[type[Exception], ...]:
    zstandard = import_module("zstandard")
    return (OSError, EOFError, zlib.error, binascii.Error, zstandard.ZstdError)


def _amazon_events(body: bytes) -> Iterator[Any]:
    """The events of Amazon's binary stream, each as an object under its type's name.

    Raises BodyError where it is cut or broken. Source:
    https://docs.aws.amazon.com/transcribe/latest/dg/streaming-setting-up.html (event stream encoding)
    """
    at = 0
    while at < len(body):
        if len(body) - at < 16:
            raise BodyError("the event stream of this interaction is cut")
        length, head = _PRELUDE.unpack_from(body, at)
        if length < 16 + head or at + length > len(body):
            raise BodyError("the event stream of this interaction is cut")
        names = _amazon_headers(body[at + 12 : at + 12 + head])
        payload = parsed(body[at + 12 + head : at + length - 4].decode("utf-8", "replace"))
        at += length
        if isinstance(payload, dict) and isinstance(payload.get("bytes"), str):
            yield parsed(_unpacked(payload["bytes"]).decode("utf-8", "replace"))
        elif ":event-type" in names:
            yield {names[":event-type"]: payload}
        else:
            said = payload.get("message") if isinstance(payload, dict) else payload
            yield {"error": {"message": f"{names.get(':exception-type', 'error')}: {said}"}}


def _amazon_headers(head: bytes) -> dict[str, str]:
    """Names and values of the headers that are text, which are all that a stream of answers has."""
    found: dict[str, str] = {}
    at = 0
    while at < len(head):
        size = head[at]
        name = head[at + 1 : at + 1 + size].decode("latin-1")
        at += 1 + size
        if at + 3 > len(head) or head[at] != 7:
            break
        length = int.from_bytes(head[at + 1 : at + 3])
        found[name] = head[at + 3 : at + 3 + length].decode("utf-8", "replace")
        at += 3 + length
    return found
