"""The picture of a search tree: lines run from box to box, however wide the boxes are, and can be seen."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from tests.search.test_trace import by_hand
from weft.figures.axes import shortened
from weft.figures.colours import to_oklab
from weft.figures.fonts import readable
from weft.inspect.views.tree import TreeView
from weft.tasks.inspection import SearchTree


@pytest.mark.parametrize("pieces", [(".", "abcdefghijkl"), ("abcdefghijkl", "."), ("黑狗", "i")])
def test_every_line_begins_and_ends_in_the_box_it_belongs_to(pieces: tuple[str, str]) -> None:
    names = dict(enumerate([*pieces, "<eos>"]))
    figure = TreeView(SearchTree(by_hand(), names, [[0, 0], [0, 1]])).figure()
    (axes,) = figure.axes
    with readable(figure, keep_text=True):
        FigureCanvasAgg(figure).draw()
        boxes = [text.get_bbox_patch() for text in axes.texts]
        found = [box.get_window_extent() for box in boxes if box is not None]  # in order of time and rank
    lines = [line for line in axes.lines if len(line.get_xdata())]
    ends = [axes.transData.transform(np.array(line.get_xydata())) for line in lines]
    children = {3: 0, 4: 0}  # step 1 has boxes 0 to 2; the others of step 2 were pruned
    assert len(lines) == len(children)
    for (start, end), (box, parent) in zip(ends, children.items(), strict=True):
        assert found[parent].contains(*start) and found[box].contains(*end)
        assert start[0] > found[parent].x0 + found[parent].width / 2  # from its right half
        assert end[0] < found[box].x0 + found[box].width / 2


def test_lines_beside_the_best_answer_are_not_nearly_white() -> None:
    view = TreeView(SearchTree(by_hand(), {0: "a", 1: "b", 2: "<eos>"}, [[0, 0], [0, 1]]))
    lines = [line for line in view.figure().axes[0].lines if len(line.get_xdata())]
    lightness = [to_oklab(np.array(to_rgb(line.get_color())))[0] for line in lines]
    assert max(lightness) < 0.75  # white is 1
    assert [line.get_linewidth() for line in lines] == [1.8, 0.8]


def test_long_pieces_that_begin_alike_are_told_apart_in_picture_and_page() -> None:
    names = {0: "administrator", 1: "administrations", 2: "<eos>"}
    view = TreeView(SearchTree(by_hand(), names, [[0, 0], [0, 1]]))
    seen = {text.get_text() for text in view.figure().axes[0].texts}
    assert {"administ…tor", "administ…ons"} <= seen
    assert view.blocks()[1]["labels"] == ["admini…tor", "admini…ons", "<eos>"]
    assert shortened(["the-same-1-the-same", "the-same-2-the-same"], 8) == [
        "the-same-1-the-same",
        "the-same-2-the-same",
    ]
    assert shortened(["a" * 20, "a" * 20, "b"], 8) == ["a" * 7 + "…"] * 2 + ["b"]
