"""Settings of threads and memory, made before torch starts. Nothing here imports torch.

By default torch uses every core of the machine, even in a container limited to two of sixty-four. Its idle
threads spin, which slows a shared machine up to tenfold. And the C library returns large blocks to the system
after every operation and gets them back zeroed page by page, which made training 8 to 10 % slower.
Read next: cli.py, which calls this first; commands/doctor.py, which reports it.
"""

import ctypes
import os
from collections.abc import MutableMapping
from pathlib import Path

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_MIB = 1 << 20


def settle(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set how threads wait, their number and how memory is kept, unless the user has set them."""
    environment.setdefault("OMP_WAIT_POLICY", "passive")
    # Batches have hundreds of shapes, and oneDNN caches compiled code for each. With its default of 1,024,
    # training on help sentences used 380 MB for the cache after 120 updates, and more later.
    environment.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")
    environment.setdefault("OMP_NUM_THREADS", str(cores()))
    keep_memory()


def keep_memory() -> bool:
    """Keep freed blocks up to 32 MiB for reuse; False if the C library does not support it."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return False
    limits = (_MMAP_THRESHOLD, 32 * _MIB), (_TRIM_THRESHOLD, 512 * _MIB), (_TOP_PAD, 16 * _MIB)
    answers = [mallopt(name, value) for name, value in limits]
    return answers == [1, 1, 1]


def cores() -> int:
    """Number of cores that this process may use: its CPU affinity, or a smaller container quota."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _quota() or allowed))


def _quota() -> int | None:
    """Whole cores of a Linux control group's quota, or None without one."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if limit == "max" else max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return None
