"""A text and its class: the weights of its words, and the probabilities of the classes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.tasks.inspection import (
    Choice,
    Examples,
    Inspected,
    Vectors,
    around,
    checked,
    sentences,
    table_of,
)

if TYPE_CHECKING:
    from weft.tasks.classify.ready import ClassifyPipeline


def inspected(
    pipeline: "ClassifyPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    The classifier may read tokens in order or a bag.
    """
    text = checked(examples.middle() if text is None else text)
    classifier = pipeline.predictor(model)
    reader = classifier.reader
    rows = reader.encode([text])
    explanation = classifier.explain(text)
    decided = explanation.decided
    device = next(model.parameters()).device
    batch = reader.batch(rows, [decided.label], [text]).to(device)
    order = decided.probs.argsort()[::-1][:12]
    others = [(reader.classes[int(n)], float(decided.probs[n])) for n in order]
    pieces = reader.vocabulary.pieces(rows[0])
    vectors, ordered = None, reader.items is None
    table = table_of(model.embed, len(reader.vocabulary)) if ordered else None  # type: ignore[arg-type]
    if table is not None and rows[0]:

        def context(line: str) -> tuple[list[str], np.ndarray] | None:
            row = reader.encode([line])
            given = reader.batch(row, [reader.classes[0]], [line]).to(device)
            with torch.no_grad():
                memory = model.memory(given.source, given.source_mask)  # type: ignore[operator]
            states = memory.states[0].float().cpu().numpy()
            return (reader.vocabulary.pieces(row[0]), states) if len(states) == len(row[0]) else None

        own = context(text)
        names = reader.vocabulary.pieces(range(len(reader.vocabulary)))
        beside = None
        if own is not None:
            valid = sentences(lambda: (one.text for one in pipeline.task.data.texts("valid")))
            beside = around(valid, context)
        vectors = Vectors(names, table, rows[0], pieces, None if own is None else own[1], beside)
    return Inspected(
        text=text,
        answer=f"{decided.label} ({decided.prob:.1%})",
        source=pieces if ordered else (),
        batch=batch,
        choices=[Choice("", decided.label, decided.prob, others)],
        chosen_what="the classes of the text",
        vectors=vectors,
        weights=(explanation.words, explanation.weights, explanation.shown),
    )
