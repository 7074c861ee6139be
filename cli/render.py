"""Not written yet."""


def render() -> None:
    """Not written yet."""
    raise NotImplementedError
