"""A language model as one graph, `step`, which reads and writes one token. Read next: ../exported.py."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weft.errors import ConfigError, DataError
from weft.models import Generator
from weft.tasks.exported import Exported
from weft.tasks.language.reading import known
from weft.tasks.predictor import Json
from weft.tasks.seq2seq.graphs import stepping
from weft.text.portable import portable
from weft.text.vocabulary import EOS, PAD, SOS, UNK
from weft.tree import leaves

if TYPE_CHECKING:
    from weft.tasks.language.ready import LanguagePipeline

SEED = 1


def exported(pipeline: "LanguagePipeline", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the recipe mixes in n-grams or a cache.
    """
    assert isinstance(model, Generator)
    how = pipeline.task.decoding
    for name, wanted in (("mixture", "count n-grams"), ("cache", "keep a cache")):
        if getattr(how, name):
            raise ConfigError(
                f"decoding: {name}: a graph cannot {wanted}; set it to 0 in the run's recipe.yaml"
            )
    with torch.no_grad():
        states = [model.start(None, torch.ones(rows, 1, dtype=torch.bool)) for rows in (1, 2, 3)]
    step, state = stepping(model, states[1:])
    first = [_value(leaf) for leaf in leaves(states[0])]
    writer = pipeline.predictor(model)
    settings: dict[str, Any] = {
        "kind": "continue",
        "sos": SOS,
        "eos": EOS,
        "pad": PAD,
        "unk": UNK,
        "known": known([UNK], len(pipeline.vocabulary))[0],
        "ends": writer.ends,
        "banned": [PAD, UNK, SOS],
        "state": [{**one, **value} for one, value in zip(state, first, strict=True)],
        "window": writer.reader.window,
        "decoding": {**asdict(how), "stop": list(how.stop)},
        "vocabulary": "tokenizer.json",
    }
    files = {"tokenizer.json": portable(pipeline.vocabulary)}
    examples = partial(_examples, pipeline)
    return Exported([step], settings, files, examples, program="continuing", options={"beam": 1})


def _value(leaf: Tensor) -> dict[str, Json]:
    """The tensor [1, ..] before the first step; its numbers are left out if all are zero."""
    values: Any = leaf.flatten().tolist() if bool(leaf.any()) else None
    return {"shape": list(leaf.shape), "type": str(leaf.dtype).removeprefix("torch."), "values": values}


def _examples(pipeline: "LanguagePipeline", count: int) -> Sequence[str]:
    """The first half of validation lines, or random tokens where the data is missing."""
    with suppress(DataError):
        lines = [line for line in islice(pipeline.task.data.open("valid"), 10 * count) if line.strip()]
        if lines:
            halves = [" ".join(line.split()[: 1 + len(line.split()) // 2]) for line in lines]
            return halves[:count]
    draw = random.Random(SEED)
    numbers = range(EOS + 1, len(pipeline.vocabulary))
    return [pipeline.vocabulary.decode(draw.choices(numbers, k=5)) for _ in range(count)]
