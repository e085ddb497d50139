"""One process with little memory for all attacks of a worker."""

from collections.abc import Iterator

import pytest

from tests.attacks.jail import Jail


@pytest.fixture(scope="session")
def jail() -> Iterator[Jail]:
    made = Jail()
    yield made
    made.close()
