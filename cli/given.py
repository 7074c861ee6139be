"""What a user hands over on the command line: names that are not empty, and chat-template kwargs a server takes."""

from __future__ import annotations

from typing import Any

import typer

from ..errors import InputError

KWARGS = "--chat-template-kwargs"
_MEND = """write '{"enable_thinking": false}'"""


def not_empty(**values: str | None) -> None:
    """Refuse an option that was given an empty text, as by a shell variable that is not set.

    Args:
        values: options by their names with `_` for `-`; PATH for an argument.

    Raises:
        InputError: one is empty.
    """
    for name, value in values.items():
        if value is not None and not value.strip():
            flag = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InputError("is empty", source=flag, mend="give a value (is a shell variable unset?) or leave it out")


def kwargs_in(text: str) -> dict[str, Any]:
    """The kwargs in a `--chat-template-kwargs` value. Raises InputError for what is no JSON object."""
    from ..prompts.files import parse_json

    value = parse_json(text, source=KWARGS, mend=_MEND, exact=True)
    if not isinstance(value, dict):
        raise InputError("is not a JSON object", source=KWARGS, mend=_MEND)
    return value


def taken(kwargs: dict[str, Any], *, source: str) -> dict[str, Any]:
    """The kwargs that take effect in a server; a note on stderr names those that do not.

    Args:
        kwargs: a request's own chat-template kwargs.
        source: where they stand, for messages.

    Raises:
        InputError: vLLM answers a request with such kwargs with an error.
    """
    from ..prompts.kwargs import refused, without_effect

    bad = refused(kwargs)
    if bad:
        raise InputError(
            f"vLLM refuses a request with these chat-template kwargs: {', '.join(bad)}",
            source=source,
            mend="leave them out: they are arguments of the rendering, not of the template",
        )
    idle = without_effect(kwargs)
    if idle:
        typer.echo(
            f"reasonctl: {source}: {', '.join(idle)}: no effect, the request's own fields (or the server) decide",
            err=True,
        )
    return {name: value for name, value in kwargs.items() if name not in idle}
