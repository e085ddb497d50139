"""A classifier as one graph: tokens, or the weighted items of a bag, to the log-probability of each class."""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError
from weft.models import Predictor
from weft.nn.embed.contextual import InContext
from weft.nn.embed.grams import Grams
from weft.store import files
from weft.tasks.exported import Exported, Graph
from weft.tasks.labels.calibration import calibrated
from weft.text.portable import portable
from weft.text.vocabulary import EOS

if TYPE_CHECKING:
    from weft.tasks.classify.ready import ClassifyPipeline

SEED = 1


class Classes(nn.Module):
    """Tokens and their mask to log-probabilities."""

    def __init__(self, model: Predictor, temperature: float) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """[B, S] int64 and [B, S] bool to [B, C]."""
        return calibrated(self.model(tokens, mask)[:, 0], self.temperature)


class ClassesOfBag(nn.Module):
    """Items, their weights and their mask to log-probabilities."""

    def __init__(self, model: Predictor, temperature: float) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature

    def forward(self, tokens: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
        """[B, S] int64, [B, S] and [B, S] bool to [B, C]."""
        return calibrated(self.model(Grams(tokens, weights), mask)[:, 0], self.temperature)


def exported(pipeline: "ClassifyPipeline", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the classifier reads words in context from another run.
    """
    assert isinstance(model, Predictor)
    if isinstance(model.embed, InContext):
        raise ConfigError(
            "embedding: contextual: words in context come from another run, which a graph cannot hold; "
            "serve the run with weft serve"
        )
    reader = pipeline.reader
    both = _inputs(reader.num_items, 3, 7), _inputs(reader.num_items, 2, 10)
    contents: dict[str, bytes] = {"tokenizer.json": portable(reader.vocabulary)}
    settings: dict[str, Any] = {
        "kind": "classifier",
        "vocabulary": "tokenizer.json",
        "classes": reader.classes,
        "separator": reader.separator,
        "thresholds": None if reader.separator is None else list(reader.thresholds),
        "max_length": reader.max_length,
        "bag": None,
    }
    module: nn.Module = Classes(model, reader.temperature)
    if reader.items is not None:
        module, bag = ClassesOfBag(model, reader.temperature), asdict(reader.items.bag)
        named = {name: bag[name] for name in ("ngrams", "edges", "weight")}
        letters = None if bag["letters"] is None else list(bag["letters"])
        settings["bag"] = {**named, "letters": letters, "items": "items.json"}
        items = {"items": reader.items.kept, "documents": reader.items.documents, "texts": reader.items.total}
        contents["items.json"] = files.to_json(items)
    else:
        both = tuple({name: each[name] for name in ("tokens", "mask")} for each in both)  # type: ignore[assignment]
    graph = Graph("scores", module, both, ["logp"])
    return Exported([graph], settings, contents, lambda count: _examples(pipeline, count), program="labels")


def _inputs(items: int, rows: int, steps: int) -> Mapping[str, Tensor]:
    draw = torch.Generator().manual_seed(rows)
    mask = torch.arange(steps) < torch.arange(steps, steps - rows, -1)[:, None]
    tokens = torch.randint(min(EOS + 1, items - 1), items, (rows, steps), generator=draw)
    return {"tokens": tokens * mask, "weights": torch.rand(rows, steps, generator=draw) * mask, "mask": mask}


def _examples(pipeline: "ClassifyPipeline", count: int) -> Sequence[str]:
    """Validation texts, or random tokens where the data is missing."""
    with suppress(DataError):
        found = [one.text for one in islice(pipeline.task.data.texts("valid"), count)]
        if found:
            return found
    draw = random.Random(SEED)
    numbers = range(EOS + 1, len(pipeline.reader.vocabulary))
    return [
        pipeline.reader.vocabulary.decode(draw.choices(numbers, k=draw.randint(1, 20))) for _ in range(count)
    ]
