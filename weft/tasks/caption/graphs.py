"""A captioner as graphs: `start` reads a picture, `step` writes one word. Read next: ../exported.py."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import torch
from torch import Tensor

from weft.errors import DataError
from weft.metrics.cider import cider_d
from weft.tasks.caption.predictor import Captioner
from weft.tasks.exported import SCORED, ModelExport, Score
from weft.tasks.pictures.data import CaptionData
from weft.tasks.pictures.pictures import content, encoded, noise, readable
from weft.tasks.seq2seq.graphs import written


def export_captioner(captioner: Captioner) -> ModelExport:
    """What `weft export` writes for a captioner."""
    data, shape = captioner.data, captioner.shape
    places = captioner.front.places

    def read(picture: Tensor) -> tuple[Tensor, Tensor]:
        return picture, torch.ones(picture.shape[0], places, dtype=torch.bool, device=picture.device)

    two, three = ({"picture": noise(shape, rows).float() / 127.5 - 1} for rows in (2, 3))
    form = written(
        captioner.model,
        (two, three),
        captioner.vocabulary,
        captioner.decoding,
        program="captions",
        more={
            "kind": "captions",
            "shape": list(shape),
            "size": shape[0] if data.generated else data.size,
        },
        read=read,
    )

    def examples(count: int) -> Sequence[bytes]:
        return readable(captioner, shape, (one for one, _ in _pairs(data)), count)

    def scored() -> tuple[Sequence[bytes], Score | None]:
        pairs = list(islice(_pairs(data), SCORED))
        if not pairs:
            return examples(SCORED), None
        references = [captions for _, captions in pairs]
        return [one for one, _ in pairs], lambda answers: ("CIDEr-D", cider_d(answers, references).value)

    return form._replace(examples=examples, scored=scored)


def _pairs(data: CaptionData) -> Iterator[tuple[bytes, list[str]]]:
    """The files of the validation pictures and their captions; nothing where the data is missing."""
    with suppress(DataError, OSError):
        if data.generated is not None:
            found = data.load("valid")
            yield from zip(map(encoded, found.pixels), found.captions, strict=True)
        yield from ((content(one.path), one.captions) for one in data.find("valid"))
