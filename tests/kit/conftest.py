"""Calling a command as its script does, in this process."""

from ..cli.conftest import run

__all__ = ["run"]
