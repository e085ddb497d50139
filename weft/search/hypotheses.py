"""What every search returns: token sequences a source, with their log-probabilities and scores.

Read next: greedy.py.
"""

from typing import NamedTuple

from torch import Tensor


class Hypotheses(NamedTuple):
    """N hypotheses for each of B sources, best first (samples: as drawn).

    A hypothesis that ended holds eos and counts it in its length. One that was cut at max_length has
    no eos. One that does not exist (there are fewer than N possible) has length 0 and score -inf.
    """

    tokens: Tensor  # [B, N, T] int64, without sos; eos after the end
    lengths: Tensor  # [B, N] int64
    logp: Tensor  # [B, N] float64, sum of the tokens' log-probabilities in nats
    score: Tensor  # [B, N] float64, logp normalised by length


def best(hypotheses: Hypotheses) -> Hypotheses:
    """The first hypothesis of each source alone, N = 1."""
    return Hypotheses(*(part[:, :1] for part in hypotheses))


def to_lists(hypotheses: Hypotheses, eos: int) -> list[list[list[int]]]:
    """Tokens as Python lists, a list of hypotheses a source, without eos and without absent ones.

    Example:
        >>> import torch
        >>> tokens = torch.tensor([[[5, 6, 3], [7, 3, 3]]])
        >>> zero = torch.zeros(1, 2)
        >>> to_lists(Hypotheses(tokens, torch.tensor([[3, 2]]), zero, zero), eos=3)
        [[[5, 6], [7]]]
    """
    rows = zip(hypotheses.tokens.tolist(), hypotheses.lengths.tolist(), strict=True)
    return [
        [
            [token for token in tokens[:length] if token != eos]
            for tokens, length in zip(*row, strict=True)
            if length
        ]
        for row in rows
    ]
