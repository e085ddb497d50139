"""Source texts to try an exported model on."""

import random
from collections.abc import Sequence
from contextlib import suppress

from weft.errors import DataError
from weft.tasks.shared.writing.ready import PairPipeline
from weft.text.vocabulary import EOS

SEED = 1


def examples(pipeline: PairPipeline, count: int) -> Sequence[str]:
    """Sources of the validation data that are not empty, or random pieces where the data is missing.

    Args:
        pipeline: the vocabularies, and the recipe that names the data.
        count: number of texts; fewer if the data has fewer.
    """
    with suppress(DataError):
        found = [text for text in pipeline.pairs("valid", None).sources if text.strip()]
        if found:
            return found[:count]
    draw = random.Random(SEED)
    numbers = range(EOS + 1, len(pipeline.source))
    return [pipeline.source.decode(draw.choices(numbers, k=draw.randint(3, 20))) for _ in range(count)]
