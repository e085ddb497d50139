"""One colour scale for all weights: white is nothing, dark blue is everything, equal steps look equal.

The scale is a path of constant speed through OKLab (Ottosson 2020), a space in which distances are
distances to the eye, with lightness falling all the way; so it survives a grey printer too.
Read next: alignment.py.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

INK = "#1f2733"
FAINT = "#8a94a3"
GRID = "#dfe4ec"
BARS = ("#2b6cb0", "#dd8a2e", "#3d9970", "#b0413e", "#7b5ea7", "#6b7280")
"""Series of a bar chart, apart from each other for colour-blind eyes in this order."""

_ANCHORS = np.array([[255, 255, 255], [122, 182, 224], [24, 96, 168], [8, 28, 74]]) / 255
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


def weight_colours(steps: int = 256) -> "ListedColormap":
    """White to dark blue in steps that look equal."""
    from matplotlib.colors import ListedColormap  # here, since most of those who want a colour draw nothing

    anchors = to_oklab(_ANCHORS)
    distance = np.linalg.norm(np.diff(anchors, axis=0), axis=1)
    place = np.concatenate([[0], distance.cumsum() / distance.sum()])
    at = np.linspace(0, 1, steps)
    lab = np.stack([np.interp(at, place, channel) for channel in anchors.T], 1)
    return ListedColormap(_from_oklab(lab), name="weft")


def to_oklab(rgb: np.ndarray) -> np.ndarray:
    """sRGB in 0..1, [..., 3], to OKLab (lightness, green-red, blue-yellow)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_CONE.T) @ _TO_LAB.T


def _from_oklab(lab: np.ndarray) -> np.ndarray:
    linear = ((lab @ np.linalg.inv(_TO_LAB).T) ** 3) @ np.linalg.inv(_TO_CONE).T
    linear = linear.clip(0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055).clip(0, 1)
