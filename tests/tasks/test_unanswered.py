"""An input that cannot be answered leaves an empty line, says why and where, and spoils no other: code 3."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import weft as package
from tests.commands.shell import Answer, unanswered, weft
from tests.shared import shared_run
from tests.tasks.every import KINDS, make_prose
from weft.commands import bulk
from weft.errors import DataError, DataWarning
from weft.tasks.predictor import each

ENDS = (
    "training.max_updates=1",
    "training.monitors=false",
    "training.tensorboard=false",
    "training.device=cpu",
)
SHORT = (
    "{use: transformer, size: 12, num_layers: 1, num_heads: 2, inner: 13, positions: learned, max_length: 29}"
)
ENCODER = (f"model.encoder={SHORT}",)
LONG = " ".join(["one"] * 71)


class Case(NamedTuple):
    """Lines of which the second cannot be answered.

    kind: of tests/tasks/every.py.
    changes: of the recipe.
    lines: three.
    why: in the sentence about the second.
    options: of predict; `per_line` lines are written for each.
    """

    kind: str
    changes: Sequence[str]
    lines: tuple[str, str, str]
    why: str
    options: Sequence[str] = ()
    per_line: int = 1
    make: Callable[[Path], Path] | None = None


POSITIONS = "expected at most 29 positions, got"
CASES = {
    "translate": Case(
        "translate", ENCODER, ("alpha beta", LONG, "gamma"), POSITIONS, ("--nbest", "2", "--scores"), 2
    ),
    "translate, diverse": Case(
        "translate", ENCODER, ("alpha beta", LONG, "gamma"), POSITIONS, ("--diverse", "3", "--nbest", "3"), 3
    ),
    "summarise": Case("summarise without copying", ENCODER, ("alpha", LONG, "beta ."), POSITIONS),
    "multilingual": Case("multilingual", ENCODER, ("one", LONG, "two"), POSITIONS, ("--target", "bb")),
    "classify": Case("classify", ENCODER, ("a fine film", LONG, "grim"), POSITIONS, ("--scores",)),
    "masked": Case("masked", ENCODER, ("the [MASK] can", LONG + " [MASK]", "a [MASK]"), POSITIONS),
    "masked, no gap": Case("masked", (), ("the [MASK] can", "the cat", "a [MASK]"), "expected [MASK]"),
    "draw": Case("draw", (*ENCODER, "decoding.search=greedy"), ("red circle", LONG, "top"), POSITIONS),
    "embeddings": Case("embeddings", (), ("apple", "zebra", "saw"), "'zebra' is not among the"),
    "embeddings, three": Case("embeddings", (), ("apple fig saw", "apple fig", "saw"), "got 2"),
    "elmo": Case("elmo", (), ("bank\tthe bank\tgo bank", "bank\tbank", "now\tnow\tgo now"), "got 2"),
    "memory": Case("memory", (), ("0.31 0.7* 0.9*", "0.31 x", "0.5* 0.2*"), "got '0.31"),
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Path]:
    """The run of a case, its data in `toy` beside it; cases with the same recipe share it."""

    @functools.cache
    def run(kind: str, changes: tuple[str, ...], make: Callable[[Path], Path] | None) -> Path:
        folder = tmp_path_factory.mktemp("run")
        recipe = (make or KINDS[kind].make)(folder / "toy")
        weft("train", recipe, "--run", folder / "run", *ENDS, *changes, code=0)
        return folder / "run"

    return lambda case: run(case.kind, tuple(case.changes), case.make)


def predicted(run: Path, path: Path, lines: Sequence[str], *options: object) -> Answer:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return weft("predict", run, path, *options)


def told(answer: Answer) -> list[str]:
    assert "sinusoidal" not in answer.err
    return unanswered(answer)


@pytest.mark.parametrize("name", CASES)
def test_the_others_are_answered(name: str, trained: Callable[[Case], Path], tmp_path: Path) -> None:
    case = CASES[name]
    run, path, out = trained(case), tmp_path / "in.txt", tmp_path / "out.txt"
    first, second = (predicted(run, path, [line], *case.options) for line in case.lines[::2])
    assert first.code == second.code == 0, first.err + second.err
    expected = first.out + "\n" * case.per_line + second.out
    together = predicted(run, path, case.lines, *case.options)
    (said,) = told(together)
    assert f"{path}:2: " in said and case.why in said
    assert together.out == expected
    written = weft("predict", run, path, *case.options, "--output", out)
    assert told(written) == [said] and out.read_text("utf-8") == expected and not bulk.parts_of(out).exists()
    piped = weft("predict", run, *case.options, stdin=path.read_bytes())
    assert told(piped) == [said.replace(str(path), "standard input")] and piped.out == expected


def test_a_line_without_an_answer_has_an_empty_alignment(
    trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    case, pairs = CASES["translate"], tmp_path / "out.pharaoh"
    run = trained(case)
    assert len(told(predicted(run, tmp_path / "in.txt", case.lines, "--alignments", pairs))) == 1
    lines = pairs.read_text().split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == ""


def test_a_sentence_that_cannot_be_tagged_keeps_its_words(
    trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    run = trained(Case("tag", ENCODER, ("", "", ""), ""))
    alone = predicted(run, tmp_path / "in.txt", ["telo beding", "gruno"])
    answer = predicted(run, tmp_path / "in.txt", ["telo beding", LONG, "gruno"])
    (said,) = told(answer)
    assert f"{tmp_path / 'in.txt'}:2: {POSITIONS} 71" in said
    assert answer.out.split("\n\n")[1].split("\n") == ["one\t_"] * 71
    assert answer.out.replace("one\t_\n" * 71 + "\n", "") == alone.out


@pytest.mark.parametrize("kind", ["images", "caption", "speech"])
def test_a_file_that_cannot_be_read_leaves_its_line_empty(
    kind: str, trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    run = trained(Case(kind, ("training.max_updates=1",), ("", "", ""), ""))
    files = sorted(one for one in (run.parent / "toy").rglob("*") if one.suffix in (".png", ".wav"))[:2]
    lines = [str(files[0]), str(tmp_path / "gone.png"), str(files[1])]
    alone = [predicted(run, tmp_path / "list.txt", [line]) for line in lines[::2]]
    answer = predicted(run, tmp_path / "list.txt", lines)
    (said,) = told(answer)
    assert f"{tmp_path / 'list.txt'}:2: " in said and "gone.png" in said
    assert answer.out == alone[0].out + "\n" + alone[1].out


def test_chunks_keep_what_was_said_and_name_lines_of_the_whole_file(
    trained: Callable[[Case], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(CASES["classify"])
    lines = ["a fine film", "grim", LONG, "this", "was", "a film", "fine", LONG, LONG, "grim"]
    plain = predicted(run, tmp_path / "in.txt", lines)
    places = [f"in.txt:{number}: {POSITIONS}" for number in (3, 8, 9)]
    assert all(place in one for place, one in zip(places, told(plain), strict=True))
    monkeypatch.setattr(bulk, "CHUNK", 3)
    out = tmp_path / "out.txt"
    written = weft("predict", run, tmp_path / "in.txt", "--output", out)
    assert told(written) == told(plain) and out.read_text("utf-8") == plain.out


@pytest.mark.parametrize("search", ["--beam=3", "--beam=1", "--sample", "--diverse=2"])
def test_a_search_ends_where_the_model_has_no_more_positions(
    search: str, trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    case = Case("translate", (*ENCODER, f"model.decoder={SHORT}", "decoding.max_extra=99"), ("", "", ""), "")
    run = trained(case)
    answer = predicted(run, tmp_path / "in.txt", ["alpha beta", "gamma"], search)
    assert answer.code == 0 and len(answer.lines) == 2
    least = predicted(run, tmp_path / "in.txt", ["alpha", "gamma"], "--min-length", "28", search)
    assert least.code == 0 and all(len(line.split()) in (28, 29) for line in least.lines)
    more = predicted(run, tmp_path / "in.txt", ["alpha"], "--min-length", "29", search)
    assert more.code == 2 and "at most 29 can be written" in more.err


def test_a_language_model_reads_its_last_window_and_writes_beyond_its_positions(
    trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    changes = (
        f"model.decoder={SHORT}",
        "data.batches=lines",
        "decoding.search=greedy",
        "decoding.max_tokens=80",
    )
    case = Case(
        "language", changes, ("", "", ""), "", make=lambda folder: make_prose(folder, batches="lines")
    )
    answer = predicted(trained(case), tmp_path / "in.txt", ["the cat", LONG, "a mat on the cat"])
    assert answer.code == 0 and len(answer.lines) == 3
    short, long, _ = (len(line.split()) for line in answer.lines)
    assert 30 < short <= 82 and 71 <= long <= 151  # the text itself and at most 80 tokens


def test_a_series_that_is_too_short_leaves_the_others_their_forecasts(
    trained: Callable[[Case], Path], tmp_path: Path
) -> None:
    run = trained(Case("forecast", (), ("", "", ""), ""))
    path = tmp_path / "in.csv"

    def written(**lengths: int) -> Answer:
        rows = [
            f"{name},2024-01-01 {hour:02}:00:00,{hour % 5}"
            for name, count in lengths.items()
            for hour in range(count)
        ]
        return predicted(run, path, ["unique_id,ds,y", *rows])

    both, three = written(a=20, c=19), written(a=20, short=3, c=19)
    assert both.code == 0, both.err
    (said,) = told(three)
    assert f"{path}: series 'short': expected at least 13 rows, got 3" in said
    assert three.out == both.out and len(three.lines) == 1 + 2 * 5
    none = written(short=3, other=4)
    assert none.code == 2 and "at least 13 rows" in none.err and not none.out


def test_a_text_that_names_a_file_is_doubted(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text\na\n")
    model = package.load(shared_run("classify"))
    with pytest.warns(DataWarning) as said:
        model.predict(str(path))
    assert "was read as a text, though it names a file" in str(said[0].message)


def answers(most: int) -> tuple[list[int], list[int | DataError]]:
    """The sizes of the batches of 1 to 11 where memory suffices for so many, and what is found."""
    sizes: list[int] = []

    def doubled(numbers: Sequence[int]) -> list[int]:
        sizes.append(len(numbers))
        if len(numbers) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if 7 in numbers:
            raise DataError("7 cannot be doubled")
        return [2 * number for number in numbers]

    return sizes, list(each(range(1, 12), doubled))


def test_halves_are_answered_where_memory_does_not_suffice() -> None:
    sizes, found = answers(3)
    assert [one for one in found if isinstance(one, int)] == [2, 4, 6, 8, 10, 12, 16, 18, 20, 22]
    assert isinstance(found[6], DataError) and sizes[:3] == [11, 5, 2]


def test_one_input_that_needs_too_much_ends_the_command() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        answers(0)
