"""Not written yet."""


def rules() -> None:
    """Not written yet."""
    raise NotImplementedError
