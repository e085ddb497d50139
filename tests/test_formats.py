"""The page "Files that Weft reads" lists what the tests read."""

from itertools import groupby
from pathlib import Path

import pytest

from tests.formats import FORMATS, FileFormat

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "formats.md"


@pytest.mark.parametrize("one", FORMATS, ids=[f"{one.part}-{one.file}" for one in FORMATS])
def test_a_file_of_another_program_is_read_as_it_was_written(one: FileFormat, tmp_path: Path) -> None:
    found, want = one.run(tmp_path)
    assert found == want and len(found) > 0


def test_the_page_lists_what_is_read() -> None:
    page = PAGE.read_text("utf-8")
    for part, formats in groupby(FORMATS, key=lambda one: one.part):
        rows = "".join(
            f"| {one.file} | {one.program} | {one.note} |\n".replace("|  |", "| |") for one in formats
        )
        assert f"## {part}\n" in page
        assert f"| File | Written by | |\n|---|---|---|\n{rows}" in page, (
            f"put these rows into {PAGE}:\n{rows}"
        )
