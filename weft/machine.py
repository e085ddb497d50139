"""This process on its machine: threads and memory, set before torch starts; children end with their parent.

Nothing here imports torch.

By default torch uses every core of the machine, even in a container limited to two of sixty-four. Its idle
threads spin, which slows a shared machine up to tenfold. And the C library returns large blocks to the system
after every operation and gets them back zeroed page by page, which made training 8 to 10 % slower.

The processes of `--processes` and of torchrun call `end_with_parent` first. On Linux the kernel then sends
SIGTERM when the parent dies. On other systems, and as a backup, a thread watches the parent's process id,
which changes when the parent dies. On SIGTERM training saves a checkpoint; a process that is still running
after a grace period is killed.
Read next: cli.py, which calls this first; commands/doctor.py, which reports it; commands/launch.py.
"""

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import NoReturn

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of glibc's malloc.h
_MIB = 1 << 20


def has_gpu() -> bool:
    """Whether the system shows an NVIDIA GPU, found without torch."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


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


LAUNCHED = "WEFT_LAUNCHED"
"""Environment variable with the id of the process that started this one with `--processes`."""

POLL_SECONDS = 0.5
GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1  # of Linux's prctl.h


def end_with_parent() -> None:
    """End this process soon after its parent, if the parent is our launcher or torchrun."""
    if LAUNCHED not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    parent = int(os.environ.get(LAUNCHED) or os.getppid())
    if LAUNCHED in os.environ:
        os.environ[LAUNCHED] = str(os.getpid())  # for processes that this one starts
    signalled = _signalled_by_kernel()
    if os.getppid() != parent:  # it died before the signal was set up
        os._exit(128 + signal.SIGTERM)
    threading.Thread(target=_watch, args=(parent, signalled), name="parent", daemon=True).start()


def leave(code: int) -> NoReturn:
    """Exit. One of several processes does so without shutting Python down, once everything is written.

    A thread of gloo may release a tensor of the last exchange during the shutdown. While it waits for the
    lock of the interpreter, Python ends it inside C++ code that cannot be unwound, and the process aborts
    (SIGABRT, "terminate called without an active exception") although its training has succeeded.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _signalled_by_kernel() -> bool:
    """Ask Linux for SIGTERM when the parent dies; False on other systems."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _watch(parent: int, signalled: bool) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    if not signalled:  # a second SIGTERM would interrupt saving
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
