"""What tests of compiled searches share. Read next: models.py."""

from typing import Any

import pytest

from weft.search import compiled


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether compiled code served each search."""
    served: list[bool] = []
    real = compiled._Search.run

    def run(self: Any) -> bool:
        served.append(real(self))
        return served[-1]

    monkeypatch.setattr(compiled._Search, "run", run)
    return served
