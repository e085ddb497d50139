"""What `weft tune` may change in a recipe: for each setting the values that are worth trying.

A task declares its own by overriding `Task.search_space`, which most of them begin with `usual` below, and
search settings, which need no training, by `Task.decoding_space`. Read next: classify/task.py;
../tune/space.py, which reads a user's file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.errors import ConfigError

Recipe = Mapping[str, Any]
"""A recipe as plain tables, with every default."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """The values of one setting: numbers between two ends, or a list to choose from."""

    low: int | float | None = None  # both included; whole numbers if both are
    high: int | float | None = None
    log: bool = False  # try equally many values between 1 and 10 as between 10 and 100
    step: int | float = 0  # distance of the values; 0 for any
    layers: int = 0  # most layers to try, if it is a list of equal numbers, one per layer, such as `sizes`
    values: tuple[Any, ...] = ()  # to choose from, instead of the ends
    also: tuple[str, ...] = ()  # other settings that get the same value
    unless: str = ""  # another setting of the space; this one is 0 where that one is true

    def __post_init__(self) -> None:
        if self.values:
            if self.low is not None or self.high is not None:
                raise ConfigError("expected low and high, or values, got both")
            return
        if self.low is None or self.high is None:
            raise ConfigError("expected low and high, or values, got neither")
        if not self.low <= self.high:
            raise ConfigError(f"low: expected at most high ({self.high}), got {self.low}")
        if self.log and not self.low > 0:
            raise ConfigError(f"low: expected a number above 0 for a log range, got {self.low}")
        if self.log and self.step:
            raise ConfigError("step: a log range has none; leave out step or log")
        if self.step < 0 or self.layers < 0:
            raise ConfigError("step and layers: expected at least 0")

    @property
    def whole(self) -> bool:
        """Whether the numbers are whole."""
        return isinstance(self.low, int) and isinstance(self.high, int) and isinstance(self.step, int)


PER_TOKEN = ("loss", "perplexity")
"""Scores that models with different vocabularies cannot be compared by, if they are per token."""

Space = Mapping[str, Range]
"""Settings by their names in the recipe, such as training.optimiser.lr."""


def usual(recipe: Recipe) -> dict[str, Range]:
    """Ranges around a recipe's own learning rate, sizes, depths, dropout, smoothing, vocabulary and batch."""
    settings = dict(flat(recipe))
    space: dict[str, Range] = {}
    rate = settings.get("training.optimiser.lr")
    if rate:
        space["training.optimiser.lr"] = Range(low=rate / 5, high=rate * 5, log=True)
    space |= _widths(settings)
    for name, value in settings.items():
        last = name.rpartition(".")[2]
        if not name.startswith("model.") or isinstance(value, bool):
            continue
        if last == "sizes" and value:
            size = int(value[0])
            space[name] = whole(size // 2, size * 2, layers=len(value) + 1)
        elif last == "features" and value:
            space[name] = whole(value // 2, value * 2)
        elif last == "num_layers" and value:
            space[name] = whole(1, value + 1, step=1)
        elif last == "dropout" and value is not None:
            space[name] = Range(low=0.0, high=max(0.6, value))
        elif last == "smoothing" and value is not None and not settings.get("model.embedding.cutoffs"):
            space[name] = Range(low=0.0, high=max(0.2, value))
    return space | _vocabulary(settings) | batch(recipe)


def batch(recipe: Recipe) -> dict[str, Range]:
    """The batch size; nothing if training ends after so many updates: a larger batch would train longer."""
    settings = dict(flat(recipe))
    ends = [
        settings.get(f"training.{name}")
        for name in ("max_epochs", "max_tokens", "max_minutes", "max_cpu_minutes")
    ]
    for name in ("data.batch_tokens", "data.batch_rows"):
        size = settings.get(name)
        if size and any(ends) and not settings.get("training.max_updates"):
            return {name: Range(low=max(1, size // 2), high=size * 2, log=True)}
    return {}


def whole(low: int, high: int, *, step: int = 16, layers: int = 0, also: Sequence[str] = ()) -> Range:
    """Whole numbers; a small range has every one of them."""
    step = step if high - low >= 4 * step else 1
    return Range(low=max(1, low), high=high, step=step, layers=layers, also=tuple(also))


def flat(recipe: Recipe, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting with its full name; lists are whole."""
    for key, value in recipe.items():
        place = f"{name}.{key}" if name else key
        if isinstance(value, Mapping):
            yield from flat(value, place)
        else:
            yield place, value


def _widths(settings: Mapping[str, Any]) -> dict[str, Range]:
    """The width of Transformers, which encoder, decoder and embedding share, and of other embeddings."""
    heads = {
        name.rpartition(".")[0]: value for name, value in settings.items() if name.endswith(".num_heads")
    }
    sized = [f"{part}.size" for part in heads if settings.get(f"{part}.size")]
    embedding = settings.get("model.embedding.size")
    if sized:
        first = sized[0]
        size, step = settings[first], 8 * max(heads.values())
        also = [name for name in sized[1:] if settings[name] == size]
        also += ["model.embedding.size"] if embedding == size else []
        return {first: whole(size // 2, size * 2, step=step, also=also)}
    if embedding and not settings.get("model.embedding.vectors"):
        return {"model.embedding.size": whole(embedding // 2, embedding * 2)}
    return {}


def _vocabulary(settings: Mapping[str, Any]) -> dict[str, Range]:
    """The vocabulary's size, unless trials are compared by a score per token, which depends on it."""
    if settings.get("training.metric") in PER_TOKEN:
        return {}
    size, kind = settings.get("data.vocabulary.size"), settings.get("data.vocabulary.kind")
    if not size or kind not in ("bpe", "unigram"):
        return {}
    return {"data.vocabulary.size": Range(low=size // 3, high=size * 2, log=True)}
