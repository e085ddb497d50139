"""The settings in a recipe's section `training`. Read next: ready.py, which checks what they need."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from weft.errors import ConfigError
from weft.metrics.metric import Metric
from weft.train.feeding.constant import Constant as AlwaysTrue
from weft.train.feeding.feeding import Feeding, always_true
from weft.train.objectives.likelihood import Likelihood
from weft.train.objectives.objective import Objective
from weft.train.optimisers.adamw import AdamW
from weft.train.optimisers.optimiser import Optimiser
from weft.train.schedules.constant import Constant
from weft.train.schedules.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a model is trained. An update is one step of the optimiser; an epoch reads every example once.

    Args:
        optimiser: a part of optimisers/.
        schedule: a part of schedules/; multiplies the optimiser's `lr`.
        objective: a part of objectives/; what an update makes smaller.
        feeding: a part of feeding/; the probability that the decoder reads the true token.
        loss: per_token divides a gradient by its real target tokens, per_sequence by its examples.
        start: a run of the same task and model whose parameters and vocabularies training begins with; what
            is copied stays in this run.
        max_updates: updates after which training ends; 0 for no such end.
        max_epochs: epochs after which training ends; 0 for no such end.
        max_minutes: minutes of wall-clock time, validation included and resumed parts added, after
            which training validates, saves and ends; 0 for no such end.
        max_cpu_minutes: the same in minutes of CPU time, summed over all threads and processes: other work
            on the machine makes such a training slower, not shorter. 0 for no such end.
        accumulate: batches an update.
        workers: batches of an update that a CPU computes side by side; 0 takes as many as there are threads.
        clip_norm: the norm to which a longer gradient is shortened; 0 for no clipping.
        seed: of the first weights, the order of the data and dropout.
        precision: bfloat16 is autocast, weights stay float32; auto takes it where the device is fast at it.
        device: cpu, cuda (also cuda:1) or auto, which takes a GPU where there is one.
        validate_every: updates between validations; 0 for one at the end of each epoch.
        validate_start: validate and save before the first update too, so that what a model begins as is kept
            where nothing better is learnt.
        save_every: updates between saves; a save stands before each validation in any case.
        metric: the score that chooses the best checkpoint; for a task without a validation loss, the first of
            its scores by default.
        metrics: more scores of validations and of `weft evaluate`, for tasks that compare outputs with
            reference texts; `metric` may name one of them.
        keep_best: checkpoints kept for their score; the newest two stay in any case.
        patience: validations in a row without a new best score after which training ends; 0 for never.
        average: checkpoints whose mean is tried as the final model, and taken if its score is better;
            0 for none.
        average_of: average the best checkpoints or the last ones that were validated.
        log_every: updates between lines of progress and of metrics.jsonl.
        non_finite: raise stops at a loss or gradient that is not finite; skip leaves that update out;
            roll_back leaves it out and goes back to the parameters of the newest checkpoint.
        max_skips: updates that may be left out in a whole training.
        checkpoint_activations: keep only the inputs of layers and compute the rest again when gradients
            come: less memory, more time, the same gradients.
        compile: let torch.compile write the blocks of Transformers anew, after minutes of compiling; needs a
            compiler. Batches are then computed one after the other. On a CPU, measure the gain first.
        sharding: with several processes, full leaves each only its rows of parameters, gradients and moments
            (FSDP2); none a copy of the whole.
        save_in_background: write a checkpoint while training goes on; a copy is in memory meanwhile.
        deterministic: take only algorithms that give the same bits each time, on a GPU too, and no kernel
            because it was the faster one here.
        tensorboard: write events to RUN/tensorboard.
        monitors: measure gradient reach, spectra and gates of recurrent layers, and the norm of each layer's
            gradient: true at lines of progress, as often as 3 % of the time allows; a number at every so many
            updates, whatever it costs; false never.

    Raises:
        ConfigError: a value that cannot be.
    """

    optimiser: Optimiser = field(default_factory=AdamW)
    schedule: Schedule = field(default_factory=Constant)
    objective: Objective = field(default_factory=Likelihood)
    feeding: Feeding = field(default_factory=AlwaysTrue)
    loss: Literal["per_token", "per_sequence"] = "per_token"
    start: Path | None = None
    max_updates: int = 0
    max_epochs: int = 0
    max_minutes: float = 0.0
    max_cpu_minutes: float = 0.0
    accumulate: int = 1
    workers: int = 0
    clip_norm: float = 1.0
    seed: int = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "auto"
    validate_every: int = 0
    validate_start: bool = False
    save_every: int = 1000
    metric: str = "loss"
    metrics: tuple[Metric, ...] = ()
    keep_best: int = 3
    patience: int = 0
    average: int = 0
    average_of: Literal["best", "last"] = "best"
    log_every: int = 50
    non_finite: Literal["raise", "skip", "roll_back"] = "raise"
    max_skips: int = 10
    checkpoint_activations: bool = False
    compile: bool = False
    sharding: Literal["none", "full"] = "none"
    save_in_background: bool = True
    deterministic: bool = False
    tensorboard: bool = True
    monitors: bool | int = True

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for one in fields(self):
            value, hint = getattr(self, one.name), hints[one.name]
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            if choices and value not in choices:
                raise ConfigError(f"training.{one.name}: expected one of {', '.join(choices)}, got {value!r}")
            if isinstance(value, int | float) and not value >= 0:
                raise ConfigError(f"training.{one.name}: expected at least 0, got {value}")
        if not self.objective.plain and not always_true(self.feeding):
            raise ConfigError(
                "training.feeding: expected a probability of 1: training.objective: "
                f"{type(self.objective).__name__} feeds words in its own way; leave out one of them"
            )
        if not self.objective.plain and self.sharding == "full":
            raise ConfigError(
                f"training.sharding: cannot use full: training.objective: {type(self.objective).__name__} "
                "needs whole parameters; set sharding: none"
            )
        if self.compile and self.sharding == "full":
            raise ConfigError(
                "training.compile: true cannot be combined with training.sharding: full, which is untested; "
                "set one of them back"
            )
        for name in ("accumulate", "save_every", "keep_best", "log_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"training.{name}: expected at least 1, got {getattr(self, name)}")
        ends = ("max_updates", "max_epochs", "max_minutes", "max_cpu_minutes", "patience")
        if not any(getattr(self, name) for name in ends):
            raise ConfigError(f"training: expected an end, got none; set one of {', '.join(ends)}")
        if self.average_of == "best" and self.average > self.keep_best:
            raise ConfigError(
                f"training.average: the {self.average} best checkpoints are to be averaged, but keep_best is "
                f"{self.keep_best}; raise keep_best or set average_of: last"
            )

        keys = [one.key for one in self.metrics]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ConfigError(f"training.metrics: expected each metric once, got {twice} twice")

    def better(self, scores: Mapping[str, Literal["higher", "lower"]]) -> dict[str, str]:
        """For each score of a validation, whether a higher or a lower one is better.

        Args:
            scores: those of the task; `metrics` come on top.
        """
        own = {one.key: "higher" if one.higher_is_better else "lower" for one in self.metrics}
        return {**scores, **own}

    def planned(self, batches: int) -> int:
        """Updates after which training ends, with so many batches an epoch; 0 for no such end."""
        ends = [self.max_updates, self.max_epochs * -(-batches // self.accumulate)]
        return min((end for end in ends if end), default=0)
