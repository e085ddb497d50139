"""The colours of every figure and of the inspector's page: ink, lines, and two colour scales.

The scale of weights runs from white (0) to dark blue, the scale of signed numbers from orange through white
(0) to blue. Each is a path of constant speed through OKLab (Ottosson 2020), where distances match perceived
differences, with decreasing lightness, so it also works in greyscale print. Read next: alignment.py;
../inspect/page/html.py, which uses the same colours.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

INK = "#1f2733"
FAINT = "#667081"
GRID = "#dfe4ec"
BARS = ("#1b4ca0", "#a45500", "#26a47b", "#722435", "#a578d2", "#6b7280")
"""Colours of a chart's series: contrast of at least 3:1 on white, distinct also for colour-blind readers."""

DARK_BARS = ("#729ce8", "#ea9953", "#8de9aa", "#c76765", "#eeb7fe", "#a5afbd")
"""The same for dark pages."""

WEIGHTS = ((255, 255, 255), (122, 182, 224), (24, 96, 168), (8, 28, 74))
SIGNED = ((168, 72, 18), (250, 186, 128), (255, 255, 255), (122, 182, 224), (12, 66, 132))
DARK_WEIGHTS = ((24, 29, 38), (27, 74, 124), (74, 152, 218), (214, 236, 255))
DARK_SIGNED = ((255, 190, 130), (176, 88, 30), (24, 29, 38), (38, 98, 164), (150, 205, 255))
"""Anchors of the scales; those for dark pages begin at the page's background."""

_TO_CONE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def ink_on(colour: np.ndarray) -> str:
    """The colour of text on a background of red, green and blue from 0 to 1 (and opacity)."""
    red, green, blue, *_ = colour
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 else "white"


def weight_colours(steps: int = 256) -> "ListedColormap":
    """White to dark blue in perceptually equal steps."""
    from matplotlib.colors import ListedColormap  # imported here, because most users of colours draw nothing

    return ListedColormap(scale(WEIGHTS, steps), name="weft")


def signed_colours(steps: int = 257) -> "ListedColormap":
    """Orange (negative) through white (0) to blue (positive)."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(scale(SIGNED, steps), name="weft-signed")


def scale(anchors: Sequence[Sequence[int]], steps: int) -> np.ndarray:
    """A colour scale as [steps, 3] in 0..1; with an odd number of steps the middle colour is exact."""
    lab = to_oklab(np.array(anchors) / 255)
    distance = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    if len(anchors) == 5:
        distance = np.concatenate([distance[:2] / distance[:2].sum(), distance[2:] / distance[2:].sum()])
    place = np.concatenate([[0], distance.cumsum() / distance.sum()])
    at = np.linspace(0, 1, steps)
    return _from_oklab(np.stack([np.interp(at, place, channel) for channel in lab.T], 1))


def to_oklab(rgb: np.ndarray) -> np.ndarray:
    """sRGB in 0..1, [..., 3], to OKLab (lightness, green-red, blue-yellow)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_CONE.T) @ _TO_LAB.T


def _from_oklab(lab: np.ndarray) -> np.ndarray:
    linear = ((lab @ np.linalg.inv(_TO_LAB).T) ** 3) @ np.linalg.inv(_TO_CONE).T
    linear = linear.clip(0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055).clip(0, 1)
