"""Not written yet."""


def audit() -> None:
    """Not written yet."""
    raise NotImplementedError
