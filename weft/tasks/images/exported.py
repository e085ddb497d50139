"""A classifier of pictures or clips as one graph: pixels to the log-probability of each class."""

import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from weft.errors import DataError
from weft.models import Predictor
from weft.nn.pictures.front import Front
from weft.tasks.exported import Exported, Graph
from weft.tasks.predictor import Place

if TYPE_CHECKING:
    from weft.tasks.images.ready import ImagesReady

SEED = 1
TRIED = 200
"""Maximum number of validation files that are read to find examples."""


class Classes(nn.Module):
    """Pixels to log-probabilities."""

    def __init__(self, model: Predictor) -> None:
        super().__init__()
        assert isinstance(model.embed, Front)
        self.model = model
        self.places = model.embed.places

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, *shape] uint8 to [B, C]."""
        x = pixels.float() / 127.5 - 1  # as in ../shared/pictures/batch.py
        mask = torch.ones(pixels.shape[0], self.places, dtype=torch.bool, device=pixels.device)
        logp: Tensor = self.model(x, mask)[:, 0]
        return logp


def exported(ready: "ImagesReady", model: nn.Module) -> Exported:
    """See ../exported.py."""
    assert isinstance(model, Predictor)
    both = {"pixels": _noise(ready.shape, 2)}, {"pixels": _noise(ready.shape, 3)}
    settings: dict[str, Any] = {
        "kind": "pictures",
        "classes": ready.names,
        "shape": list(ready.shape),
        "size": ready.task.data.size,
        "frames": ready.task.data.frames,
    }
    graph = Graph("scores", Classes(model), both, ["logp"])
    return Exported([graph], settings, {}, lambda count: _examples(ready, model, count), program="pictures")


def _noise(shape: tuple[int, ...], rows: int) -> Tensor:
    draw = torch.Generator().manual_seed(SEED + rows)
    return torch.randint(256, (rows, *shape), generator=draw, dtype=torch.uint8)


def _examples(ready: "ImagesReady", model: Predictor, count: int) -> Sequence[bytes]:
    """Validation files that the model can read; noise where there are too few."""
    predictor = ready.predictor(model)
    found: list[bytes] = []
    noise = (_encoded(one) for one in _noise(ready.shape, count).numpy())
    for content in chain(islice(_files(ready), TRIED), noise):
        with suppress(DataError):  # a .npy is not recognised by its content
            predictor.parse(content, Place("example"))
            found.append(content)
        if len(found) == count:
            break
    return found


def _files(ready: "ImagesReady") -> Iterator[bytes]:
    """The content of the validation files, or the generated pictures as files."""
    data = ready.task.data
    with suppress(DataError, OSError):
        if data.generated is not None:
            yield from map(_encoded, data.load("valid").pixels)
        for one in data.find("valid"):
            yield one.path.read_bytes()


def _encoded(pixels: np.ndarray) -> bytes:
    """A picture as PNG, a clip as GIF."""
    out = io.BytesIO()
    if pixels.ndim == 3:
        Image.fromarray(pixels).save(out, "png")
    else:
        first, *others = map(Image.fromarray, pixels)
        first.save(out, "gif", save_all=True, append_images=others)
    return out.getvalue()
