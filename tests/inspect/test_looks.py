"""What `predict` writes beside its answers: an alignment a line, pictures up to a limit, whole files."""

from pathlib import Path

import numpy as np
import pytest

from weft.commands.answer_pictures import AnswerPictures
from weft.errors import ConfigError, DataError
from weft.search.offered import Decoding
from weft.tasks.predictor import NoAnswer
from weft.tasks.seq2seq.translator import Alignment, SearchResult, TranslationAnswer
from weft.text.vocabulary import EOS, Vocabulary

WORDS = Vocabulary.train(["il gatto, nero dorme the black cat, sleeps"], kind="word", size=None)
SOURCE, TARGET = "il gatto, nero dorme", "the black cat, sleeps"
# rows: the black cat , sleeps </s>; columns: il gatto , nero dorme
WEIGHTS = np.array(
    [
        [0.9, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.2, 0.0, 0.8, 0.0],
        [0.0, 0.4, 0.2, 0.4, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.1, 0.1, 0.1, 0.1, 0.6],
        [0.2, 0.2, 0.2, 0.2, 0.2],
    ]
)


class Looking:
    """In the place of a translator: looks where WEIGHTS say."""

    scores = False
    decoding = Decoding()

    def __init__(self) -> None:
        self.source = self.target = WORDS

    def copying(self, line: str) -> "Looking":
        return self

    def readable(self, line: str) -> str:
        return line

    def align(self, source: list[int], target: list[int]) -> Alignment:
        weights = WEIGHTS if len(target) == 5 else np.full((len(target) + 1, len(source)), 1 / len(source))
        return Alignment(weights, source, [*target, EOS], "attention")

    def check_figures(self, *, alignments: bool) -> None:
        self.align([EOS], [])

    def overview(self, answers: object) -> None:
        return None


class Blind(Looking):
    def align(self, source: list[int], target: list[int]) -> Alignment:
        raise ConfigError("this model has no attention")


def said(answer: str, source: str = SOURCE, by: type[Looking] = Looking) -> TranslationAnswer:
    return TranslationAnswer(by(), source, [SearchResult(answer, -0.5, -2.0, WORDS.encode(answer))])  # type: ignore[arg-type]


def pictures(alignments: Path | None = None, plot: Path | None = None, limit: int = 20) -> AnswerPictures:
    return AnswerPictures(Looking(), plot, alignments, limit)


def test_each_line_has_its_alignment_between_words(tmp_path: Path) -> None:
    path = tmp_path / "out.pharaoh"
    with pictures(path) as eye:
        for answer in (said(TARGET), said("", ""), said(""), NoAnswer("in.txt:4: it is damaged", 3)):
            eye.see(answer)
    # "cat," is two pieces, whose mean looks at "gatto," (0.6 and 1.0) more than at "nero" (0.4 and 0)
    assert path.read_text() == "0-0 2-1 1-2 3-3\n\n\n\n"
    assert eye.drawn == 0


def test_pictures_are_numbered_as_the_lines_are(tmp_path: Path) -> None:
    with pictures(None, tmp_path / "new" / "plots", limit=2) as eye:
        for answer in ("", TARGET, TARGET, TARGET):
            eye.see(said(answer))
    assert eye.drawn == 2
    names = sorted(path.name for path in (tmp_path / "new" / "plots").iterdir())
    assert names == ["2.png", "2.svg", "3.png", "3.svg"]
    picture = (tmp_path / "new" / "plots" / "2.svg").read_text("utf-8")
    assert "▁gatto" in picture and "▁sleeps" in picture and SOURCE in picture and "(attention)" in picture


def test_nothing_is_computed_that_was_not_asked_for() -> None:
    with pictures() as eye:
        eye.see(said(TARGET, by=Blind))
    assert eye.drawn == 0


@pytest.mark.parametrize("asked", ["alignments", "plot"])
def test_a_model_that_does_not_look_is_refused_before_anything_is_written(tmp_path: Path, asked: str) -> None:
    places = {"alignments": None, "plot": None, asked: tmp_path / "x"}
    with pytest.raises(ConfigError, match="no attention"), AnswerPictures(Blind(), **places, limit=20):
        pytest.fail("it was entered")
    assert list(tmp_path.iterdir()) == []


def test_an_older_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.pharaoh"
    path.write_text("older\n")
    with pytest.raises(RuntimeError), pictures(path) as eye:
        eye.see(said(TARGET))
        assert path.read_text() == "older\n"
        raise RuntimeError
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("out.pharaoh", "older\n")]


@pytest.mark.parametrize("place", ["", "file/below"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    for options in ({"alignments": tmp_path / place}, {"plot": tmp_path / "file"}):
        with (
            pytest.raises(DataError, match=r": cannot be written \(.+\); free some space or choose"),
            pictures(**options),
        ):
            pytest.fail("it was entered")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_an_error_of_the_block_itself_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), pictures(tmp_path / "out.pharaoh"):
        raise BrokenPipeError
    assert list(tmp_path.iterdir()) == []
