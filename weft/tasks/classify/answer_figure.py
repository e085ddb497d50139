"""The picture of a classified text: each word coloured by how much it weighed in the decision."""

from matplotlib.figure import Figure

from weft.figures.coloured import coloured_text
from weft.tasks.classify.explanation import Explanation


def figure(explanation: Explanation) -> Figure:
    """Words on their colours, the class above them."""
    title = f"{explanation.decided.label} ({100 * explanation.decided.prob:.0f} %)"
    return coloured_text(explanation.words, explanation.weights, title=title, note=explanation.shown)
