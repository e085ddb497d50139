"""Texts to compare an export on: of the run's validation data, or random pieces where it is missing."""

from contextlib import suppress
from itertools import islice
from typing import Any

from weft.errors import DataError
from weft.export.agreement import COUNT
from weft.run import LoadedRun
from weft.tasks.export import random_texts
from weft.tasks.running_text.data import ProseData
from weft.tasks.seq2seq.base import PairPipeline


def sources(opened: LoadedRun) -> list[str]:
    """Texts that the model translates, continues or fills."""
    pipeline: Any = opened.pipeline
    if isinstance(pipeline, PairPipeline):
        return list(pipeline.examples(COUNT))
    data = getattr(opened.task, "data", None)
    if isinstance(data, ProseData):
        with suppress(DataError):
            lines = [line for line in islice(data.open("valid"), 10 * COUNT) if line.strip()]
            if lines:  # the beginning of a line, to be continued
                return [line[: len(line) // 2 + 1] for line in lines[:COUNT]]
    return random_texts(pipeline.vocabulary, COUNT, 3)
