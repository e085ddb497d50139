"""Position encodings: those of the model, next to others for comparison.

Read next: ../../nn/positions.py, ../../nn/distances.py.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import nn

from weft.figures.records import Figure
from weft.inspect.views.view import Block, Matrix, View, chart, matrix, picture_of_lines, said, series
from weft.nn.distances import Alibi, Relative, Rotary
from weft.nn.positions import Concatenated, Learned, Sinusoidal, sinusoid
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

COUNT = 64
"""Number of positions to compare."""

HEADS = 4


class PositionsView(View):
    """Position encodings."""

    title = "Positions"
    order = 55

    def __init__(self, own: Sequence[Matrix], others: Sequence[Matrix]) -> None:
        self.own, self.others = list(own), list(others)

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "PositionsView | None":
        own: dict[str, Matrix] = {}
        for name, module in opened.model.named_modules():
            found = _of(module, name.split(".")[0])
            if found is not None:
                own.setdefault(str(found["name"]), found)
        if not own:
            return None
        others = [_of(part, "compared") for part in (Sinusoidal(64), Rotary(32), Alibi(HEADS))]
        return cls(list(own.values()), [one for one in others if one is not None])

    def blocks(self) -> list[Block]:
        groups = [{"name": "this model", "items": self.own}, {"name": "for comparison", "items": self.others}]
        return [
            said(
                "The similarity of positions: the cosine of two encodings (sinusoidal, learned, rotary), or "
                "the bias added to attention scores (ALiBi, relative)."
            ),
            {"kind": "matrices", "pick": "encodings", "each": "kind", "groups": groups},
            self._lines(),
        ]

    def table(self) -> Iterable[Sequence[object]]:
        yield "encoding", "position", "other", "value"
        for one in [*self.own, *self.others]:
            for (t, s), value in np.ndenumerate(one["values"]):
                yield one["name"], t, s, float(value)

    def figure(self) -> "Figure":
        return picture_of_lines([self._lines()])

    def _lines(self) -> Block:
        middle = COUNT // 2
        lines = []
        for one in [*self.own, *self.others]:
            values = one["values"][min(middle, len(one["values"]) - 1)]
            shown = values / max(1e-6, float(np.abs(values).max()))
            lines.append(
                series(one["name"], np.arange(len(values)) - middle, shown, dashed=one in self.others)
            )
        return chart(f"Seen from position {middle}", "distance", "relative to the maximum", lines)


@torch.no_grad()
def _of(module: nn.Module, part: str) -> Matrix | None:
    """The matrix of an encoding over all pairs of positions, or None."""
    whole = torch.arange(COUNT)
    like = torch.zeros(1)
    if isinstance(module, Concatenated):
        return None  # its sinusoid is a separate module
    if isinstance(module, Sinusoidal):
        return _cosines(f"{part}: sinusoidal", sinusoid(whole, module.size, module.base, dtype=torch.float64))
    if isinstance(module, Learned):
        return _cosines(f"{part}: learned", module.table.weight[:COUNT].double().cpu())
    if isinstance(module, Rotary):
        turn = module(range(COUNT), range(COUNT), like).turn
        assert turn is not None
        angles = torch.cat([each.reshape(COUNT, -1) for each in turn], 1)
        return _cosines(f"{part}: rotary, of equal vectors", angles.double())
    if isinstance(module, Alibi | Relative):
        device = next(iter([*module.parameters(), *module.buffers()])).device
        bias = module(range(COUNT), range(COUNT), torch.zeros(1, device=device)).bias
        assert bias is not None
        values = bias[0].mean(0).float().cpu().numpy()
        kind = "ALiBi" if isinstance(module, Alibi) else "relative, learned"
        top = max(1e-6, float(np.abs(values).max()))
        names = [str(n) for n in range(COUNT)]
        return matrix(f"{part}: {kind}, mean over heads", values, names, names, low=-top, high=top)
    return None


def _cosines(name: str, vectors: torch.Tensor) -> Matrix:
    unit = vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-12)
    names = [str(n) for n in range(len(vectors))]
    return matrix(name, (unit @ unit.T).numpy(), names, names, low=-1.0, high=1.0)
