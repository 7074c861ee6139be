"""The errors a user can meet. Each names the input, the place in it and the mend; the command line prints just that."""

from __future__ import annotations


class ReasonctlError(Exception):
    """The tool failed and could make no result (exit code 3)."""

    exit_code = 3


class InputError(ReasonctlError):
    """The call or an input of it cannot be understood (exit code 2).

    Args:
        message: what is wrong, without a full stop.
        source: the file, flag or URL that is wrong; None when it is the call as a whole.
        line: 1-based line in `source`, where there is one.
        column: 1-based column in that line.
        mend: what to do instead; None where the message says it all.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        mend: str | None = None,
    ) -> None:
        self.message = message
        self.source = source
        self.line = line
        self.column = column
        self.mend = mend
        place = ":".join(str(part) for part in (source, line, column if line is not None else None) if part is not None)
        text = f"{place}: {message}" if place else message
        super().__init__(" ".join(f"{text}; {mend}".split()) if mend else " ".join(text.split()))
