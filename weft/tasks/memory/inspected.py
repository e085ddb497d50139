"""What `weft inspect` shows of a sequence to remember."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.tasks.inspection import Examples, Inspected, checked, choices_of
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.memory.problems import NAMES, PROBLEMS

if TYPE_CHECKING:
    from weft.tasks.memory.ready import MemoryPipeline

MOST = 300
"""Maximum number of positions to show."""


def inspected(
    pipeline: "MemoryPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    The text is a line of the problem; without one, the first test example is used.
    """
    rememberer = pipeline.predictor(model)
    data, model = rememberer.data, rememberer.model
    device = next(model.parameters()).device
    adding = data.problem == "adding"
    if text is None:
        batch = data.batch("test", np.arange(1))
        x = batch.source
    else:
        x = rememberer.read(checked(text))
    x = x.to(device)
    mask = torch.ones(x.shape[:2], dtype=torch.bool, device=device)
    with torch.no_grad():
        best = model.best(x, mask)
        answer = rememberer.write(rememberer.answer(x, mask))[0]
    if adding:
        source = [f"{value:.2f}{'*' if mark else ''}" for value, mark in x[0].tolist()]
        target = best[:, 0]
        choices = []
    else:
        signs = PROBLEMS[data.problem].names(data.symbols)
        source = [signs[int(n)] for n in x[0].tolist()]
        with torch.no_grad():
            logp = model(x, mask)[0]
        target, last = best, rememberer.asked(x)
        asked = source[:last] if data.problem == "copying" else source[-last:]
        choices = choices_of(logp[-last:], best[0, -last:].tolist(), NAMES, asked)
    shown = ("" if max(map(len, source)) == 1 else " ").join(source)
    return Inspected(
        text=shown if text is None else text,
        answer=answer,
        source=source,
        batch=LabelBatch(x, mask, target, int(target.numel())),
        choices=choices,
        chosen_what="the symbols that are asked",
    )
