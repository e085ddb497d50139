"""How far gradients reach: dh_T/dh_t for every t and layer, Pascanu's bound, an LSTM's two ways back.

Read next: ../../diagnose/reach.py, which measures; ../../diagnose/bound.py; ../../diagnose/verdict.py.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.utils import parametrize

from weft.diagnose.bound import STEEPEST, bound
from weft.diagnose.gates import gates
from weft.diagnose.reach import LAGS, measured, seen
from weft.diagnose.recorded import Run, Trace, places, titles_of, trace
from weft.diagnose.spectrum import recurrent_matrices, sigma_max
from weft.diagnose.verdict import verdict
from weft.inspect.views.cells import labels_of, longest_runs, steps_of
from weft.inspect.views.view import Block, View, chart, picture_of_lines, rows_of_lines, said, series
from weft.nn.cells.elman import Elman
from weft.nn.cells.lstm import LSTM
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Inspected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPERATIONS = 4e10
"""That all measures of a page may take; of longer sequences in wider cells the last steps are measured."""

LEAST = 8
"""Steps that are measured however wide a cell is."""

ABOVE = 1000.0
"""How far above the measure a bound is drawn, so that the measure can be seen."""


class GradientsView(View):
    """Lines of every layer.

    Args:
        charts: a block of lines for each cell.
        words: what is said of each.
    """

    title = "Gradient reach"
    order = 40

    def __init__(self, charts: Sequence[Block], words: Sequence[list[str]]) -> None:
        self.charts, self.words = charts, words

    @classmethod
    def collect(cls, opened: Opened, subject: Inspected) -> "GradientsView | None":
        """Where the model has recurrent cells and read two positions or more."""
        if subject.batch is None:
            return None
        with parametrize.cached():
            runs = [run for run in longest_runs(seen(opened.model, subject.batch)) if steps_of(run) > 1]
            titles = titles_of(places(opened.model))
            found = [_chart(run, subject, OPERATIONS / len(runs), titles[run.place.name]) for run in runs]
        return cls([one for one, _ in found], [words for _, words in found]) if found else None

    def blocks(self) -> list[Block]:
        """A chart and its words for each cell."""
        blocks: list[Block] = [
            said(
                "The spectral norm of the exact Jacobian of the last state with respect to each state before "
                "it: 1 passes a gradient on as it is, far below 1 nothing of it arrives. What attention and "
                "other layers do is held fixed."
            )
        ]
        before: set[str] = set()  # what holds of several cells is said once
        for one, words in zip(self.charts, self.words, strict=True):
            blocks += [one, *(said(sentence) for sentence in words if sentence not in before)]
            before.update(words)
        return blocks

    def table(self) -> Iterable[Sequence[object]]:
        """A row for each point."""
        return rows_of_lines(self.charts)

    def figure(self) -> "Figure":
        """Every cell, one below the other."""
        return picture_of_lines(self.charts)


def _chart(run: Run, subject: Inspected, budget: float, name: str) -> tuple[Block, list[str]]:
    place, whole = run.place, steps_of(run)
    numbers = sum(parameter.numel() for parameter in place.cell.parameters())
    most = max(LEAST, int(budget / (6.0 * place.cell.size * numbers + 20.0 * place.cell.size**3)))
    steps = trace(run, last=most if most < whole else None)
    labels = labels_of(place, whole, subject)
    count = len(steps.states)
    labels = labels[:count] if place.backward else labels[-count:]
    at = np.arange(count)
    norms = measured(steps).norms[0].double().cpu().numpy()
    lines = [series("measured ‖∂h_T/∂h_t‖", at, norms)]
    said_of = []
    if count < whole:
        said_of.append(f"Measured over {count} of {whole} steps: all of them would take too long for a page.")
    lags = {lag: float(norms[lag] if place.backward else norms[-1 - lag]) for lag in LAGS if lag < count}
    top = None
    if isinstance(place.cell, Elman):
        more, words = _bounds(steps, at)
        top = ABOVE * float(np.nanmax(norms))
        if not max(float(line["y"].max()) for line in more) <= top:
            words = [*words, "Where a bound leaves the picture it is larger yet; the numbers are in the CSV."]
    elif type(place.cell) is LSTM and place.cell.forget_gate:
        more, words = _cell_path(steps, at)
    else:
        more, words = [], []
    said_of = [_capital(verdict([lags], name=name).sentence) + ".", *words, *said_of]
    where = "position t (the last state is that of position 1)" if place.backward else "position t"
    return chart(name, where, "norm", [*lines, *more], log=True, labels=labels, top=top), said_of


def _bounds(steps: Trace, at: np.ndarray) -> tuple[list[Block], list[str]]:
    """Pascanu's bounds beside a plain network."""
    found = bound(steps)
    tight, coarse = (one[0].double().cpu().numpy() for one in (found.tight, found.coarse))
    cell = steps.place.cell
    assert isinstance(cell, Elman)
    matrices = recurrent_matrices(cell)
    assert matrices is not None
    first, gamma = float(sigma_max(matrices).max()), STEEPEST[cell.activation]
    product = gamma * first
    means = (
        "below 1, so gradients must vanish over long distances"
        if product < 1
        else "not below 1, from which nothing follows: only the measure tells"
    )
    words = (
        f"Bound of Pascanu, Mikolov & Bengio (2013): largest slope {gamma:g} x largest singular value "
        f"{first:.3f} = {product:.3f}, {means}."
    )
    lines = [
        series("bound (γ_max λ₁)^(T-t)", at, coarse, dashed=True),
        series("tighter bound Π γ_s λ₁", at, tight, dashed=True),
    ]
    return lines, [words]


def _cell_path(steps: Trace, at: np.ndarray) -> tuple[list[Block], list[str]]:
    """Along the cell alone, h held fixed: the product of an LSTM's forget gates."""
    forget = gates(steps)["forget_gate"][0]
    later = torch.cat([forget, torch.ones_like(forget[:1])]).flip(0).cumprod(0).flip(0)[1:]
    kept = later.double().cpu().numpy()
    kept = kept[::-1] if steps.place.backward else kept
    words = (
        "The cell path (dashed) is what comes back along c alone, h held fixed: the product of the forget "
        "gates, never above 1. The measured line goes every way round, through the gates and h too; only "
        "that one can still grow above 1."
    )
    lines = [
        series("cell path ‖Π f_s‖, the best unit", at, kept.max(1), dashed=True),
        series("cell path, median unit", at, np.median(kept, 1), dashed=True),
    ]
    return lines, [words]


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
