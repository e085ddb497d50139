"""What the tests of several toolkits' checkpoints do: log-probabilities of given targets, and searches."""

from pathlib import Path
from typing import Any

import torch

from weft.run import open_run
from weft.tasks.shared.writing.batch import collate_pairs


def log_probabilities(run: Path, sources: list[str], targets: list[str]) -> list[list[float]]:
    """Of each token of the targets and its end, one pair at a time."""
    opened = open_run(run, device="cpu")
    translator = opened.ready.predictor(opened.model)
    found = []
    for source, target in zip(sources, targets, strict=True):
        batch = collate_pairs([translator.source.encode(source)], [translator.target.encode(target)])
        with torch.no_grad():
            logp = opened.model.head(opened.model.features(batch))[0]
        found.append(logp.gather(1, batch.target_out[0][:, None])[:, 0].tolist())
    return found


def translations(run: Path, sources: list[str], options: dict[str, Any]) -> list[str]:
    """The best translation of each source."""
    opened = open_run(run, device="cpu")
    return [found[0].text for found in opened.ready.predictor(opened.model, options).translate(sources)]
