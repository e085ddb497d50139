"""What must be settled before torch starts: threads and memory. Nothing here imports torch.

torch takes every core that the machine has, also where a container may use two of sixty-four; its idle
threads spin unless told not to, which slows a shared machine up to tenfold; and the C library hands large
blocks back to the system after every operation, to get them again zeroed page by page (training was 8 to
10 % slower so). Read next: cli.py, which calls it first; commands/doctor.py, which reports it.
"""

import ctypes
import os
from collections.abc import MutableMapping
from pathlib import Path

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_MIB = 1 << 20


def settle(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set what the user has not set: how threads wait, how many there are, and how memory is kept."""
    environment.setdefault("OMP_WAIT_POLICY", "passive")
    # Batches come in hundreds of shapes and oneDNN keeps compiled code for each: of 1,024, its default, a
    # training on help sentences held 380 MB after 120 updates, and more later.
    environment.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "256")
    environment.setdefault("OMP_NUM_THREADS", str(cores()))
    keep_memory()


def keep_memory() -> bool:
    """Let freed blocks up to 32 MiB be used again at once; False where the C library knows no such thing."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return False
    limits = (_MMAP_THRESHOLD, 32 * _MIB), (_TRIM_THRESHOLD, 512 * _MIB), (_TOP_PAD, 16 * _MIB)
    answers = [mallopt(name, value) for name, value in limits]
    return answers == [1, 1, 1]


def cores() -> int:
    """Cores that this process may use: its affinity, or less where a container has a smaller quota."""
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
