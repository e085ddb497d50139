"""Compares an exported Transformer with Weft: probabilities of the same texts, and what both write.

Read next: network.py; formats/ctranslate2.py, which calls it.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from weft.errors import ExportError
from weft.export.network import TransformerNetwork
from weft.search.beam import Stop
from weft.text.vocabulary import EOS

COUNT = 20
"""Texts on which an export is compared with Weft."""

TIE = 1e-3
"""Nats: two tokens whose log-probabilities differ by less may change places by rounding."""


class ExportedModel(Protocol):
    """The exported model, run by its own program.

    Attributes:
        stop: the rule by which its beam search ends.
    """

    stop: Stop

    def search(self, row: Sequence[int], *, width: int, length_penalty: float, limit: int) -> list[int]:
        """The tokens written for a row, without the end; see Network.search."""

    def logp(self, rows: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each target, computed in one batch: log-probabilities [T + 1, V], or [T + 1] of its tokens."""


class Agreement(NamedTuple):
    """How an export compares with Weft."""

    texts: int
    nats: float  # the largest difference of a log-probability
    greedy: int  # texts on which greedy outputs are equal
    beam: int  # texts on which the outputs of beam search are equal, if both stop by the same rule
    stop: Stop  # that rule
    cut: int  # texts of the others on which an output has the maximum length
    outputs: list[list[int]]  # the export's, greedy
    expected: list[list[int]]  # Weft's, greedy

    def lines(self, width: int) -> list[str]:
        """Two lines for the report of an export; `width` is that of the beam."""
        cut = f", {self.cut} of the others cut at the maximum length" if self.cut else ""
        return [
            f"log-probabilities of {self.texts} texts in one batch: at most {self.nats:.1e} nats from Weft's",
            f"equal outputs: greedy {self.greedy} of {self.texts}, "
            f"beam {width}: {self.beam} of {self.texts}{cut} (stop: {self.stop})",
        ]


def compare(
    network: TransformerNetwork, texts: Sequence[str], other: ExportedModel, *, exact: bool = True
) -> Agreement:
    """Run both programs on the same texts."""
    rows = [row[: network.length // 2] for row in network.encode(texts) if row][:COUNT]
    limits = [min(2 * len(row) + 10, network.length - 1 - len(row)) for row in rows]
    plain: dict[str, Any] = {"width": 1, "length_penalty": 0.0}
    wide: dict[str, Any] = {"width": network.beam, "length_penalty": network.length_penalty}
    pairs = list(zip(rows, limits, strict=True))
    expected = [network.search(row, limit=limit, **plain) for row, limit in pairs]
    outputs = [other.search(row, limit=limit, **plain) for row, limit in pairs]
    nats = _largest(network, rows, expected, other)
    if exact and nats > TIE:
        raise ExportError(
            f"the exported model's log-probabilities differ from Weft's by {nats:.1e} nats, expected at most "
            f"{TIE}; please report this run's recipe"
        )
    if exact:
        for row, ours, theirs in zip(rows, expected, outputs, strict=True):
            _check_tie(network, row, ours, theirs)
    equal = cut = 0
    for row, limit in pairs:
        ours = network.search(row, limit=limit, stop=other.stop, **wide)
        theirs = other.search(row, limit=limit, **wide)
        equal += ours == theirs
        cut += ours != theirs and limit in (len(ours), len(theirs))
    same = sum(ours == theirs for ours, theirs in zip(expected, outputs, strict=True))
    return Agreement(len(rows), nats, same, equal, other.stop, cut, outputs, expected)


def _largest(
    network: TransformerNetwork,
    rows: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    other: ExportedModel,
) -> float:
    """The largest difference of a log-probability, in nats."""
    most = 0.0
    for row, target, theirs in zip(rows, targets, other.logp(rows, targets), strict=True):
        ours = network.logp(row, target)
        if theirs.dim() == 1:
            ours = ours.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        most = max(most, float((ours - theirs).abs().max()))
    return most


def _check_tie(
    network: TransformerNetwork, row: Sequence[int], ours: Sequence[int], theirs: Sequence[int]
) -> None:
    """Where greedy outputs part, the two tokens must be equally probable."""
    if list(ours) == list(theirs):
        return
    place = next(n for n, pair in enumerate(zip_longest(ours, theirs)) if pair[0] != pair[1])
    logp = network.logp(row, ours)[place]
    here, there = (side[place] if place < len(side) else EOS for side in (ours, theirs))
    if float(logp[here] - logp[there]) > TIE:
        raise ExportError(
            f"the exported model writes token {there} where Weft writes {here}, which is "
            f"{float(logp[here] - logp[there]):.1e} nats more probable; please report this run's recipe"
        )
