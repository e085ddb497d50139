"""Fixtures of the tests of layers and their kernels."""

from collections.abc import Iterator

import pytest

from weft.nn.kernels import choice


@pytest.fixture
def unforced() -> Iterator[None]:
    """Kernels chosen by the rules, also where the environment forces another way (make test-forced)."""
    with choice.use(cells="auto", linear="auto", fused="auto"):
        yield
