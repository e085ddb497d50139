"""Heat maps: right cells, right labels, sizes that grow, files that are whole."""

import io
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.slow import slow
from weft.errors import ConfigError, DataError, ShapeError
from weft.figures.alignment import heat_map
from weft.figures.picture import png, save, svg
from weft.figures.records import merge, pharaoh

SVG = "{http://www.w3.org/2000/svg}"


def words(count):
    return [f"w{number}" for number in range(count)]


def weights_of(target, source):
    return np.random.default_rng(target * source).dirichlet(np.ones(source), target)


def texts(picture):
    return [element.text for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def dark_centre(data):
    """Centre of gravity of dark blue pixels, as shares of width and height."""
    image = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    y, x = np.nonzero((image[..., 2] - image[..., 0] > 40) & (image[..., 0] < 30))
    return x.mean() / image.shape[1], y.mean() / image.shape[0]


def test_every_label_value_and_title_is_written():
    weights = np.array([[0.75, 0.25, 0.0], [0.004, 0.0, 0.996]])
    shown = texts(svg(heat_map(weights, ["Wo", "ist", "er"], ["Where", "he"], title="Wo? / Where?")))
    for text in ("Wo", "ist", "er", "Where", "he", "Wo? / Where?", ".75", ".25", "1.0"):
        assert text in shown
    assert ".00" not in shown  # what rounds to nothing stays blank


def test_the_first_target_row_is_on_top_and_the_first_source_column_left():
    corner = np.zeros((5, 5))
    corner[0, 4] = 1
    x, y = dark_centre(png(heat_map(corner, words(5), words(5), title="t")))
    opposite_x, opposite_y = dark_centre(png(heat_map(corner.T, words(5), words(5), title="t")))
    assert x > opposite_x + 0.2
    assert y < opposite_y - 0.2


@pytest.mark.slow
def test_values_are_written_up_to_thirty_and_not_beyond():
    small = texts(svg(heat_map(np.full((30, 30), 1 / 30), words(30), words(30), title="t")))
    large = texts(svg(heat_map(np.full((31, 31), 1 / 31), words(31), words(31), title="t")))
    assert small.count(".03") == 900
    assert large.count(".03") == 0


def test_the_picture_grows_with_the_sentence():
    areas = [
        np.prod(heat_map(weights_of(n, n), words(n), words(n), title="t").get_size_inches())
        for n in (5, 11, 23, 47, 97)
    ]
    assert areas == sorted(areas)
    wide = heat_map(weights_of(3, 29), words(29), words(3), title="t").get_size_inches()
    assert wide[0] > 2 * wide[1]


@pytest.mark.parametrize(("target", "source"), [(1, 1), (1, 37), (37, 1), (2, 61), *slow([(67, 67)])])
def test_any_shape_is_drawn_within_the_limits_of_a_png(target, source):
    figure = heat_map(weights_of(target, source), words(source), words(target), title="a title " * 9)
    image = Image.open(io.BytesIO(png(figure)))
    assert max(image.size) < 3600


@pytest.mark.slow
def test_a_sentence_of_two_hundred_pieces_takes_seconds():
    # this thread's time of the processor: the wall clock of a shared machine says nothing
    weights, pieces = weights_of(200, 200), words(200)
    for write in (png, svg):
        start = time.thread_time()
        assert len(write(heat_map(weights, pieces, pieces, title="long"))) < 2_000_000
        assert time.thread_time() - start < 10  # quadratic drawing takes minutes


@pytest.mark.slow
def test_two_thousand_pieces_are_drawn_with_fewer_labels():
    weights = np.full((2, 2000), 1 / 2000)
    shown = texts(svg(heat_map(weights, words(2000), words(2), title="t")))
    assert "w0" in shown and len(shown) < 700


def test_a_very_long_piece_is_cut_visibly():
    shown = texts(svg(heat_map(np.ones((1, 1)), ["x" * 300], ["y"], title="t")))
    assert "x" * 39 + "…" in shown


def test_a_long_title_is_broken_into_lines_of_about_one_length():
    title = "Klicken Sie auf die Schaltfläche, um das Dokument zu speichern."
    shown = texts(svg(heat_map(weights_of(7, 7), words(7), words(7), title=f"{title}\nClick.")))
    lines = [text for text in shown if text in title]
    assert " ".join(lines) == title and len(lines) > 1
    assert min(map(len, lines)) > max(map(len, lines)) / 2
    assert "Click." in shown


@pytest.mark.parametrize("title", ["", "黑" * 300, "x" * 999, "\n\n"])
def test_any_title_is_drawn(title):
    assert svg(heat_map(np.ones((1, 1)), ["a"], ["b"], title=title)).count("<text") > 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
def test_the_same_picture_is_the_same_file(tmp_path, suffix):
    for name in ("one", "two"):
        save(heat_map(weights_of(3, 5), words(5), words(3), title="t"), tmp_path / "deep" / f"{name}{suffix}")
    one, two = (tmp_path / "deep" / f"{name}{suffix}" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes() != b""
    assert sorted(path.name for path in one.parent.iterdir()) == sorted([one.name, two.name])


def test_other_suffixes_and_places_that_cannot_be_written_are_refused(tmp_path):
    figure = heat_map(np.ones((1, 1)), ["a"], ["b"], title="t")
    with pytest.raises(ConfigError, match=r"x.jpg: pictures are written as .png, .svg or .pdf, not .jpg"):
        save(figure, tmp_path / "x.jpg")
    with pytest.raises(ConfigError, match="not without a suffix"):
        save(figure, tmp_path / "x")
    (tmp_path / "file").write_text("kept")
    with pytest.raises(DataError, match="cannot be written"):
        save(figure, tmp_path / "file" / "x.png")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        save(figure, tmp_path / "folder.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.svg"]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones((2, 3)), r"weights of shape .*got \[2, 3\]"),
        (np.ones(3), "weights of shape"),
        (np.full((3, 2), np.nan), "finite weights that are not negative"),
        (np.full((3, 2), -0.5), r"weights from -0\.5 to -0\.5 with top 1\.0"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, said):
    with pytest.raises(ShapeError, match=said):
        heat_map(weights, ["a", "b"], ["x", "y", "z"], title="t")


def test_no_pieces_are_refused():
    with pytest.raises(ShapeError, match="at least one of each"):
        heat_map(np.zeros((0, 2)), ["a", "b"], [], title="t")


def test_a_lower_top_makes_small_weights_darker():
    weights = np.full((3, 3), 1 / 3)
    pale, dark = (
        np.asarray(Image.open(io.BytesIO(png(heat_map(weights, words(3), words(3), title="t", top=top)))))
        for top in (1.0, 1 / 3)
    )
    assert dark[..., 0].mean() < pale[..., 0].mean()


def test_drawing_leaves_pyplot_alone(tmp_path):
    code = (
        "import sys, numpy as np; from weft.figures.alignment import heat_map\n"
        "from weft.figures.picture import save\n"
        f"save(heat_map(np.ones((1, 1)), ['a'], ['b'], title='t'), {str(tmp_path / 'x.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_source_pieces_add_up_and_target_pieces_are_averaged():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.0, 0.0, 1.0, 0.0]])
    words = merge(weights, [[0, 1], [2], [3]], [[0, 1], [2]])
    np.testing.assert_allclose(words, [[0.45, 0.2, 0.35], [0, 1, 0]], atol=1e-10)


def test_rows_keep_their_sum_when_all_pieces_are_in_words():
    weights = np.random.default_rng(0).dirichlet(np.ones(7), 5)
    words = merge(weights, [[0], [1, 2, 3], [4, 5], [6]], [[0, 1, 2], [3], [4]])
    np.testing.assert_allclose(words.sum(1), 1, atol=1e-10)


def test_pieces_outside_words_drop_out():
    weights = np.array([[0.7, 0.3], [0.2, 0.8]])  # the second of each is the end symbol
    np.testing.assert_allclose(merge(weights, [[0]], [[0]]), [[0.7]], atol=1e-10)


def test_one_word_of_one_piece_stays():
    assert merge(np.array([[1.0]]), [[0]], [[0]]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ([[0, 2]], [[0]], r"source word 0: .*from 0 to 1, got \[0, 2\]"),
        ([[0]], [[0], []], r"target word 1: .*got \[\]"),
        ([[-1]], [[0]], r"source word 0: .*got \[-1\]"),
    ],
)
def test_words_that_do_not_fit_are_refused(source, target, said):
    with pytest.raises(ShapeError, match=said):
        merge(np.ones((3, 2)), source, target)


def test_each_target_word_names_the_source_word_it_looks_at_most():
    weights = np.array([[0.1, 0.9, 0.0], [0.8, 0.1, 0.1], [0.0, 0.2, 0.8], [0.4, 0.4, 0.2]])
    assert pharaoh(weights) == "1-0 0-1 2-2 0-3"


def test_an_empty_side_gives_an_empty_line():
    assert pharaoh(np.zeros((0, 3))) == "" == pharaoh(np.zeros((2, 0)))
