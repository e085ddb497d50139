"""Source texts to try an exported model on."""

import random
from collections.abc import Sequence
from contextlib import suppress

from weft.errors import DataError
from weft.tasks.shared.writing.ready import PairReady
from weft.text.vocabulary import EOS

SEED = 1


def examples(ready: PairReady, count: int) -> Sequence[str]:
    """Sources of the validation data that are not empty, or random pieces where the data is missing.

    Args:
        ready: the vocabularies, and the recipe that names the data.
        count: number of texts; fewer if the data has fewer.
    """
    with suppress(DataError):
        found = [text for text in ready.pairs("valid", None).sources if text.strip()]
        if found:
            return found[:count]
    draw = random.Random(SEED)
    numbers = range(EOS + 1, len(ready.source))
    return [ready.source.decode(draw.choices(numbers, k=draw.randint(3, 20))) for _ in range(count)]
