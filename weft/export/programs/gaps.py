"""Models that fill the gaps of a text."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from weft.export.programs.common import KINDS, OnnxGraph, VocabularyFile


class Filler:
    """The likeliest pieces for each gap of a text, each by itself."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.graph = OnnxGraph(folder / "pieces.onnx")
        self.vocabulary = VocabularyFile(folder / about["vocabulary"])
        self.about = about

    def __call__(self, text: str, nbest: int = 1, scores: bool = False) -> str:
        """The text with its gaps filled; with several pieces or scores, the pieces, a tab between gaps."""
        if nbest < 1:
            raise SystemExit(f"--nbest: expected at least 1, got {nbest}")
        tokens = self.tokens(text)
        gaps = self.gaps(tokens, nbest)
        if nbest > 1 or scores:
            return "\t".join(
                " ".join(
                    f"{self.piece(piece)}={prob:.4f}" if scores else self.piece(piece) for piece, prob in gap
                )
                for gap in gaps
            )
        best = iter(gap[0][0] for gap in gaps)
        filled = [next(best) if token == self.about["mask"] else token for token in tokens]
        return self.vocabulary.decode(filled[1:-1])

    def piece(self, number: int) -> str:
        """A piece as text."""
        return self.vocabulary.decode([number])

    def tokens(self, text: str) -> list[int]:
        """The first symbol, the pieces and the gaps, the last symbol."""
        gap, most = self.about["gap"], self.about["max_length"]
        if gap not in text:
            raise ValueError(f"expected {gap} where a word is missing, got {text[:40]!r}")
        tokens = [self.about["sos"]]
        *before, last = text.split(gap)
        for part in before:  # the space before a gap belongs to the missing piece
            tokens += [*self.vocabulary.encode(part.rstrip(" ")), self.about["mask"]]
        tokens += [*self.vocabulary.encode(last), self.about["eos"]]
        if most is not None and len(tokens) > most:
            raise ValueError(f"expected at most {most} positions, got {len(tokens)}; shorten the text")
        return tokens

    def gaps(self, tokens: list[int], count: int) -> list[list[tuple[int, float]]]:
        """For each gap the likeliest pieces with their probabilities."""
        size = self.about["mask"]
        row = np.array([tokens], np.int64)
        logp = self.graph({"tokens": row, "mask": np.ones(row.shape, bool)})["logp"][0, :, :size]
        logp = logp[row[0] == size]
        logp[:, self.about["banned"]] = -math.inf
        best = np.argsort(-logp, axis=-1, kind="stable")[:, : min(count, size - len(self.about["banned"]))]
        probs = np.exp(np.take_along_axis(logp, best, -1))
        return [list(zip(*each, strict=True)) for each in zip(best.tolist(), probs.tolist(), strict=True)]


KINDS |= {"filler": Filler}
