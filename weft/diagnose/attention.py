"""What attention does: how concentrated it is, and how much a pointer network copies by it.

Read next: ../nn/heads/pointer.py, which mixes generating and copying.
"""

import torch
from torch import Tensor

from weft.models import Generator, SequencePair
from weft.probe import probe


def entropy(weights: Tensor) -> Tensor:
    """-Σ_j α_j ln α_j in nats: 0 if one position has all the weight, ln S if all weights are equal.

    Returns:
        [..].
    """
    return weights.new_zeros(()) - weights.xlogy(weights).sum(-1)


@torch.no_grad()
def copied(model: Generator, batch: SequencePair) -> Tensor | None:
    """(1 - p_gen) sum_{i: w_i = w} a_i / p(w) for each target w: 1 if it was copied.

    Returns:
        [B, T] from 0 to 1; None if the model cannot copy.

    Source: See, Liu & Manning 2017, eq. 9; its second term is the copied share.
    """
    if not model.head.copies:
        return None
    with probe() as seen:
        logp = model.head(model.features(batch))  # [B, T, V + S]
    target = batch.target_out[..., None]
    share = seen["copied"][-1].gather(-1, target) / logp.gather(-1, target).exp()
    return share[..., 0].nan_to_num(0.0).clamp(0.0, 1.0)
