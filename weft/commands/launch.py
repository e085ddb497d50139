"""Run a command in several processes on one machine, each with its rank in the environment.

Only the output of the first process is shown. If a process fails, all others are stopped and one sentence
says which and why. Signals are passed on to all processes, which save and exit. If this process is killed,
the others end by themselves (../machine.py).

torch's own launcher (torch.distributed.launcher.api, used by torchrun) starts as fast, but cannot do this;
measured with torch 2.13 on two cores. It sends SIGTERM to all processes as soon as one ends with an exit code
other than 0. If a scheduler signals every process, the first to exit with 143 thus causes a second signal,
which cuts short the save of the others. If a process loses its partner, the partner is stopped before it can
report the cause (0.4 s later in the test). And processes get 30 seconds to save before they are killed, a
limit that older versions of torch do not let us change. Across machines, use torchrun.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from types import FrameType
from typing import IO

import click

from weft.errors import ConfigError
from weft.machine import LAUNCHED, cores

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name))
"""Signals that are passed on to the processes."""

LOST = 75
"""Exit code of a launched process that lost its connection to the others; it prints nothing."""

CAUSE_SECONDS = 3.0  # how long to wait for the cause after a process has lost contact with the others
GRACE_SECONDS = 20.0  # how long the others may run after one has ended
EXPECTED = (0, *(128 + number for number in SIGNALS))  # success, or stopped by a signal


def launch(arguments: Sequence[str], count: int, *, together: bool = True) -> int:
    """Run a weft command in several processes; the exit code is that of the first that failed."""
    base = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    own = [base | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    with ExitStack() as stack:
        errors = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count)]
        children = stack.enter_context(started(arguments, own, [None, *errors[1:]]))
        return _watch(children, errors, together)


@contextmanager
def started(
    arguments: Sequence[str], own: Sequence[Mapping[str, str]], errors: Sequence[IO[bytes] | None] = ()
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes of a weft command that share this machine, receive its signals and end with the block."""
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS") or cores()) // len(own))
    base = dict(os.environ) | {LAUNCHED: str(os.getpid()), "OMP_NUM_THREADS": str(threads)}
    children: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in SIGNALS}
    try:
        for each, file in zip_longest(own, errors):
            children.append(
                subprocess.Popen(
                    [*_python(), "-m", "weft", *arguments],
                    env={**base, **each},
                    stdout=None if file is None else subprocess.DEVNULL,
                    stderr=file,
                    start_new_session=True,  # Ctrl-C reaches them once, through this process
                )
            )
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()


def _python() -> list[str]:
    """The interpreter without the current folder on its path, where a file named like a library would run."""
    return [sys.executable] if in_source() else [sys.executable, "-P"]


def in_source() -> bool:
    """Whether the current folder is the source code of Weft, which other processes may need on their path."""
    return Path(__file__).resolve().parents[2] == Path.cwd().resolve()


def _watch(children: list[subprocess.Popen[bytes]], errors: Sequence[IO[bytes]], together: bool) -> int:
    """Wait for the processes, report the one that failed, and return the exit code."""
    deadline = lost_since = None
    failed = None
    codes: list[int | None] = [None]
    while None in codes:  # polls once more after all have ended
        codes = [child.poll() for child in children]
        if together and any(code is not None for code in codes):
            deadline = deadline or time.monotonic() + GRACE_SECONDS
        # Once the first process has ended well, the others may fail because they lost it.
        if codes[0] not in EXPECTED or not together:
            failed = _cause(codes)
            if failed is not None and codes[failed] == LOST:
                lost_since = lost_since or time.monotonic()
                still_waiting = time.monotonic() < lost_since + CAUSE_SECONDS and None in codes
                failed = None if still_waiting else failed
        if failed is not None or (deadline is not None and time.monotonic() > deadline):
            break
        time.sleep(0.05)
    if failed is None:
        return children[0].returncode if children[0].returncode is not None else 1
    code = children[failed].returncode
    if sentence := _sentence(failed, code, len(children), errors[failed]):
        click.echo(f"weft: {sentence}; all were stopped", err=True)
    return code if code > 0 else 128 - code


def _cause(codes: Sequence[int | None]) -> int | None:
    """The process that failed first: rather one that was killed than one that ended, or lost another."""
    wrong = [rank for rank, code in enumerate(codes) if code is not None and code not in EXPECTED]
    return min(wrong, key=lambda rank: (codes[rank] == LOST, (codes[rank] or 0) > 0), default=None)


def _sentence(rank: int, code: int, count: int, errors: IO[bytes]) -> str:
    """What happened to a process; "" for the first one, if it has reported its error itself."""
    if rank:
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
        return f"process {rank} of {count} ended ({why})"
    if code == LOST:
        return f"process 0 of {count} lost contact with the others"
    return f"process 0 was killed by signal {-code}" if code < 0 else ""


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


FIRST_PORT, PORTS = 20_000, 20_000


def join_slurm(processes: int | None, environment: MutableMapping[str, str] = os.environ) -> bool:
    """Make this process one of those that srun has started; whether it is one.

    The variables of torchrun are set from those of Slurm, unless they are set already. Without `--processes`,
    or with one process, each process of srun trains on its own.
    """
    count = int(environment.get("SLURM_STEP_NUM_TASKS") or 1)
    if count == 1 or processes is None or "WORLD_SIZE" in environment:
        return False
    if processes != count:
        raise ConfigError(
            f"--processes {processes}: srun has started {count}; pass --processes {count}, or start one with "
            "srun --ntasks=1"
        )
    environment["RANK"], environment["WORLD_SIZE"] = environment["SLURM_PROCID"], str(count)
    environment["LOCAL_RANK"] = environment.get("SLURM_LOCALID", "0")
    environment.setdefault("MASTER_ADDR", first_host(environment.get("SLURM_STEP_NODELIST", "127.0.0.1")))
    step = int(environment.get("SLURM_STEP_ID") or 0)
    number = 31 * int(environment.get("SLURM_JOB_ID") or 0) + step  # another job's step has another port
    environment.setdefault("MASTER_PORT", str(FIRST_PORT + number % PORTS))
    return True


def first_host(nodes: str) -> str:
    """The first host of a list as Slurm writes it.

    Example:
        >>> first_host("node[03-05,9],login"), first_host("a,b"), first_host("gpu[1-2]-ib")
        ('node03', 'a', 'gpu1-ib')
    """
    found = re.match(r"([^,\[]*)(?:\[(\w+)[^\]]*\])?([^,\[]*)", nodes)
    return "".join(part or "" for part in found.groups()) if found else nodes
