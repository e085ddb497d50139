"""The study in Optuna's storage: its trials, their scores, and which of them a killed process left behind.

Optuna is optional and only imported here and in report.py. Read next: trial.py.
"""

import math
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from weft.errors import ConfigError, DataError
from weft.store.run_directory import LockedError, lock
from weft.tune import space as spaces
from weft.tune.plan import SearchPlan

RANDOM_TRIALS = 6
"""Trials with random settings before the sampler learns from them."""

FIRST_RUNG, REDUCTION = 10, 3
"""Successive halving compares trials after 10, 30 and 90 per cent of their training; a third continues."""

POLL_SECONDS = 0.02  # between attempts to get a lock that is held for a moment

LOCAL_SECONDS = 120
"""How long a process waits for another one that writes to SQLite."""


class Study:
    """The trials of a search."""

    def __init__(self, plan: SearchPlan, storage: str, name: str, seed: int, *, halving: bool = True) -> None:
        self.plan = plan
        self._optuna = optuna = imported()
        self._local = not storage
        self._shown = "--storage" if storage else str(plan.folder / "study.db")
        address = storage or f"sqlite:///{(plan.folder / 'study.db').resolve()}"
        waiting = {"connect_args": {"timeout": LOCAL_SECONDS}} if self._local else {}
        pruners = optuna.pruners
        pruner = pruners.SuccessiveHalvingPruner(FIRST_RUNG, REDUCTION) if halving else pruners.NopPruner()
        try:
            kept = optuna.storages.RDBStorage(address, engine_kwargs=waiting)
            self.study = optuna.create_study(
                storage=kept,
                study_name=name,
                pruner=pruner,
                direction="maximize" if plan.higher else "minimize",
                load_if_exists=True,
            )
        except Exception as error:  # noqa: BLE001  each database driver has its own errors
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            remedy = "check --storage" if storage else "restore it from a copy, or pass another --study"
            raise ConfigError(f"{self._shown}: the database cannot be opened ({why}); {remedy}") from None
        self._seed = seed
        self._place = f"{socket.gethostname()}:{plan.folder.resolve()}"

    @contextmanager
    def answering(self) -> Iterator[None]:
        """A block that uses the database."""
        try:
            yield
        except self._optuna.exceptions.StorageInternalError as error:
            why = str(error.__cause__ or error).splitlines()[0]
            raise DataError(
                f"{self._shown}: the database does not answer ({why}); the same command resumes"
            ) from error

    def begin(self) -> None:
        """Enqueue trial 0, the recipe as it is."""
        if not self.study.get_trials(deepcopy=False):
            own = spaces.own(self.plan.space, self.plan.plain)
            known = {name: value for name, value in own.items() if value is not None}
            self.study.enqueue_trial(known, user_attrs={"as_it_is": True})

    def trials(self) -> list[Any]:
        """All trials, by number."""
        found: list[Any] = self.study.get_trials(deepcopy=False)
        return found

    def seconds(self) -> float:
        """Time spent by all trials, in seconds."""
        return float(sum(one.user_attrs.get("seconds", 0.0) for one in self.trials()))

    @contextmanager
    def next(self, wanted: int = 0) -> Iterator[Any | None]:
        """A trial to train: one that a killed process left behind, else a new one; locked in the block.

        Processes choose one after the other, so no two of them train the same trial.
        """
        with ExitStack() as held:
            with ExitStack() as choosing:
                self._wait("choosing", choosing)
                trial = self._left(held) or self._new(wanted, held)
            if trial is not None:  # seeded by its number: a search that was killed proposes the same settings
                self.study.sampler = self._optuna.samplers.TPESampler(
                    seed=self._seed + trial.number, n_startup_trials=RANDOM_TRIALS
                )
            yield trial

    def end(self, trial: Any, value: float | None, why: str = "", *, failed: bool = False) -> None:
        """End a trial."""
        state = self._optuna.trial.TrialState
        if value is not None and not math.isfinite(value):
            value, why, failed = None, "the score is not a number", True
        if why:
            trial.set_user_attr("why", why)
        if value is not None:
            self.study.tell(trial, value)
        else:
            self.study.tell(trial, state=state.FAIL if failed else state.PRUNED)

    def score(self, one: Any) -> float | None:
        """The best score of a trial; None without one."""
        found = [one.value] if one.value is not None else list(one.intermediate_values.values())
        found = [value for value in found if math.isfinite(value)]
        return (max(found) if self.plan.higher else min(found)) if found else None

    def best(self) -> Any | None:
        """The trial with the best score; None if no trial has one."""
        scored = [(self.score(one), one) for one in self.trials() if one.state.is_finished()]
        found = [(-score if self.plan.higher else score, one) for score, one in scored if score is not None]
        return min(found, key=lambda pair: pair[0], default=(0.0, None))[1]

    def settings(self, one: Any) -> dict[str, Any]:
        """What a trial changes in the recipe."""
        return {} if one.user_attrs.get("as_it_is") else spaces.changes(self.plan.space, one.params)

    def whole(self) -> list[Any]:
        """The trials that were trained to their end."""
        state = self._optuna.trial.TrialState
        return [one for one in self.trials() if one.state == state.COMPLETE]

    def importance(self) -> dict[str, float]:
        """How much each setting matters for a good score (PED-ANOVA); empty with few trials.

        Source: Watanabe, Bansal & Hutter 2023, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance
        in Arbitrary Subspaces".
        """
        whole = self.whole()
        if len(whole) < 4 or len({one.value for one in whole}) < 2:
            return {}
        return dict(self._optuna.importance.get_param_importances(self.study))

    def _is_running(self, one: Any) -> bool:
        return bool(one.state == self._optuna.trial.TrialState.RUNNING)

    def _left(self, held: ExitStack) -> Any | None:
        """A trial that a stopped process of this folder left behind, locked until `held` closes."""
        for one in self.trials():
            place = one.user_attrs.get("place", self._place if self._local else "")
            if not self._is_running(one) or place != self._place:
                continue
            with ExitStack() as own:
                if self._lock(f"{one.number:04}", own) and self._is_running(self.trials()[one.number]):
                    held.enter_context(own.pop_all())
                    return self._optuna.trial.Trial(self.study, one._trial_id)
        return None

    def _new(self, wanted: int, held: ExitStack) -> Any | None:
        """A new trial, locked until `held` closes; None if there are as many as wanted."""
        trials, waiting = self.trials(), self._optuna.trial.TrialState.WAITING
        if wanted and len(trials) >= wanted and all(one.state != waiting for one in trials):
            return None
        trial = self.study.ask()
        self._wait(f"{trial.number:04}", held)
        shutil.rmtree(self.plan.trial(trial.number), ignore_errors=True)  # of an earlier study in this folder
        trial.set_user_attr("place", self._place)
        return trial

    def _wait(self, name: str, held: ExitStack) -> None:
        while not self._lock(name, held):
            time.sleep(POLL_SECONDS)

    def _lock(self, name: str, held: ExitStack) -> bool:
        """Lock something of the study until `held` closes; False if another process holds it."""
        try:
            held.enter_context(lock(self.plan.folder / "locks" / name))
        except LockedError:
            return False
        return True


def imported() -> Any:
    """Optuna, without its log."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigError(f"weft tune: {error.name} is not installed; pip install 'weft-seq[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
