"""Two files of any names are a pair: unequal counts, swapped sides and overlap between parts are found."""

import random
from pathlib import Path

import pytest

from tests.commands.shell import weft
from weft.data.check import check_pairs, first_skip

WORDS = {"the": "der", "dog": "Hund", "runs": "rennt", "house": "Haus", "old": "alt", "green": "gruen",
         "sees": "sieht", "and": "und", "not": "nicht", "is": "ist", "a": "ein", "to": "zu"}  # fmt: skip


def pairs(rows: int, seed: int = 1) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    found = []
    for number in range(rows):
        words = chance.choices(list(WORDS), k=chance.randint(4, 17))
        found.append((f"{number} {' '.join(words)}.", f"{number} {' '.join(WORDS[word] for word in words)}."))
    return found


def write(folder: Path, names: tuple[str, str], rows: list[tuple[str, str]]) -> list[Path]:
    for side, name in enumerate(names):
        (folder / name).write_text("".join(f"{row[side]}\n" for row in rows))
    return [folder / name for name in names]


def told(folder: Path, *files: Path) -> list[str]:
    return [str(finding).replace(f"{folder}/", "") for finding in check_pairs(*files).findings]


def test_lines_that_one_file_lacks_are_placed(tmp_path: Path) -> None:
    english, german = write(tmp_path, ("english.txt", "german.txt"), pairs(318))
    lines = german.read_text().splitlines(keepends=True)
    german.write_text("".join(lines[:200] + lines[218:]))
    answer = weft("data", "check", english, german)
    assert answer.code == 1
    assert answer.lines[0].endswith("german.txt are read as a pair, line by line")
    assert answer.lines.index("") > 2  # the summary first, then the findings
    first = answer.lines[answer.lines.index("") + 1]
    assert "english.txt 318" in first and "german.txt 300" in first and "near line 201" in first


@pytest.mark.parametrize("gap", [0, 1, 57, 299])
@pytest.mark.parametrize("size", [1, 7])
def test_the_first_skip_is_found_from_either_side(gap: int, size: int) -> None:
    first, second = zip(*pairs(307, seed=gap), strict=True)
    less = second[:gap] + second[gap + size :]
    assert first_skip(first, less) == first_skip(less, first) == gap + 1


def test_files_of_equal_length_have_no_skip() -> None:
    first, second = zip(*pairs(11), strict=True)
    assert first_skip(first, second) is None
    assert first_skip([], ["x"]) is None


def test_a_pair_the_wrong_way_round_is_named(tmp_path: Path) -> None:
    rows = pairs(101)
    rows[40] = rows[40][::-1]
    assert told(tmp_path, *write(tmp_path, ("one.txt", "two.txt"), rows)) == [
        "one.txt:41: one reads like two and two like one; swap the sides of the line"
    ]


def test_files_named_after_each_others_language_are_one_finding(tmp_path: Path) -> None:
    assert told(tmp_path, *write(tmp_path, ("german.txt", "english.txt"), pairs(101))) == [
        "german.txt: german reads like english and english like german; are the two sides swapped?"
    ]
    assert told(tmp_path, *write(tmp_path, ("x.en", "x.de"), pairs(101))) == []


def test_a_part_with_swapped_sides_is_one_finding(tmp_path: Path) -> None:
    train = write(tmp_path, ("train.en", "train.de"), pairs(211))
    valid = write(tmp_path, ("valid.de", "valid.en"), pairs(23, seed=2))
    (finding,) = told(tmp_path, *train, *valid)
    assert finding.startswith("valid.en: most of en reads like de")


def test_overlap_between_parts_of_any_names_is_found(tmp_path: Path) -> None:
    rows = pairs(101)
    train = write(tmp_path, ("english.txt", "german.txt"), rows)
    # the order of the second pair's files does not matter
    test = write(tmp_path, ("german-test.txt", "english-test.txt"), [rows[7][::-1], ("neu", "new")])
    (finding,) = told(tmp_path, *train, *test)
    assert finding.startswith("english-test.txt:1: the same pair as english.txt:8: ")


def test_parts_of_one_side_are_no_pair(tmp_path: Path) -> None:
    write(tmp_path, ("train.en", "valid.en"), [("one", "two"), ("one", "one")])
    report = check_pairs(tmp_path / "train.en", tmp_path / "valid.en")
    assert report.counts == {"again": 1, "leak": 1} and report.item == "lines"


def test_warnings_leave_with_zero(tmp_path: Path) -> None:
    rows = pairs(5)
    answer = weft("data", "check", *write(tmp_path, ("one.txt", "two.txt"), [*rows, rows[0]]))
    assert answer.code == 0 and "warning: duplicate pairs in one text: 1" in answer.lines
