"""The picture of a classified text: each word coloured by how much it weighed in the decision."""

from matplotlib.figure import Figure

from weft.figures.coloured import coloured_text
from weft.tasks.classify.looked import Looked


def figure(looked: Looked) -> Figure:
    """Words on their colours, the class above them."""
    title = f"{looked.decided.label} ({100 * looked.decided.prob:.0f} %)"
    return coloured_text(looked.words, looked.weights, title=title, note=looked.shown)
