"""A sequence to be remembered; without a text the first test example of the run's problem."""

import numpy as np
import torch

from weft.run import Opened
from weft.tasks.memory.predictor import LETTERS
from weft.tasks.shared.inspected.inspected import Kind, Subject, checked, choices_of
from weft.tasks.shared.labels.batch import LabelBatch

MOST = 300
"""Positions that are shown."""


class MemorySubject(Kind):
    """Of the adding and the copying problem."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        rememberer = opened.task.predictor(opened.model)
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
            symbols = [*LETTERS, "·", "!"]
            source = [symbols[min(int(n), len(symbols) - 1)] for n in x[0].tolist()]
            with torch.no_grad():
                logp = model(x, mask)[0]
            names = [*symbols, *map(str, range(len(symbols), logp.shape[1]))]
            target, last = best, data.symbols
            choices = choices_of(logp[-last:], best[0, -last:].tolist(), names, source[:last])
        shown = " ".join(source) if adding else "".join(source)
        return Subject(
            opened=opened,
            text=shown if text is None else text,
            answer=answer,
            source=source,
            batch=LabelBatch(x, mask, target, int(target.numel())),
            choices=choices,
            chosen_what="the symbols that were to be recalled",
        )
