"""Fixtures of the tests that need real packages: one vLLM process a version, shared by all tests that ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .driver import VllmDriver


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--parser-cases", type=int, default=60, help="generated cases a parser and vLLM version")


@pytest.fixture(scope="session")
def parser_cases(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--parser-cases"))


@pytest.fixture(scope="session")
def vllm_0_33() -> Iterator[VllmDriver]:
    with VllmDriver("0.33.0") as driver:
        yield driver


@pytest.fixture(scope="session")
def vllm_0_32() -> Iterator[VllmDriver]:
    with VllmDriver("0.32.0") as driver:
        yield driver
