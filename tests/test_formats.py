"""The page "Files that Weft reads" lists what the tests read."""

import re
from pathlib import Path

import pytest

from tests.formats import FORMATS, PAGE, with_declared


@pytest.mark.parametrize(
    ("part", "file"), [(part, file) for part, files in FORMATS.items() for file in files]
)
def test_a_file_of_another_program_is_read_as_it_was_written(part: str, file: str, tmp_path: Path) -> None:
    found, want = FORMATS[part][file](tmp_path)
    assert found == want and len(found) > 0


def test_the_page_lists_what_is_read() -> None:
    parts = PAGE.read_text("utf-8").split("\n## ")[1:]
    tables = {part.split("\n")[0]: re.findall(r"^\| (`.*?|[^|-][^|]*?) \|", part, re.M) for part in parts}
    listed = {name: [cell for cell in cells if cell != "File"] for name, cells in tables.items() if cells}
    assert {name: listed.get(name) for name in FORMATS} == {name: [*files] for name, files in FORMATS.items()}


def test_the_page_says_what_the_readers_declare() -> None:
    assert PAGE.read_text("utf-8") == with_declared(PAGE.read_text("utf-8")), "type python -m tests.formats"
