"""A model that writes only the tokens of a shortlist, numbered by their place in it.

Its output layer multiplies only the rows of these tokens, and its probabilities are over them alone, step by
step and in compiled searches. Read next: ../../../data/shortlist.py, which chooses them; searching.py.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.kernels.output.vocabulary import log_probabilities
from weft.nn.kernels.panels import multiply_as
from weft.nn.kernels.writing.ends import Output, Vectors
from weft.nn.kernels.writing.model import WholeSteps
from weft.tree import State, at_step


class Shortlisted(WholeSteps):
    """A Generator whose search can write only some tokens.

    Args:
        model: in evaluation mode.
        tokens: [K] its tokens that may be written, ascending.

    Raises:
        ConfigError: the model has no output layer of which rows can be taken.
    """

    training = False

    def __init__(self, model: Generator, tokens: Tensor) -> None:
        output = model.head.output()
        if output is None or type(model).step is not Generator.step:
            raise ConfigError(
                "shortlist: not supported by this output layer, which lacks a row per token; leave it out"
            )
        self.model = model
        self.decoder = model.decoder
        with (
            torch.inference_mode(False),
            torch.no_grad(),
        ):  # tensors of inference mode are packed at each step
            self.embed = _Embed(model.embed, tokens)
            self.head = _Head(output, tokens)

    def pause(self) -> None:
        self.model.pause()

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """One search step: from places of tokens [N] to log-probabilities [N, K], and the next state."""
        self.pause()
        h, state = self.decoder(self.embed(token[:, None]), state)
        return self.head(at_step(h, 0)), state


class _Embed(nn.Module):
    def __init__(self, embed: nn.Module, tokens: Tensor) -> None:
        super().__init__()
        self.embed = embed
        self.tokens = tokens

    def forward(self, places: Tensor) -> Tensor:
        return self.embed(self.tokens[places])  # type: ignore[no-any-return]

    def vectors(self) -> Vectors:
        """The rows of these tokens."""
        _, table, scale = self.embed.vectors()  # type: ignore[operator]
        with torch.inference_mode(False), torch.no_grad():
            return Vectors(self, table.detach()[self.tokens], scale)


class _Head(nn.Module):
    def __init__(self, output: Output, tokens: Tensor) -> None:
        super().__init__()
        of, self.project, weight, bias = output
        self.weight, self.bias = weight.detach()[tokens], bias.detach()[tokens]
        multiply_as(of, self)

    def forward(self, h: Tensor) -> Tensor:
        h = h if self.project is None else self.project(h)
        return log_probabilities(self, h, self.weight, self.bias)

    def output(self) -> Output:
        """The rows of these tokens."""
        return Output(self, self.project, self.weight, self.bias)


def places(shortlist: np.ndarray, tokens: Sequence[int]) -> list[int]:
    """The places of tokens in a shortlist, ascending numbers; those that are not there are left out.

    Example:
        >>> places(np.array([0, 3, 7]), [7, 5, 0])
        [2, 0]
    """
    wanted = np.array(list(tokens), np.int64)
    found = np.searchsorted(shortlist, wanted)
    there = shortlist[np.minimum(found, len(shortlist) - 1)] == wanted
    return found[there].tolist()  # type: ignore[no-any-return]
