"""A running server that a command asks: which one, which model of it is meant, and what it is judged as."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError

if TYPE_CHECKING:
    from ..engine.endpoint import Endpoint
    from ..engine.kinds import Server
    from ..engine.live import LiveServer
    from ..parsers.target import Target
    from .options import CheckOptions

ServedModelName = Annotated[
    str | None, typer.Option(metavar="NAME", help="With --endpoint. Default: the one model it serves.")
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="With --endpoint: the variable that holds the API key.")
]


@contextmanager
def live_server(
    endpoint: str | None,
    *,
    served_model_name: str | None,
    api_key_env: str | None,
    max_requests: int | None,
    shown: bool,
) -> Iterator[LiveServer | None]:
    """The server at `--endpoint`, None without one.

    Args:
        endpoint: its address.
        served_model_name: which of its models; by default the one it serves.
        api_key_env: the variable that holds the key.
        max_requests: answers that may be asked for.
        shown: progress is shown on a terminal.

    Raises:
        InputError: the address, the key's variable or the model's name is wrong, or an option needs a server.
        EndpointError: the server cannot be reached.
    """
    if endpoint is None:
        needs_endpoint(served_model_name, api_key_env, max_requests)
        yield None
        return
    from ..engine.endpoint import Endpoint, key_from
    from ..engine.kinds import identify
    from ..engine.live import MOST, LiveServer

    with Endpoint(endpoint, key=key_from(api_key_env)) as at, _progress(shown=shown) as watch:
        server = identify(at)
        name = model_named(server, served_model_name, at)
        yield LiveServer(at, server, name, most=MOST if max_requests is None else max_requests, watch=watch)


def needs_endpoint(served_model_name: str | None, api_key_env: str | None, max_requests: int | None) -> None:
    """Refuse an option that says something of a running server where none is named. Raises InputError."""
    given = {"served-model-name": served_model_name, "api-key-env": api_key_env, "max-requests": max_requests}
    for name, value in given.items():
        if value is not None:
            raise InputError("goes with --endpoint", source=f"--{name}", mend="give --endpoint URL, or leave it out")


def named_vllm(options: CheckOptions) -> bool:
    """The call itself names a `--vllm`; one of the settings file is for what needs one."""
    from .settings import vllm_of

    return bool(options.engines.specs) and tuple(spec.text for spec in options.engines.specs) != vllm_of(
        options.settings
    )


def model_named(server: Server, name: str | None, at: Endpoint, *, prefer: str | None = None) -> str:
    """The model of a running server that is meant: the named one, else the one it serves.

    Args:
        server: what it said of itself.
        name: of the call.
        at: where it is.
        prefer: taken among several, where it is there.

    Raises:
        InputError: it has no such model, or several and none is named.
    """
    listed = at.hidden(", ".join(server.models))
    if name is not None:
        if server.models and name not in server.models:
            raise InputError(f"serves {listed}, and no {name!r}", source=at.url, mend="give one of them")
        return name
    roots = {server.roots.get(each, each) for each in server.models}
    if prefer in server.models:
        return str(prefer)
    if len(roots) == 1:  # several names for one model
        return server.models[0]
    what = f"serves {listed}" if server.models else "does not tell which models it serves"
    raise InputError(what, source=at.url, mend="say which one with --served-model-name")


def target_of(server: Server) -> Target | None:
    """The vLLM version that a running server is; None where it is none, or does not tell."""
    from ..parsers.target import parse_target

    if server.kind != "vllm" or not server.version:
        return None
    try:
        return parse_target(f"vllm=={server.version}")
    except InputError:  # a build of its own
        return None


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[int, int], None]]:
    if not shown or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console

    with Console(stderr=True).status("asking the server for prompts") as status:
        yield lambda done, total: status.update(f"answer {done + 1} of {total}")
