"""What most figures share: an empty figure, plain axes, a legend, printable text. Read next: colours.py."""

from typing import TYPE_CHECKING, Any, Literal

from weft.figures.colours import FAINT, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
import unicodedata
from collections.abc import Sequence


def blank(
    width: float, height: float, *, dpi: int = 100, layout: Literal["constrained"] | None = "constrained"
) -> "Figure":
    """An empty figure of this size in inches."""
    from matplotlib.figure import Figure  # takes 0.3 s, and a page does not need it

    return Figure(figsize=(width, height), dpi=dpi, facecolor="white", layout=layout)


def plain_axes(axes: "Axes", *, labelsize: int = 8) -> None:
    """Axes of lines and points: a faint grid behind them, nothing above and on the right."""
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=FAINT, labelsize=labelsize)


def bar_axes(axes: "Axes") -> None:
    """Axes of bars: a grid for their values only, and one line below."""
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, length=0)


def name_point(axes: "Axes", name: str, place: tuple[float, float], **how: Any) -> None:
    """Write a name beside a point."""
    shown = axes.annotate(printable(name), place, (3, 3), textcoords="offset points", parse_math=False)
    shown.set(fontsize=8, **how)


def legend(target: "Axes | Figure", *entries: Any, fontsize: float = 8, **how: Any) -> None:
    """A legend without a frame, whose names are no formulae."""
    found = target.legend(*entries, frameon=False, fontsize=fontsize, labelcolor=INK, **how)
    for text in found.get_texts():
        text.set_parse_math(False)


def printable(text: str) -> str:
    """The text with control characters as code points, because no font shows them and XML forbids them."""
    shown = "".join(
        code_point(letter) if unicodedata.category(letter) in ("Cc", "Cs", "Cn") else letter
        for letter in text
    )
    return shown if shown.strip() else "␣"


def shortened(names: Sequence[str], longest: int) -> list[str]:
    """Names of at most `longest` characters; those that would look the same keep more of their end."""

    def cut(name: str, end: int) -> str:
        whole = end == longest - 1 or len(name) <= longest
        return name if whole else f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"

    tried = (*range(0, longest - 1, 3), longest - 1)
    alike: dict[str, set[str]] = {}
    for name in names:
        alike.setdefault(cut(name, 0), set()).add(name)
    ends = {
        short: next(end for end in tried if len({cut(one, end) for one in some}) == len(some))
        for short, some in alike.items()
    }
    return [cut(name, ends[cut(name, 0)]) for name in names]


def code_point(letter: str) -> str:
    """A code point such as U+4E2D."""
    return f"U+{ord(letter):04X}"
