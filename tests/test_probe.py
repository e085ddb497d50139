"""A probe records what is computed inside its block, and only there."""

import threading

import pytest
import torch

from weft.probe import probe, record, watching


def test_only_inside_the_block() -> None:
    record("gate", torch.zeros(1))
    assert not watching()
    with probe() as seen:
        assert watching()
        record("gate", torch.ones(1))
        record("gate", torch.ones(2))
    record("gate", torch.ones(3))
    assert [tensor.shape[0] for tensor in seen["gate"]] == [1, 2]
    assert not watching()


def test_the_inner_probe_takes_over_and_gives_back() -> None:
    with probe() as outer:
        with probe() as inner:
            record("x", torch.zeros(2))
        record("x", torch.zeros(3))
    assert [len(t) for t in inner["x"]] == [2]
    assert [len(t) for t in outer["x"]] == [3]


def test_an_error_closes_the_probe() -> None:
    with pytest.raises(RuntimeError, match="inside"), probe():
        raise RuntimeError("inside")
    assert not watching()


def test_another_thread_is_not_watched() -> None:
    found = []
    with probe() as seen:
        other = threading.Thread(target=lambda: (record("x", torch.zeros(1)), found.append(watching())))
        other.start()
        other.join()
    assert found == [False] and not seen
