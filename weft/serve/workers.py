"""Several processes that answer from one socket and share one copy of the weights.

The parent loads the runs and forks, so the workers read the same memory; it answers nothing itself. It starts
another worker when one has died. It loads a run that has changed on disk; then new workers take over one
after the other, and each old one ends after its last answer. Uvicorn's supervisor would give each worker a
copy of the weights (it spawns, and does not fork), and start it again from files that do not fit together.
Read next: server.py; served.py.
"""

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import torch
from prometheus_client.multiprocess import mark_process_dead

from weft.errors import ConfigError
from weft.machine import LAUNCHED, end_with_parent
from weft.serve.completions import Ask, How, go_on, writer_of
from weft.serve.counts import SEVERAL
from weft.serve.served import RELOAD_SECONDS, Reloader, ServedRun
from weft.serve.translation import translator
from weft.tasks.predictor import Place

STOPS = (signal.SIGINT, signal.SIGTERM)
PAUSE_SECONDS = 1.0  # time between two starts of a worker that dies
START_SECONDS = 60.0
LOOK_SECONDS = 0.2


class Worker(NamedTuple):
    """A process, and the pipe on which it says that it listens."""

    process: BaseProcess
    listens: Connection

    def ready(self, ending: Callable[[], bool]) -> bool:
        """Wait until it listens; False if it has died, needs too long, or all shall end."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.is_alive() and not ending():
            if self.listens.poll(LOOK_SECONDS):
                return True
        return self.listens.poll()

    def stop(self, how: int) -> None:
        """Send it a signal."""
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, how)


class ServerProcesses:
    """The parent; on the CPU, as processes cannot share a GPU's memory after a fork."""

    def __init__(
        self,
        runs: Callable[[], dict[str, ServedRun]],
        count: int,
        answer: Callable[[dict[str, ServedRun], Callable[[], None]], None],
    ) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError(
                "--workers: expected 1 on this system, which cannot fork; start several servers"
            )
        self._threads = max(1, torch.get_num_threads() // count)
        torch.set_num_threads(1)  # threads of OpenMP would not be there after a fork
        self._answer = answer
        self._count = count
        self._ending = False
        self._workers: list[Worker] = []
        self._leaving: list[Worker] = []
        self._begun = 0.0
        self.runs = runs()
        self._warm(self.runs)

    def run(self, grace_seconds: float, close: Callable[[], None]) -> None:
        """Answer until a signal comes and what was begun is finished."""
        before = {one: signal.signal(one, self._end) for one in STOPS}
        try:
            self._workers = [self._start() for _ in range(self._count)]
            reloading, looked = Reloader(self.runs), time.monotonic()
            while not self._ending:
                time.sleep(LOOK_SECONDS)
                self._restart()
                if time.monotonic() > looked + RELOAD_SECONDS:
                    self._reload(reloading)
                    looked = time.monotonic()
        finally:
            close()
            self._stop(grace_seconds)
            for one, handler in before.items():
                signal.signal(one, handler)

    def _end(self, *_: object) -> None:
        self._ending = True

    def _start(self) -> Worker:
        gc.collect()
        gc.freeze()  # so that the workers do not write to the memory that they share
        mine, theirs = multiprocessing.Pipe(duplex=False)
        fork = multiprocessing.get_context("fork")
        process = fork.Process(target=self._work, args=(theirs,), name="weft serve")
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # until the worker has its own handlers
        try:
            with warnings.catch_warnings():
                # Python warns of threads that do not exist after a fork; OpenBLAS, whose are meant, copes.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        theirs.close()
        self._begun = time.monotonic()
        return Worker(process, mine)

    def _work(self, listens: Connection) -> None:
        """A worker, after the fork."""
        os.environ[LAUNCHED] = str(os.getppid())
        end_with_parent()
        for one in STOPS:
            signal.signal(one, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        torch.set_num_threads(self._threads)
        self._answer(self.runs, lambda: listens.send(True))

    def _restart(self) -> None:
        """Start workers again that have died."""
        self._leaving = [one for one in self._leaving if one.process.is_alive()]
        for number, worker in enumerate(self._workers):
            if worker.process.is_alive() or self._ending:
                continue
            code = worker.process.exitcode or 0
            why = f"by signal {-code}" if code < 0 else f"with code {code}"
            if worker.process.pid is not None and SEVERAL in os.environ:
                mark_process_dead(worker.process.pid)
            print(f"a worker ended {why}; another one starts", file=sys.stderr, flush=True)
            if time.monotonic() < self._begun + PAUSE_SECONDS:
                time.sleep(PAUSE_SECONDS)
            self._workers[number] = self._start()

    def _warm(self, runs: dict[str, ServedRun]) -> None:
        """Answer once, so that what a model keeps from its first answer is shared, such as packed weights."""
        for run in runs.values():
            with contextlib.suppress(Exception):  # a model that cannot answer is no reason to end
                if run.rewriter:
                    target = next((one for _, one in run.directions()), "")
                    translator(run, target, run.rewriter.decoding).predict("a")
                elif run.continues:
                    for _ in go_on(writer_of(run), [Ask("a", How(max_tokens=2))], lambda: False):
                        pass
                elif run.ready and run.reads == "text":
                    predictor = run.opened.pipeline.predictor(run.opened.model)
                    list(predictor.answers([predictor.parse("a", Place("a"))]))

    def _reload(self, reloading: Reloader) -> None:
        """Load what has changed, and let new workers take over."""
        fresh = {run.name: run for run in reloading.changed()}
        if not fresh:
            return
        before = dict(self.runs)
        self._warm(fresh)
        self.runs.update(fresh)
        for number, old in enumerate(self._workers):
            new = self._start()
            if not new.ready(lambda: self._ending):
                new.stop(signal.SIGKILL)
                self.runs.update(before)
                reloading.reject(fresh.values())
                print("a worker with the changed model does not start", file=sys.stderr, flush=True)
                return
            self._workers[number] = new
            old.stop(signal.SIGTERM)
            self._leaving.append(old)

    def _stop(self, grace_seconds: float) -> None:
        workers = [*self._workers, *self._leaving]
        for worker in workers:
            worker.stop(signal.SIGTERM)
        end = time.monotonic() + grace_seconds
        for worker in workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            if worker.process.is_alive():
                worker.stop(signal.SIGKILL)
            with contextlib.suppress(OSError):
                worker.listens.close()
