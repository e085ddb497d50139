"""Random numbers as a function of the position, so that no generator state needs to be saved.

Dropout and teacher forcing draw from torch's generators. Before every batch these are seeded from (seed,
epoch, index), so a resumed run draws the same numbers as an uninterrupted one, whatever was drawn in between
(for example by a validation that samples). Read next: update.py.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive(seed: int, *place: int | str) -> int:
    """A 63-bit number that depends on all arguments.

    Example:
        >>> derive(1, "batch", 0, 2) == derive(1, "batch", 0, 2) != derive(1, "batch", 2, 0)
        True
    """
    text = "/".join(str(part) for part in (seed, *place))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Use only algorithms with bit-identical results, and choose no kernel by its speed.

    cuBLAS reads its environment variable at first use, so call this before anything runs on a GPU. An
    operation without a deterministic algorithm on the device raises. False changes nothing.

    Source: torch, notes on reproducibility; cuBLAS, 2.1.4 (results reproducibility).
    """
    before = torch.are_deterministic_algorithms_enabled()
    if not wanted:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def settle(number: int, device: torch.device) -> None:
    """Seed the generators of the CPU and the device.

    torch.manual_seed seeds all kinds of devices and took 67 µs per call; this takes 5 µs.
    """
    torch.random.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
