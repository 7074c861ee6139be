"""Not written yet."""


def explain() -> None:
    """Not written yet."""
    raise NotImplementedError
