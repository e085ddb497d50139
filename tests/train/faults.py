"""A disk that fails, or whatever else is told, at the n-th call that changes it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from weft.store import files


class Fault:
    """Fails, or whatever else is told, at the n-th call that changes the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, act: Callable[[], None]) -> None:
        self.calls, self.at, self.act = 0, at, act
        for name in ("fsync", "rename", "replace"):
            monkeypatch.setattr(os, name, self.wrap(getattr(os, name)))
        monkeypatch.setattr(Path, "mkdir", self.wrap(Path.mkdir))
        monkeypatch.setattr(files, "open", self.opened, raising=False)

    def wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.count()
            return call(*arguments, **options)

        return wrapped

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.act()

    def opened(self, path: Path, mode: str) -> Any:
        self.count()
        file = open(path, mode)  # noqa: SIM115
        fault = self

        class Writer:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *error: object) -> None:
                file.close()

            def write(self, data: bytes) -> None:
                file.write(data[: len(data) // 2])
                file.flush()
                fault.count()
                file.write(data[len(data) // 2 :])

            def flush(self) -> None:
                file.flush()

            def fileno(self) -> int:
                return file.fileno()

        return Writer()


def no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
