"""A classifier of pictures or clips as one graph: pixels to the log-probability of each class."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from weft.errors import DataError
from weft.models import Predictor
from weft.nn.pictures.front import Front
from weft.tasks.exported import Exported, Graph
from weft.tasks.pictures.pictures import content, encoded, noise, readable

if TYPE_CHECKING:
    from weft.tasks.images.ready import ImagesPipeline


class Classes(nn.Module):
    """Pixels to log-probabilities."""

    def __init__(self, model: Predictor) -> None:
        super().__init__()
        assert isinstance(model.embed, Front)
        self.model = model
        self.places = model.embed.places

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, *shape] uint8 to [B, C]."""
        x = pixels.float() / 127.5 - 1  # as in ../pictures/pictures.py
        mask = torch.ones(pixels.shape[0], self.places, dtype=torch.bool, device=pixels.device)
        logp: Tensor = self.model(x, mask)[:, 0]
        return logp


def exported(pipeline: "ImagesPipeline", model: nn.Module) -> Exported:
    """What `weft export` writes for this task."""
    assert isinstance(model, Predictor)
    both = {"pixels": noise(pipeline.shape, 2)}, {"pixels": noise(pipeline.shape, 3)}
    settings: dict[str, Any] = {
        "kind": "pictures",
        "classes": pipeline.names,
        "shape": list(pipeline.shape),
        "size": pipeline.task.data.size,
        "frames": pipeline.task.data.frames,
    }
    graph = Graph("scores", Classes(model), both, ["logp"])

    def examples(count: int) -> Sequence[bytes]:
        return readable(pipeline.predictor(model), pipeline.shape, _files(pipeline), count)

    return Exported([graph], settings, {}, examples, program="pictures")


def _files(pipeline: "ImagesPipeline") -> Iterator[bytes]:
    """The content of the validation files, or the generated pictures as files."""
    data = pipeline.task.data
    with suppress(DataError, OSError):
        if data.generated is not None:
            yield from map(encoded, data.load("valid").pixels)
        yield from (content(one.path) for one in data.find("valid"))
