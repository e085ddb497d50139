"""Numbers that forecasts show."""

import json
import subprocess
from pathlib import Path

import pytest

import weft.export
from tests.export.pages import NODE, node
from weft.data.values import readable

PAGE = Path(weft.export.__file__).parent / "page"

CASES = [
    (104872006.123456, 50.0, "104872006.1235"),  # a meter
    (432.123456, 120.0, "432.123"),
    (12345678.9, 3e6, "12345679"),
    (-0.000012345678, 1e-5, "-1.23457e-05"),
    (4.0, 1.0, "4"),
    (0.0, 1.0, "0"),
    (5e8, 0.0, "500000000"),
]


@pytest.mark.parametrize(("value", "deviation", "text"), CASES)
def test_a_number_has_the_digits_that_show_the_deviation_of_its_series(
    value: float, deviation: float, text: str
) -> None:
    assert readable(value, deviation) == text


@node
def test_the_exported_page_writes_the_same_digits() -> None:
    source = (PAGE / "series.js").read_text()
    function = source[source.index("const readable") : source.index("// Missing values")]
    given = json.dumps([case[:2] for case in CASES])
    run = f"{function}; console.log(JSON.stringify({given}.map(([a, b]) => readable(a, b))))"
    found = subprocess.run([str(NODE), "-e", run], capture_output=True, check=True)
    assert json.loads(found.stdout) == [text for *_, text in CASES]
