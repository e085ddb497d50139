"""How far gradients reach: dh_T/dh_t and dy_T/dx_t for every layer, Pascanu's bound, an LSTM's cell path.

Read next: ../../diagnose/reach.py, which measures it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils import parametrize

from weft.diagnose.forgetting import gates, output_reach
from weft.diagnose.jacobian import recurrent_matrices, sigma_max
from weft.diagnose.reach import LAGS, LITTLE, STEEPEST, bound, measured_reach, verdict
from weft.diagnose.recorded import RecordedRun, StepTrace, trace
from weft.inspect.views.cells import labels_of, steps_of, titled_runs
from weft.inspect.views.view import Block, ChartsView, capital, chart, said, series
from weft.nn.cells.elman import Elman
from weft.nn.cells.lstm import LSTM
from weft.run import LoadedRun
from weft.tasks.inspection import Inspection

OPERATIONS = 4e10
"""Budget for all measurements of a page; if it is too small, only the last steps are measured."""

LEAST = 8  # minimum number of steps to measure
ABOVE = 1000.0
"""Bounds are drawn up to this multiple of the measured values, which stay readable."""


class GradientsView(ChartsView):
    """How far back gradients reach."""

    title = "Gradient reach"
    order = 40

    def __init__(self, charts: Sequence[Block], *, words: Sequence[list[str]]) -> None:
        super().__init__(charts)
        self.words = words

    @classmethod
    def collect(cls, opened: LoadedRun, subject: Inspection) -> "GradientsView | None":
        with parametrize.cached():
            runs = [(run, title) for run, title in titled_runs(opened, subject) if steps_of(run) > 1]
            found = [_chart(run, subject, OPERATIONS / len(runs), title) for run, title in runs]
        return cls([one for one, _ in found], words=[words for _, words in found]) if found else None

    def blocks(self) -> list[Block]:
        blocks: list[Block] = [
            said(
                "The spectral norm of the exact Jacobian of the last state with respect to each earlier "
                "state. At 1 a gradient passes unchanged; far below 1 it vanishes. The faint line is the "
                "gradient of the last output by each input of the layer, as a share of its largest value. "
                "Attention and other layers are held fixed."
            )
        ]
        before: set[str] = set()  # a sentence that applies to several cells is shown once
        for one, words in zip(self.charts, self.words, strict=True):
            blocks += [one, *(said(sentence) for sentence in words if sentence not in before)]
            before.update(words)
        return blocks


def _chart(run: RecordedRun, subject: Inspection, budget: float, name: str) -> tuple[Block, list[str]]:
    place, whole = run.place, steps_of(run)
    numbers = sum(parameter.numel() for parameter in place.cell.parameters())
    most = max(LEAST, int(budget / (6.0 * place.cell.size * numbers + 20.0 * place.cell.size**3)))
    steps = trace(run, last=most if most < whole else None)
    labels = labels_of(place.name, whole, subject)
    count = len(steps.states)
    labels = labels[:count] if place.backward else labels[-count:]
    at = np.arange(count)
    norms = measured_reach(steps).norms[0].double().cpu().numpy()
    back = output_reach(steps).cpu().numpy()
    shares = back / (back.max() or 1.0)
    lines = [series("measured ‖∂h(T)/∂h(t)‖", at, norms)]
    real = steps.mask[0].nonzero()[:, 0].cpu().numpy()
    where = count - 1 - real if place.backward else real
    lines.append(series("‖∂y(T)/∂x(t)‖, share of its largest", where, shares, faint=True, colour=5))
    said_of = [_depends(shares)]
    if count < whole:
        said_of.append(
            f"Measured over the last {count} of {whole} steps; all of them would take too long for a page."
        )
    lags = {lag: float(norms[lag] if place.backward else norms[-1 - lag]) for lag in LAGS if lag < count}
    top = None
    if isinstance(place.cell, Elman):
        more, words = _bounds(steps, at)
        top = ABOVE * float(np.nanmax(norms))
        if not max(float(line["y"].max()) for line in more) <= top:
            words = [
                *words,
                "A bound that leaves the chart is larger still; its numbers are in the CSV file.",
            ]
    elif type(place.cell) is LSTM and place.cell.forget_gate:
        more, words = _cell_path(steps, at)
    else:
        more, words = [], []
    said_of = [capital(verdict([lags], name=name).sentence) + ".", *words, *said_of]
    axis = "position t (the last state is at position 1)" if place.backward else "position t"
    return chart(name, axis, "norm", [*lines, *more], log=True, labels=labels, top=top), said_of


def _depends(shares: np.ndarray) -> str:
    """How far back the last output depends on the input, in words; shares [T] in reading order."""
    steps = len(shares)
    far = np.nonzero(shares >= LITTLE)[0]
    if not far.size:
        return "The last output does not depend on the input."
    if far[0] == 0:
        return (
            f"The gradient of the last output reaches all {steps} positions: at the one read first it is "
            f"{shares[0]:.1%} of its largest value."
        )
    return (
        f"The gradient of the last output reaches {steps - 1 - far[0]} of {steps - 1} steps back; further "
        f"back it is below {LITTLE:.0%} of its largest value."
    )


def _bounds(steps: StepTrace, at: np.ndarray) -> tuple[list[Block], list[str]]:
    """Pascanu's bounds for a plain recurrent network."""
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
        else "not below 1, so the bound says nothing"
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


def _cell_path(steps: StepTrace, at: np.ndarray) -> tuple[list[Block], list[str]]:
    """The gradient along c only, with h held fixed: the product of an LSTM's forget gates."""
    forget = gates(steps)["forget_gate"][0]
    later = torch.cat([forget, torch.ones_like(forget[:1])]).flip(0).cumprod(0).flip(0)[1:]
    kept = later.double().cpu().numpy()
    kept = kept[::-1] if steps.place.backward else kept
    words = (
        "The cell path (dashed) is the gradient along c only, with h held fixed: the product of the forget "
        "gates, never above 1. The measured line includes every path, also through the gates and h, and can "
        "exceed 1."
    )
    lines = [
        series("cell path ‖Π f(s)‖, best unit", at, kept.max(1), dashed=True),
        series("cell path, median unit", at, np.median(kept, 1), dashed=True),
    ]
    return lines, [words]
