"""The contract of an engine: what the worker asks of Weft and of every peer alike.

An engine updates its weights on a batch of token ids and searches translations of token ids; text and
clocks are the driver's and the worker's. Symbols: pad 0, unk 1, sos 2, eos 3. Read next: transformers.py,
the plainest one; then ../worker.py, which holds the stop-watch.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

PAD, UNK, SOS, EOS = 0, 1, 2, 3
SPECIAL = {UNK: "<unk>", SOS: "<s>", EOS: "</s>"}
EXPORTED = "exported"  # the folder of a model as `weft export --to ctranslate2` writes it
SMOOTHING = 0.1
CLIP_NORM = 1.0
BETAS = (0.9, 0.98)
PEAK_RATE = 2e-3
WARM_UP = 400
TRAINED = "marian"  # the folder inside the weights' folder


class Sizes(NamedTuple):
    """The one model that every engine builds."""

    vocabulary: int
    model: str  # "transformer" or "rnn"; Weft knows "hybrid" too
    layers: int = 4  # of the Transformer's encoder, and again of its decoder
    width: int = 128
    inner: int = 512
    heads: int = 4
    recurrent: int = 256  # RNN: embeddings, LSTM decoder, and twice its LSTM encoder's direction
    dropout: float = 0.1
    longest: int = 256  # positions


class Batch(NamedTuple):
    """Padded rows; sources end with eos, targets begin with sos and end with eos."""

    source: np.ndarray  # [B, S] int64
    source_lengths: np.ndarray  # [B] int64
    target: np.ndarray  # [B, T + 1] int64
    target_tokens: int  # real targets, eos counted and sos not


class Engine(ABC):
    """Weft or a peer, with one model.

    Args:
        sizes: of the model.
        dtype: what products are computed in: "float32", "bfloat16", "int8"; "torch" is Weft in float32
            without its compiled code.
    """

    trains = True  # False: takes over weights that another engine trained (`load`)
    widths: tuple[int, ...] = (1, 5)  # beam widths that it can search with; 1 is greedy

    @abstractmethod
    def __init__(self, sizes: Sizes, dtype: str) -> None:
        """Build the model, or refuse."""

    def about(self) -> str:
        """What a reader of the figures must know: instructions, versions; may be empty."""
        return ""

    def update(self, batch: Batch) -> float:
        """One optimiser step; the loss in nats a target token, smoothed."""
        raise NotImplementedError(f"{type(self).__module__} does not train")

    @abstractmethod
    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        """The best translation of every row, without sos and eos.

        Args:
            source: [B, S] padded sources that end with eos.
            lengths: [B] their real lengths.
            width: of the beam; 1 is greedy.
            shortest, longest: tokens of the output; equal ones force the length.
        """

    def save(self, folder: Path) -> None:
        """Leave the weights where another engine's `load` finds them."""
        raise NotImplementedError

    def load(self, folder: Path) -> None:
        """Take over weights that another engine has saved."""
        raise NotImplementedError


def learning_rate(update: int) -> float:
    """Linear warm-up, then the inverse square root: the same for all who train (`update` from 1)."""
    return PEAK_RATE * min(update / WARM_UP, (WARM_UP / update) ** 0.5)


def smoothed_loss(logits: Tensor, target: Tensor) -> Tensor:
    """[] mean over real targets of the smoothed cross entropy, as a plain PyTorch loop writes it."""
    flat = logits.reshape(-1, logits.shape[-1])
    return nn.functional.cross_entropy(flat, target.reshape(-1), ignore_index=PAD, label_smoothing=SMOOTHING)


def step(model: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor, update: int) -> None:
    """What a plain PyTorch loop does with a loss."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(update)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    optimiser.step()


def until_eos(row: list[int]) -> list[int]:
    """The tokens before the first eos."""
    return row[: row.index(EOS)] if EOS in row else row


def token_name(number: int) -> str:
    """The name of a token for programs that read names."""
    return SPECIAL.get(number, str(number))
