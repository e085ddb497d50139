"""A masked language model as one graph: the tokens of a text to the log-probabilities at each position."""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.nn.positions import most_positions
from weft.tasks.exported import Exported, Graph
from weft.tasks.masked.model import SPECIALS, Masked
from weft.tasks.masked.predictor import MASK, Filler
from weft.text.portable import portable
from weft.text.vocabulary import EOS, SOS

if TYPE_CHECKING:
    from weft.tasks.masked.ready import MaskedPipeline

SEED = 1
STEPS = 10  # of the longer example


def exported(pipeline: "MaskedPipeline", model: nn.Module) -> Exported:
    """See ../exported.py.

    Raises:
        ConfigError: the vocabulary is a sentencepiece model.
    """
    assert isinstance(model, Masked)
    size, most = len(pipeline.vocabulary), most_positions(model)
    steps = STEPS if most is None else min(most, STEPS)
    settings: dict[str, Any] = {
        "kind": "filler",
        "vocabulary": "tokenizer.json",
        "gap": MASK,
        "mask": size,
        "sos": SOS,
        "eos": EOS,
        "banned": list(range(SPECIALS)),
        "max_length": most,
    }
    graph = Graph("pieces", model, (_inputs(size, 3, steps - 3), _inputs(size, 2, steps)), ["logp"])
    return Exported(
        [graph],
        settings,
        {"tokenizer.json": portable(pipeline.vocabulary)},
        lambda count: _examples(pipeline, Filler(model, pipeline.vocabulary), most, count),
        program="gaps",
    )


def _inputs(size: int, rows: int, steps: int) -> Mapping[str, Tensor]:
    """Random texts with gaps, each shorter than the one before."""
    draw = torch.Generator().manual_seed(rows)
    lengths = torch.arange(steps, steps - rows, -1).clamp(min=1)
    mask = torch.arange(steps) < lengths[:, None]
    tokens = torch.randint(min(SPECIALS, size), size + 1, (rows, steps), generator=draw)
    return {"tokens": tokens * mask, "mask": mask}


def _examples(pipeline: "MaskedPipeline", filler: Filler, most: int | None, count: int) -> Sequence[str]:
    """Validation lines with a word left out, or random tokens where the data is missing."""
    draw = random.Random(SEED)
    length, vocabulary = pipeline.task.data.length, pipeline.vocabulary
    with suppress(DataError):
        words = (line.split()[:length] for line in pipeline.task.data.open("valid"))
        gaps = (_gap(row, draw) for row in words if row)
        found = list(islice((text for text in gaps if len(filler.tokens(text)) <= (most or 2**31)), count))
        if found:
            return found
    pieces, longest = range(SPECIALS, len(vocabulary)), min(20, length if most is None else most - 3)
    rows = [draw.choices(pieces, k=draw.randint(1, longest)) for _ in range(count)]
    return [f"{vocabulary.decode(row)} {MASK}" for row in rows]


def _gap(words: Sequence[str], draw: random.Random) -> str:
    """The words with a gap in place of one."""
    place = draw.randrange(len(words))
    return " ".join([*words[:place], MASK, *words[place + 1 :]])
