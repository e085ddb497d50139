"""Words and their nearest neighbours among the word vectors."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.errors import DataError
from weft.tasks.embeddings.predictor import NEAREST
from weft.tasks.inspection import Examples, Inspected, Vectors, checked

if TYPE_CHECKING:
    from weft.tasks.embeddings.ready import EmbeddingsPipeline


def inspected(
    pipeline: "EmbeddingsPipeline",
    model: Any,
    text: str | None,
    examples: Examples,
    options: Mapping[str, Any],
) -> Inspected:
    """See Pipeline.inspected.

    The text is words separated by spaces; the answer names the words without a vector.
    """
    text = checked(examples.middle() if text is None else text)
    vectors = pipeline.predictor(model)
    asked = text.split()
    known = [word for word in asked if word in vectors]
    if not known:
        raise DataError(
            f"expected a word that has a vector, got {' '.join(asked)[:60]}; the run has vectors of "
            f"{len(vectors.words):,} words of its training text"
        )
    rows = [vectors.list.number[vectors.data.word(word)] for word in known]
    near = " ".join(one.word for one in vectors.nearest(known[0], NEAREST))
    unknown = [word for word in asked if word not in vectors]
    left = f" (without a vector: {' '.join(unknown)[:200]})" if unknown else ""
    return Inspected(
        text=text,
        answer=f"near {known[0]}: {near}{left}",
        vectors=Vectors(vectors.words, vectors.matrix, rows, known, None),
    )
