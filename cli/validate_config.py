"""Not written yet."""


def validate_config() -> None:
    """Not written yet."""
    raise NotImplementedError
