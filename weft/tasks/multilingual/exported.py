"""The graphs of a model of many directions; the program takes the target language as an option."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from torch import nn

from weft.errors import DataError
from weft.tasks.exported import ModelExport
from weft.tasks.predictor import Json
from weft.tasks.seq2seq.graphs import rewriting
from weft.text.vocabulary import EOS

if TYPE_CHECKING:
    from weft.tasks.multilingual.ready import ManyPipeline


def exported(pipeline: "ManyPipeline", model: nn.Module) -> ModelExport:
    """What `weft export` writes for this task."""
    data, vocabulary = pipeline.task.data, pipeline.source
    directions: dict[str, Json] = {}
    for source, target in pipeline.directions():
        asking = data.asking(vocabulary, source, target)
        directions[f"{source}-{target}"] = {"first": list(asking.first), "prompt": asking.prompt}
    form = rewriting(
        model,
        vocabulary,
        vocabulary,
        pipeline.decoding,
        symbols=data.symbols,
        more={"directions": directions},
    )
    source, target = pipeline.directions()[0]
    options = {"target": target, "source": source}
    return form._replace(examples=lambda count: _examples(pipeline, count), options=options)


def _examples(pipeline: "ManyPipeline", count: int) -> Sequence[str]:
    """Validation sources of the first direction, or single pieces where the data is missing."""
    with suppress(DataError):
        rows = pipeline.task.data.of(pipeline.task.data.pairs[0]).open("valid")
        found = [row.source for row in islice(rows, 10 * count) if row.source.strip()]
        if found:
            return found[:count]
    return [pipeline.source.decode([number]) for number in range(EOS + 1, EOS + 1 + count)]
