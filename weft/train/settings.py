"""The settings in a recipe's section `training`. Read next: ready.py, which checks their requirements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from weft.errors import ConfigError
from weft.metrics.metric import Metric
from weft.rooms import wrong_result
from weft.setting_types import AtLeastOne, Bounds, NonNegative, Whole, check_fields
from weft.train.feeding import ConstantFeeding, Feeding, always_true
from weft.train.objectives.likelihood import MaximumLikelihood
from weft.train.objectives.objective import Objective
from weft.train.optimisers import AdamW, Optimiser
from weft.train.schedules import ConstantSchedule, Schedule, ScheduleState
from weft.train.trackers import Tensorboard, Tracker
from weft.train.tuned import Lora

START_UPDATES, START_SHARE = 100, 0.1
"""The warm-up after `start` ends at this update, or after this share of the training if that is earlier."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Training settings. An update is one step of the optimiser; an epoch reads every example once.

    Args:
        optimiser: optimiser, one of optimisers.py.
        schedule: learning rate schedule, one of schedules.py; multiplies the optimiser's `lr`.
        objective: objective to minimise, a part of objectives/.
        feeding: teacher forcing, one of feeding.py: the probability that the decoder reads the true token.
        loss: per_token divides the gradient by the number of real target tokens, per_sequence by the number
            of examples.
        start: run of the same task and model to start from: its parameters and vocabularies are copied into
            this run, and its score is the first one. With `start_parts`, a run of any task.
        start_rate: factor of the learning rate in a training that starts from a whole `start`, after a
            warm-up of 100 updates or a tenth of the training; 1 for the rate of a new model.
        start_parts: parts of the model to take from `start`, such as [embed, encoder]; the others get
            new weights. A table maps names in this model to names in that run: {source_embed: embed}.
            `vocabulary` takes its tokenizer.json; otherwise the rows of common pieces are taken.
        freeze: parts of the model that are not trained, such as [embed, encoder]; without dropout too. A
            pattern such as "encoder.*.norm" stands for several; a table from part to number of updates
            releases them one after the other: {embed: 600, encoder.blocks.0: 300}.
        freeze_updates: train the parts in `freeze` after this many updates; 0 for never.
        part_rates: factors of the learning rate of parts, such as {encoder: 0.1}; patterns as in `freeze`.
        layer_decay: factor of the learning rate from each layer to the one below, and from the lowest one to
            the embeddings; 1 for the same rate.
        lora: train products of two narrow matrices that are added to matrices of `start`, and the head, but
            nothing else; see `Lora`.
        max_updates: maximum number of updates; 0 for no limit.
        max_epochs: maximum number of epochs; 0 for no limit.
        max_tokens: maximum number of target tokens read, summed over all updates; 0 for no limit.
        max_minutes: maximum wall-clock time in minutes, including validation and resumed parts; training
            then validates, saves and ends. 0 for no limit.
        max_cpu_minutes: maximum CPU time in minutes, summed over all threads and processes: other work on the
            machine makes such a training slower, not shorter. 0 for no limit.
        accumulate: number of batches per update.
        scale: gpu takes batches of at least 16,000 target tokens, 64,000 frames of recordings, or 512 rows of
            other data, one per update; settings that count updates shrink and the learning rate grows by the
            square root. cpu keeps what the recipe says.
        workers: number of batches that a CPU computes in parallel; 0 for the number of threads.
        clip_norm: maximum norm of the gradient; a longer one is scaled down. 0 for no clipping.
        seed: random seed for initial weights, the order of the data and dropout.
        precision: bfloat16 uses autocast and keeps weights in float32; auto uses bfloat16 if the device
            multiplies it in hardware and, on a CPU, `deterministic` is false; else float32.
        device: cpu, cuda, a GPU such as cuda:1, or auto, which uses a GPU if there is one.
        validate_every: updates between validations; 0 for one at the end of each epoch.
        validate_start: validate and save before the first update too, so that the initial model is kept if
            training finds nothing better.
        save_every: updates between checkpoints; every validation also saves one.
        metric: score that selects the best checkpoint; as long as it is 0, the lowest loss does. For a task
            without a validation loss the default is its first score.
        metrics: more scores of validations and of `weft evaluate`, such as wape for forecasts; `metric` may
            name one of them. The page on metrics says what each task offers them.
        keep_best: number of best checkpoints to keep, besides the newest two.
        patience: end training after this many validations in a row without a new best score; 0 for never.
        average: number of checkpoints to average at the end; the mean becomes the final model if it scores
            better. 0 for none.
        average_of: average the best checkpoints, or the last ones that were validated.
        refit: at the end, train a new model for the chosen number of updates on training and validation
            examples together; it becomes the model of the run. The scores stay those of the model before.
        log_every: updates between progress lines, on the screen and in metrics.jsonl.
        non_finite: reaction to a loss or gradient that is not finite: raise stops; skip leaves the update
            out; roll_back also restores the parameters of the newest checkpoint.
        max_skips: maximum number of updates that may be skipped in a training.
        checkpoint_activations: keep only the inputs of layers and recompute the rest for the backward pass:
            less memory, more time, the same gradients.
        compile: compile Transformer blocks with torch.compile, which takes minutes and needs a compiler.
            Batches are then computed one after the other. On a CPU, measure the gain first.
        cuda_graphs: record an update once per shape of batch and replay it, so that a GPU does not wait for
            Python; losses are read at progress lines. Not tried on a GPU yet. A CPU runs the same code
            without graphs.
        sharding: with several processes, full gives each process only its rows of parameters, gradients and
            optimiser state (FSDP2); none gives each a full copy.
        save_in_background: write checkpoints while training continues, from a copy in memory.
        deterministic: make repeated trainings bit-identical, also on a GPU: only deterministic algorithms are
            used, and no kernel is chosen by its speed.
        track: trackers that receive curves, recipe and scores, parts of trackers.py; by default TensorBoard
            alone, in RUN/tensorboard. Nothing is sent from this machine unless a tracker's settings say so.
        tensorboard: false leaves TensorBoard out of `track`.
        monitors: measure gradient reach, spectra and gates of recurrent layers, and the gradient norm of each
            layer. true: at progress lines, in at most 3 % of the time. A number: every so many updates,
            whatever it costs. false: never.

    Raises:
        ConfigError: a value is out of its range, or two settings conflict.
    """

    optimiser: Optimiser = field(default_factory=AdamW)
    schedule: Schedule = field(default_factory=ConstantSchedule)
    objective: Objective = field(default_factory=MaximumLikelihood)
    feeding: Feeding = field(default_factory=ConstantFeeding)
    loss: Literal["per_token", "per_sequence"] = "per_token"
    start: Path | None = None
    start_rate: Annotated[float, Bounds(gt=0, le=1)] = 0.3
    start_parts: tuple[str, ...] | dict[str, str] = ()
    freeze: tuple[str, ...] | dict[str, Whole] = ()
    freeze_updates: Whole = 0
    part_rates: dict[str, float] = field(default_factory=dict)
    layer_decay: Annotated[float, Bounds(gt=0, le=1)] = 1.0
    lora: Lora | None = None
    max_updates: Whole = 0
    max_epochs: Whole = 0
    max_tokens: Whole = 0
    max_minutes: NonNegative = 0.0
    max_cpu_minutes: NonNegative = 0.0
    accumulate: AtLeastOne = 1
    scale: Literal["cpu", "gpu"] = "cpu"
    workers: Whole = 0
    clip_norm: NonNegative = 1.0
    seed: Whole = 1
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: str = "auto"
    validate_every: Whole = 0
    validate_start: bool = False
    save_every: AtLeastOne = 1000
    metric: str = "loss"
    metrics: tuple[Metric, ...] = ()
    keep_best: AtLeastOne = 3
    patience: Whole = 0
    average: Whole = 0
    average_of: Literal["best", "last"] = "best"
    refit: bool = False
    log_every: AtLeastOne = 50
    non_finite: Literal["raise", "skip", "roll_back"] = "raise"
    max_skips: Whole = 10
    checkpoint_activations: bool = False
    compile: bool = False
    cuda_graphs: bool = False
    sharding: Literal["none", "full"] = "none"
    save_in_background: bool = True
    deterministic: bool = False
    track: tuple[Tracker, ...] = field(default_factory=lambda: (Tensorboard(),))
    tensorboard: bool = True
    monitors: bool | Whole = True

    def __post_init__(self) -> None:
        check_fields(self, "training.")
        if not self.objective.plain and not always_true(self.feeding):
            raise ConfigError(
                "training.feeding: expected a probability of 1: training.objective: "
                f"{type(self.objective).__name__} controls the fed words itself; leave out one of them"
            )
        if not self.objective.plain and self.sharding == "full":
            raise ConfigError(
                f"training.sharding: cannot use full: training.objective: {type(self.objective).__name__} "
                "needs whole parameters; set sharding: none"
            )
        self._check_parts()
        if self.compile and self.sharding == "full":
            raise ConfigError(
                "training.compile: true cannot be combined with training.sharding: full, which is untested; "
                "set one of them back"
            )
        ends = ("max_updates", "max_epochs", "max_tokens", "max_minutes", "max_cpu_minutes", "patience")
        if not any(getattr(self, name) for name in ends):
            raise ConfigError(f"training: expected an end, got none; set one of {', '.join(ends)}")
        if self.average_of == "best" and self.average > self.keep_best:
            raise ConfigError(
                f"training.average: expected at most keep_best ({self.keep_best}), got {self.average}; "
                "raise keep_best or set average_of: last"
            )

        keys = [one.key for one in self.metrics]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ConfigError(f"training.metrics: expected each metric once, got {twice} twice")

    def _check_parts(self) -> None:
        """Check the settings of single parts of the model."""
        if self.start_parts and self.start is None:
            raise ConfigError("training.start_parts: expected training.start, the run to take them from")
        if self.freeze_updates and not self.freeze:
            raise ConfigError("training.freeze_updates: expected training.freeze, the parts to freeze")
        if self.freeze_updates and isinstance(self.freeze, dict):
            raise ConfigError(
                "training.freeze_updates: cannot be combined with a table training.freeze, which has a "
                "number for each part; leave freeze_updates out"
            )
        untested = "freeze" if self.freeze else "lora" if self.lora else ""
        if untested and self.sharding == "full":
            raise ConfigError(
                f"training.{untested}: cannot be combined with training.sharding: full, which is untested; "
                "set sharding: none"
            )
        for part, rate in self.part_rates.items():
            if not rate > 0:
                raise ConfigError(
                    f"training.part_rates.{part}: expected a number above 0, got {rate}; "
                    "to keep a part as it is, name it in training.freeze"
                )

    @property
    def trackers(self) -> tuple[Tracker, ...]:
        """The trackers to use."""
        return tuple(one for one in self.track if self.tensorboard or not isinstance(one, Tensorboard))

    @property
    def starts_trained(self) -> bool:
        """Whether the training starts from all parameters of another run."""
        return self.start is not None and not self.start_parts

    def factor(self, update: int, done: float, state: ScheduleState) -> float:
        """The factor of the learning rate; see `Schedule.factor`."""
        factor = self.schedule.factor(update, done, state)
        if not isinstance(factor, int | float):
            raise wrong_result(self.schedule, "factor", "a number", type(factor).__name__)
        if not self.starts_trained:
            return factor
        warm = max(update / START_UPDATES, done / START_SHARE)
        return factor * self.start_rate * min(1.0, warm)

    def better(self, scores: Mapping[str, Literal["higher", "lower"]]) -> dict[str, str]:
        """For each score of a validation, whether a higher or a lower one is better."""
        own = {one.key: "higher" if one.higher_is_better else "lower" for one in self.metrics}
        return {**scores, **own}

    def planned(self, batches: int) -> int:
        """Planned number of updates, given the number of batches per epoch; 0 if not limited."""
        ends = [self.max_updates, self.max_epochs * -(-batches // self.accumulate)]
        return min((end for end in ends if end), default=0)
