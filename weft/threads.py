"""How many threads to use, decided before torch starts any: it reads the environment once, at import.

torch takes every core that the machine has, also where a container may use two of sixty-four; and its
idle threads spin unless told not to, which slows a shared machine up to tenfold.
Read next: cli.py, which calls it first; commands/doctor.py, which says what came of it.
"""

import os
from pathlib import Path


def settle(environment: dict[str, str] | None = None) -> None:
    """Set OMP_WAIT_POLICY and OMP_NUM_THREADS unless the user has."""
    target = os.environ if environment is None else environment
    target.setdefault("OMP_WAIT_POLICY", "passive")
    target.setdefault("OMP_NUM_THREADS", str(available()))


def available() -> int:
    """Cores that this process may use: its affinity, or less where a container has a smaller quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota() or cores))


def _quota() -> int | None:
    """Whole cores of a Linux control group's quota, or None without one."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if limit == "max" else max(1, int(limit) // int(period))
    except (OSError, ValueError):
        return None
