"""Pictures as sequences of tiles from a palette: a decoder writes them instead of words.

A palette of tiles of one pixel holds colours; a palette of larger tiles holds small patterns.
"""

from pathlib import Path

import numpy as np

from weft.data.images import read_array
from weft.errors import CheckpointError, DataError
from weft.text.pieces import SPECIALS

FIRST = len(SPECIALS)
"""The number of the first tile, after padding, unknown, start and end."""

ROUNDS = 8
CHUNK = 4096  # tiles compared at once


class Tiles:
    """A palette.

    Args:
        patterns: [K, P, P, 3] uint8.
    """

    def __init__(self, patterns: np.ndarray) -> None:
        self.patterns = patterns

    def __len__(self) -> int:
        """Number of symbols, with the special ones."""
        return FIRST + len(self.patterns)

    @classmethod
    def learn(cls, pictures: np.ndarray, tile: int, count: int) -> "Tiles":
        """The tiles of training pictures: all if at most `count` differ, else the means of `count` groups.

        k-means finds the groups; it starts from the most frequent tiles and weights them by frequency.

        Args:
            pictures: [N, height, width, 3] uint8.
        """
        height, width = pictures.shape[1:3]
        if pictures.ndim != 4 or height % tile or width % tile:
            raise DataError(
                f"expected sides that are multiples of {tile} pixels, "
                f"got {' x '.join(map(str, pictures.shape[1:]))}; set data.size to a multiple of data.tile"
            )
        cut = _cut(pictures, tile).reshape(-1, tile * tile * 3)
        found, times = np.unique(cut, axis=0, return_counts=True)
        order = np.argsort(-times, kind="stable")
        found, times = found[order], times[order]
        centres = found[:count].astype(np.float64)
        if len(found) > count:
            for _ in range(ROUNDS):
                nearest = _nearest(found, centres)
                weight = np.bincount(nearest, times, count)
                for feature in range(found.shape[1]):
                    total = np.bincount(nearest, times * found[:, feature].astype(np.float64), count)
                    centres[:, feature] = np.where(
                        weight > 0, total / np.maximum(weight, 1), centres[:, feature]
                    )
        return cls(np.round(centres).astype(np.uint8).reshape(-1, tile, tile, 3))

    def encode(self, pictures: np.ndarray) -> np.ndarray:
        """[N, height, width, 3] to the numbers [N, S] of the nearest tiles, in reading order."""
        cut = _cut(pictures, self.patterns.shape[1])
        flat = cut.reshape(-1, self.patterns[0].size)
        known = self.patterns.reshape(len(self.patterns), -1).astype(np.float64)
        return FIRST + _nearest(flat, known).reshape(cut.shape[:2])

    def decode(self, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """[N, S] numbers to pictures [N, *shape]."""
        tile = self.patterns.shape[1]
        height, width = shape[0] // tile, shape[1] // tile
        placed = self.patterns[numbers - FIRST].reshape(-1, height, width, tile, tile, 3)
        return placed.swapaxes(2, 3).reshape(-1, height * tile, width * tile, 3)

    def save(self, run: Path) -> None:
        """Save the palette in a run."""
        np.save(run / "tiles.npy", self.patterns)

    @classmethod
    def load(cls, run: Path) -> "Tiles":
        """The palette of a run."""
        try:
            patterns = read_array(run / "tiles.npy")
            if patterns.ndim != 4 or patterns.dtype != np.uint8 or patterns.shape[3] != 3:
                raise ValueError("no palette")
        except ValueError:  # a DataError is one
            raise CheckpointError(f"{run / 'tiles.npy'}: missing or damaged; train the run again") from None
        return cls(patterns)


def _cut(pictures: np.ndarray, tile: int) -> np.ndarray:
    """[N, height, width, 3] to [N, S, tile, tile, 3]."""
    rows, height, width = pictures.shape[:3]
    placed = pictures.reshape(rows, height // tile, tile, width // tile, tile, 3)
    return placed.swapaxes(2, 3).reshape(rows, -1, tile, tile, 3)


def _nearest(flat: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """For each row of [M, F], the number of the nearest row of [K, F]."""
    square = np.square(centres).sum(1)
    found = np.empty(len(flat), np.int64)
    for at in range(0, len(flat), CHUNK):
        part = flat[at : at + CHUNK].astype(np.float64)
        found[at : at + CHUNK] = (square - 2 * part @ centres.T).argmin(1)
    return found
