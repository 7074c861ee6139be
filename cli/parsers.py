"""Not written yet."""


def parsers() -> None:
    """Not written yet."""
    raise NotImplementedError
