"""Several training processes on one machine: the same command again, N times, each told its number.

If one ends, the others end with it: at once where it failed, after a few seconds where it was asked to stop.
Signals reach all of them. The first one's words are shown; those of another only where it is the one that
failed. If this process is killed, they end by themselves (../parent.py). Across machines torchrun does the
same.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from types import FrameType
from typing import IO

import click

from weft.machine import cores
from weft.parent import LAUNCHED

LOST = 75
"""The exit code of a process that a command of ours started and that has lost the others; it says nothing."""

CAUSE_SECONDS = 3.0  # that a process which lost the others waits for the one that caused it
GRACE = 20.0  # seconds that the others have once one of them has ended
ENDS = (0, 130, 143)


def launch(arguments: Sequence[str], count: int, *, together: bool = True) -> int:
    """Run a command of weft in so many processes.

    Args:
        arguments: the command and what follows it.
        count: processes.
        together: whether they need each other, so that all end soon after the first.

    Returns:
        The exit code of the first one that failed; else that of the first process.
    """
    base = dict(os.environ) | {
        "WORLD_SIZE": str(count),
        LAUNCHED: str(os.getpid()),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "OMP_NUM_THREADS": str(max(1, int(os.environ.get("OMP_NUM_THREADS") or cores()) // count)),
    }
    errors: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "weft", *arguments],
            env=base | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=None if rank == 0 else subprocess.DEVNULL,
            stderr=None if rank == 0 else errors[rank],
            start_new_session=True,  # Ctrl-C reaches them through us, once
        )
        for rank in range(count)
    ]

    def forward(number: int, frame: FrameType | None) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return _watch(children, errors, together)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
        for file in errors:
            file.close()


def _watch(children: list[subprocess.Popen[bytes]], errors: list[IO[bytes]], together: bool) -> int:
    deadline = alone = None
    failed = None
    codes: list[int | None] = [None]
    while None in codes:  # once more when all have ended
        codes = [child.poll() for child in children]
        if together and any(code is not None for code in codes):
            deadline = deadline or time.monotonic() + GRACE
        if (
            codes[0] not in ENDS or not together
        ):  # once the first has ended well, the others miss it and may say so
            wrong = [rank for rank, code in enumerate(codes) if code is not None and code not in ENDS]
            # One that was killed is the cause, one that lost its partner is not.
            failed = min(wrong, key=lambda rank: (codes[rank] == LOST, (codes[rank] or 0) > 0), default=None)
            if failed is not None and codes[failed] == LOST:
                alone = alone or time.monotonic() + CAUSE_SECONDS
                failed = None if time.monotonic() < alone and None in codes else failed
        if failed is not None or (deadline is not None and time.monotonic() > deadline):
            break
        time.sleep(0.05)
    if failed is None and not together:
        codes = [child.poll() for child in children]
        failed = next((rank for rank, code in enumerate(codes) if code not in ENDS), None)
    if failed is None:
        return children[0].returncode if children[0].returncode is not None else 1
    code = children[failed].returncode
    if failed:
        errors[failed].seek(0)
        said = errors[failed].read().decode(errors="replace").strip().splitlines()
        why = said[-1] if said else (f"killed by signal {-code}" if code < 0 else f"exit code {code}")
        click.echo(f"weft: process {failed} of {len(children)} ended ({why}); all were stopped", err=True)
    elif code == LOST:
        click.echo(f"weft: process 0 of {len(children)} lost the others; all were stopped", err=True)
    elif code < 0:
        click.echo(f"weft: process 0 was killed by signal {-code}; all were stopped", err=True)
    return code if code > 0 else 128 - code


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
