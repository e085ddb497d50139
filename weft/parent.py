"""End a child process when its parent dies, even by kill -9.

The processes of `--processes` and of torchrun call `end_with_parent` first. On Linux the kernel then sends
SIGTERM when the parent dies. On other systems, and as a backup, a thread watches the parent's process id,
which changes when the parent dies. On SIGTERM training saves a checkpoint; a process that is still running
after a grace period is killed. Read next: commands/launch.py, which starts processes.
"""

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from typing import NoReturn

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
