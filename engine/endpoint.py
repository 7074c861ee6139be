"""A server that speaks OpenAI's API: where it is, how it is asked, and what every way of failing means to the user."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from ..errors import InputError, ReasonctlError

if TYPE_CHECKING:
    import httpx

CHAT = "/chat/completions"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 600.0
"""The longest wait for the next byte of an answer; a whole one comes only when the model has finished."""
_FEW = 300
_LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?")


class EndpointError(ReasonctlError):
    """The server could not be reached or failed; no fault of the call (exit code 3)."""


class RefusedError(InputError):
    """The server refused a request with a 4xx status (exit code 2).

    Attributes:
        status: the HTTP status.
        text: the server's own words.
    """

    def __init__(self, message: str, *, status: int, text: str, source: str, mend: str | None) -> None:
        super().__init__(message, source=source, mend=mend)
        self.status = status
        self.text = text


class ServerFailedError(EndpointError):
    """The server answered that it failed, or that it is busy: HTTP 5xx, 408, 425 or 429."""


class TimedOutError(EndpointError):
    """No answer began in time."""


class BrokenOffError(EndpointError):
    """The answer began and did not end."""


def key_from(variable: str | None) -> str | None:
    """The API key in an environment variable, None where no variable is named.

    Raises:
        InputError: it is not set, or holds what no header can carry. The message shows neither the name, which may be
            a key given by mistake, nor the value.
    """
    if variable is None:
        return None
    value = os.environ.get(variable, "").strip() if re.fullmatch(r"[A-Za-z_]\w*", variable) else ""
    if not value:
        raise InputError(
            "names no environment variable that is set",
            source="--api-key-env",
            mend="export the key under a name and give that name, not the key",
        )
    if not re.fullmatch(r"[!-~]+", value):
        raise InputError(
            "the variable holds what is no API key",
            source="--api-key-env",
            mend="export it without spaces or line breaks",
        )
    return value


class Endpoint:
    """One server. A context manager; keeps its connections open between requests.

    Args:
        url: the server (`http://host:8000`), its API (`.../v1`), or the full address of its chat completions.
        key: sent as a bearer token to this server and shown nowhere.
        seconds: the longest wait for the next byte.

    Raises:
        InputError: this is no such address.
    """

    def __init__(self, url: str, *, key: str | None = None, seconds: float = ANSWER_SECONDS) -> None:
        parts = _parts(url)
        path = parts.path.rstrip("/").removesuffix(CHAT)
        self._api = path or "/v1"
        self._root = self._api.removesuffix("/v1")
        self._query = f"?{parts.query}" if parts.query else ""
        self._base = f"{parts.scheme}://{parts.netloc}"
        self.url = self._base + path
        self._host = parts.hostname or ""
        self._key = key
        self._seconds = seconds
        self._client: httpx.Client | None = None

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def get(self, path: str, *, of_api: bool = False) -> Any:
        """The JSON at a path beside the API (or of it), None where there is none. Raises EndpointError."""
        return self._plain("GET", path, None, of_api=of_api)

    def ask(self, path: str, body: Any) -> Any:
        """The JSON that answers a body posted beside the API, None where nothing does. Raises EndpointError."""
        return self._plain("POST", path, body, of_api=False)

    def post(self, path: str, body: Any, *, of_api: bool = True, seconds: float | None = None) -> dict[str, Any]:
        """The JSON object that answers a body posted to the API, or beside it.

        Args:
            path: below the API, or below the server's root.
            body: what is posted.
            of_api: which of the two.
            seconds: the longest wait for the next byte, where it is not the endpoint's own.

        Raises:
            RefusedError: with a 4xx status.
            EndpointError: the server cannot be reached or fails.
            InputError: what answers speaks no JSON.
        """
        address = self._address(path, of_api=of_api)
        with self._opened("POST", address, body, seconds) as response, self._explained(seconds, begun=True):
            text = response.read().decode("utf-8", "replace")
        value = _json(text)
        if not isinstance(value, dict):
            raise self._no_api(response)
        return value

    def lines(self, path: str, body: Any) -> Iterator[str]:
        """The lines of the event stream that answers a body posted to the API, as they arrive.

        Raises:
            RefusedError, EndpointError, InputError: as `post`.
            BrokenOffError: the stream ends in an error.
        """
        with self._opened("POST", self._address(path, of_api=True), body) as response:
            if "html" in response.headers.get("content-type", ""):
                raise self._no_api(response)
            with self._explained(begun=True):
                yield from response.iter_lines()

    def hidden(self, text: str) -> str:
        """A text of the server's as it may be shown: in one line, shortened, without the key."""
        text = text.replace(self._key, "***") if self._key else text
        text = " ".join(text.split())
        return text if len(text) <= _FEW else text[: _FEW - 1] + "…"

    def _plain(self, method: str, path: str, body: Any, *, of_api: bool) -> Any:
        try:
            with self._opened(method, self._address(path, of_api=of_api), body) as response, self._explained():
                return _json(response.read().decode("utf-8", "replace"))
        except RefusedError as error:
            if of_api and error.status in (401, 403):
                raise
            return None  # a gateway may guard what stands beside the API, and hands none of it on

    def _address(self, path: str, *, of_api: bool) -> str:
        return f"{self._base}{self._api if of_api else self._root}{path}{self._query}"

    @contextmanager
    def _opened(self, method: str, address: str, body: Any, seconds: float | None = None) -> Iterator[httpx.Response]:
        import httpx

        if self._client is None:
            # A proxy of the environment is for the world outside, not for this machine.
            self._client = httpx.Client(
                timeout=self._timeout(None),
                trust_env=not _LOOPBACK.fullmatch(self._host),
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            )
        request = self._client.build_request(method, address, json=body, timeout=self._timeout(seconds))
        with self._explained(seconds):
            response = self._client.send(request, stream=True)
        try:
            if response.status_code >= 300:
                self._refuse(response)
            yield response
        finally:
            response.close()

    def _timeout(self, seconds: float | None) -> httpx.Timeout:
        import httpx

        return httpx.Timeout(seconds or self._seconds, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)

    def _refuse(self, response: httpx.Response) -> None:
        status = response.status_code
        with self._explained():
            text = self.hidden(_said(response.read().decode("utf-8", "replace")))
        if status < 400:
            where = self.hidden(response.headers.get("location", ""))
            raise InputError(f"redirects to {where}", source=self.url, mend="give that address") from None
        message = f"HTTP {status}{f': {text}' if text else ''}"
        if status >= 500 or status in (408, 425, 429):
            raise ServerFailedError(f"{self.url}: {message}")
        mend = {
            401: "name the variable that holds the key with --api-key-env",
            403: "name the variable that holds the key with --api-key-env",
            404: "check the address and the model's name",
        }.get(status)
        raise RefusedError(message, status=status, text=text, source=self.url, mend=mend)

    @contextmanager
    def _explained(self, seconds: float | None = None, *, begun: bool = False) -> Iterator[None]:
        """What a failing connection means.

        Args:
            seconds: how long was waited, where it was not the endpoint's own time.
            begun: the server had begun its answer.
        """
        import httpx

        try:
            yield
        except httpx.TimeoutException as error:
            if isinstance(error, (httpx.ConnectTimeout, httpx.PoolTimeout)):
                raise EndpointError(f"{self.url}: no answer within {CONNECT_SECONDS:g} s") from None
            slow: type[EndpointError] = BrokenOffError if begun else TimedOutError
            raise slow(f"{self.url}: no answer within {seconds or self._seconds:g} s") from None
        except httpx.ConnectError as error:
            raise EndpointError(f"{self.url}: {_why_unconnected(error)}") from None
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            what = "the answer broke off" if begun else "no answer"
            kind = BrokenOffError if begun else EndpointError
            raise kind(f"{self.url}: {what} ({self.hidden(str(error) or type(error).__name__)})") from None

    def _no_api(self, response: httpx.Response) -> InputError:
        kind = self.hidden(response.headers.get("content-type", "no type").partition(";")[0])
        return InputError(
            f"what answers there is no OpenAI-compatible server ({kind})",
            source=self.url,
            mend="give the server's address, such as http://localhost:8000/v1",
        )


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "holds a user name or a password", source="--endpoint", mend="give keys with --api-key-env, not in the URL"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url if "@" not in url else "it"
        raise InputError(f"{shown} is no URL", source="--endpoint", mend="write http://localhost:8000")
    return parts


def _why_unconnected(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "CERTIFICATE_VERIFY_FAILED" in text:
        reason = text.partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return (
            f"its TLS certificate is not trusted ({reason or 'unknown reason'}); name your authority's file in the"
            " environment variable SSL_CERT_FILE"
        )
    if "SSL" in text or "TLS" in text:
        return f"no TLS connection ({text.partition(' (_ssl')[0]}); is it http:// after all?"
    why = re.sub(r"^\[Errno -?\d+\] ", "", text) or type(error).__name__
    return f"cannot be reached ({why})"


def _said(body: str) -> str:
    """The message in an error body, in any of the forms servers use; the body itself where it is another."""
    value = _json(body)
    if isinstance(value, dict):
        inner = value.get("error", value)
        if isinstance(inner, str):
            return inner
        if isinstance(inner, dict):
            for key in ("message", "detail", "error_msg"):
                if inner.get(key):
                    return inner[key] if isinstance(inner[key], str) else json.dumps(inner[key], ensure_ascii=False)
    return "" if "<html" in body[:200].lower() or "<!doctype" in body[:200].lower() else body


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
