"""Generated images and clips: coloured shapes with a caption, and moving shapes.

Each example depends only on (seed, number), so it is the same on every machine. `recognise` is the inverse:
it finds what an image shows by the nearest template.
Read next: images.py, images from files.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

COLOURS = {
    "red": (214, 40, 40),
    "green": (40, 160, 60),
    "blue": (40, 70, 210),
    "yellow": (240, 200, 30),
    "purple": (140, 50, 170),
    "black": (20, 20, 20),
}
SHAPES = ("circle", "square", "triangle", "cross")
PLACES = (
    ("top left", "top", "top right"),
    ("left", "middle", "right"),
    ("bottom left", "bottom", "bottom right"),
)
WHITE = (255, 255, 255)
MOTIONS = ("right", "down", "left", "up")
DIRECTIONS = ((0, 1), (1, 0), (0, -1), (-1, 0))  # rows and columns per step of each motion


class Scene(NamedTuple):
    """What an image shows."""

    colour: str
    shape: str
    place: str

    @property
    def caption(self) -> str:
        """The scene in words, such as "a red circle at the top left"."""
        return f"a {self.colour} {self.shape} {'in' if self.place == 'middle' else 'at'} the {self.place}"


def read_caption(text: str) -> Scene | None:
    """The scene of a caption; None if the caption is not of this form."""
    for places in PLACES:
        for place in places:
            for colour in COLOURS:
                for shape in SHAPES:
                    if Scene(colour, shape, place).caption == text:
                        return Scene(colour, shape, place)
    return None


def mask(shape: str, size: int, row: float, column: float, radius: float) -> np.ndarray:
    """[size, size] bool: the pixels that a shape covers."""
    y = np.arange(size)[:, None] + 0.5 - row
    x = np.arange(size)[None] + 0.5 - column
    if shape == "circle":
        return np.asarray(y * y + x * x <= radius * radius)
    if shape == "square":
        return np.asarray((abs(y) <= 0.85 * radius) & (abs(x) <= 0.85 * radius))
    if shape == "triangle":
        return np.asarray((abs(y) <= radius) & (abs(x) <= (y + radius) / 2))
    arm = radius / 3
    return np.asarray(((abs(y) <= arm) & (abs(x) <= radius)) | ((abs(x) <= arm) & (abs(y) <= radius)))


def shapes(seed: Sequence[int], numbers: Sequence[int], size: int) -> tuple[np.ndarray, list[Scene]]:
    """Images with one shape on white, in one cell of a 3 x 3 grid with some random shift.

    Args:
        seed: of the set.
        numbers: [N] example numbers.
        size: side length in pixels; best a multiple of 3 of at least 24.

    Returns:
        Images [N, size, size, 3] uint8 and their scenes.

    Example:
        >>> pictures, seen = shapes([1], range(2), 24)
        >>> pictures.shape, recognise(pictures[0]) == seen[0]
        ((2, 24, 24, 3), True)
    """
    pictures = np.full((len(numbers), size, size, 3), WHITE, np.uint8)
    seen = []
    cell = size / 3
    for picture, number in zip(pictures, numbers, strict=True):
        chance = np.random.default_rng([*seed, int(number)])
        colour = list(COLOURS)[chance.integers(len(COLOURS))]
        shape = SHAPES[chance.integers(len(SHAPES))]
        row, column = (int(one) for one in chance.integers(0, 3, 2))
        radius = 0.5 * np.round(2 * chance.uniform(0.4, 0.5) * cell)
        moved = chance.integers(-1, 2, 2) * max(1, round(size / 24))
        covered = mask(shape, size, (row + 0.5) * cell + moved[0], (column + 0.5) * cell + moved[1], radius)
        picture[covered] = COLOURS[colour]
        seen.append(Scene(colour, shape, PLACES[row][column]))
    return pictures, seen


def recognise(picture: np.ndarray) -> Scene | None:
    """The scene of an image [size, size, 3] of one shape on white, by the nearest template; None if empty."""
    size = len(picture)
    far = np.abs(picture.astype(np.int64) - WHITE).sum(-1)
    covered = far > 120
    if covered.sum() < 4:
        return None
    rows, columns = np.nonzero(covered)
    mean = np.median(picture[covered].astype(np.float64), 0)
    colour = min(COLOURS, key=lambda name: float(np.square(mean - COLOURS[name]).sum()))
    top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
    middle = (top + bottom) / 2, (left + right) / 2
    row, column = (min(2, int(3 * one / size)) for one in middle)
    best, least = SHAPES[0], np.inf
    for shape in SHAPES:
        for radius in np.arange(1.5, size / 3, 0.5):
            for shift in (-0.5, 0.0, 0.5):
                template = mask(shape, size, middle[0] + shift, middle[1], radius)
                wrong = float((template != covered).sum())
                if wrong < least:
                    best, least = shape, wrong
    return Scene(colour, best, PLACES[row][column])


def moving(
    seed: Sequence[int], numbers: Sequence[int], size: int, frames: int
) -> tuple[np.ndarray, list[str]]:
    """Clips [N, T, size, size, 3] uint8 in which two shapes of different colours move and a third is still.

    The class is the direction of the moving shape with the still shape's colour. A model that cannot compare
    distant places sees two directions but not which one is meant. A model that sums scores of single places
    is right in at most three of these four clips: red moves left and blue right, or vice versa, and the still
    shape is red or blue. Its preference for left over right is the still shape's score plus the moving
    shapes' score. One arrangement of the moving shapes requires a red still shape to score higher than a blue
    one, and the other requires it to score lower.
    """
    clips = np.full((len(numbers), frames, size, size, 3), WHITE, np.uint8)
    labels = []
    for clip, number in zip(clips, numbers, strict=True):
        chance = np.random.default_rng([*seed, int(number)])
        corners = chance.permutation(4)
        colours = chance.permutation(len(COLOURS))
        motion, other = (int(one) for one in chance.permutation(len(MOTIONS))[:2])
        steps = (DIRECTIONS[motion], DIRECTIONS[other], (0, 0))
        for corner, colour, step in zip(corners, colours[[0, 1, 0]], steps, strict=False):
            middle = np.array([0.27 + 0.46 * (corner // 2), 0.27 + 0.46 * (corner % 2)]) * size
            middle += chance.uniform(-0.02, 0.02, 2) * size
            covered_by = SHAPES[chance.integers(len(SHAPES))]
            for t in range(frames):
                row, column = middle + np.array(step) * (t - (frames - 1) / 2) * 0.25 * size / frames
                clip[t][mask(covered_by, size, row, column, 0.11 * size)] = tuple(COLOURS.values())[colour]
        labels.append(MOTIONS[motion])
    return clips, labels
