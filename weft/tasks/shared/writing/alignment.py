"""The attention of a model for each token that it wrote, for one source and one target.

Read next: translator.py; ../../../figures/pharaoh.py, which turns it into pairs of words.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from weft.errors import ConfigError
from weft.models import Generator
from weft.probe import probe
from weft.tasks.shared.writing.batch import collate_pairs
from weft.text.vocabulary import EOS


class Alignment(NamedTuple):
    """The attention of a translation."""

    weights: np.ndarray  # [T, S] attention of each target token over the source tokens
    source: list[int]
    target: list[int]
    shown: str  # names the layer and heads, for a caption


def align(model: Generator, source: Sequence[int], target: Sequence[int]) -> Alignment:
    """The attention while this target was written for this source.

    Args:
        model: in evaluation mode.
        source, target: tokens without special symbols.

    Raises:
        ConfigError: the model has no attention.
    """
    batch = collate_pairs([list(source)], [list(target)]).to(next(model.parameters()).device)
    with torch.no_grad(), probe() as seen:
        model.features(batch)
    if seen["attention"]:
        parts = [part for part in seen["attention"] if part.shape[2] == batch.source.shape[1]]
        weights, shown = torch.cat(parts, 1), "attention"
    elif seen["cross_attention"]:
        layers = seen["cross_attention"]
        layer = max(0, len(layers) - 2)  # Garg et al. 2019: the last layer but one aligns best
        weights = layers[layer].mean(1)
        shown = f"decoder, layer {layer + 1} of {len(layers)}, mean of {layers[layer].shape[1]} heads"
    else:
        raise ConfigError(
            "this model has no attention, so it has no alignment to show; "
            "leave that out, or train one whose decoder has attention"
        )
    rows = len(target) + 1
    return Alignment(weights[0, :rows].float().cpu().numpy(), list(source), [*target, EOS], shown)
