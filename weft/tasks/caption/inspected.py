"""A picture and its caption: every hypothesis, and the places that each word attended to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.search.trace import Trace
from weft.tasks.caption.predictor import Captioner, captioned
from weft.tasks.inspection import Examples, Inspection, asked, pictured, places
from weft.tasks.pictures.pictures import source
from weft.tasks.seq2seq.batch import PairBatch
from weft.tasks.seq2seq.inspection import decoded, plain_beam

if TYPE_CHECKING:
    from weft.tasks.caption.ready import CaptionPipeline


def inspected(
    pipeline: "CaptionPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspection:
    """See Pipeline.inspected.

    The text is the name of a picture; without one, a validation picture is used.
    """
    plain = pipeline.predictor(model)
    how = plain_beam(plain.decoding)
    captioner = Captioner(plain.model, plain.vocabulary, how, plain.shape, plain.data)
    picture, name = asked(pipeline.task.data, captioner.read, text)
    return of(captioner, picture, name)


def of(captioner: Captioner, picture: np.ndarray, name: str) -> Inspection:
    """The captions of a picture and their search.

    Args:
        captioner: searches with a plain beam.
        picture: of the model's shape.
        name: of the picture.
    """
    front = captioner.front
    device = next(captioner.model.parameters()).device
    x, mask = source(picture[None], front.places)
    trace = Trace()
    found = captioner.search(x.to(device), mask.to(device), trace, None)

    def batch_of(tokens: list[int]) -> PairBatch:
        return captioned(picture[None], [tokens], front.places).to(device)

    shown = decoded(captioner.model, captioner.vocabulary, found, trace, batch_of, width=front.places)
    best = shown.hypotheses[0]
    return Inspection(
        text=name,
        answer=best.text,
        source=places(front.grid),
        target=shown.target,
        batch=shown.batch,
        hypotheses=shown.hypotheses,
        searched=shown.searched,
        choices=shown.choices,
        chosen_what="each word of the best caption, given those before it",
        picture=pictured(picture, best.pieces, best.looks, front.grid, "where each word looked"),
    )
