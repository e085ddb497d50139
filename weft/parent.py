"""A process that another one started ends when that one dies, even by kill -9: it must not go on alone.

The processes of `--processes` and of torchrun call `end_with_parent` before anything else. On Linux the
kernel sends SIGTERM the moment the parent dies. On other systems, and as a second way, a thread watches the
parent's process id, which changes then. SIGTERM lets a training save; a process that is still there after a
grace period is killed. Read next: commands/launch.py, which starts processes.
"""

import ctypes
import os
import signal
import sys
import threading
import time

LAUNCHED = "WEFT_LAUNCHED"
"""Of the environment: the process that started this one with `--processes`."""

POLL_SECONDS = 0.5
GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1  # of Linux's prctl.h


def end_with_parent() -> None:
    """End this process soon after its parent, if that is a launcher: ours, or torchrun."""
    if LAUNCHED not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    parent = int(os.environ.get(LAUNCHED) or os.getppid())
    if LAUNCHED in os.environ:
        os.environ[LAUNCHED] = str(os.getpid())  # for what this process starts
    told = _told_by_the_kernel()
    if os.getppid() != parent:  # it died before anyone was asked to tell
        os._exit(128 + signal.SIGTERM)
    threading.Thread(target=_watch, args=(parent, told), name="parent", daemon=True).start()


def _told_by_the_kernel() -> bool:
    """Ask Linux for SIGTERM when the parent dies; False on other systems."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _watch(parent: int, told: bool) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    if not told:  # a second SIGTERM would cut the saving short
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
