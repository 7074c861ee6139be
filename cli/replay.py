"""Not written yet."""


def replay() -> None:
    """Not written yet."""
    raise NotImplementedError
