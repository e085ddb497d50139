"""The range of a setting is declared at the parameter: a recipe and Python are checked against it."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from weft.config import build, parse
from weft.errors import ConfigError
from weft.search.offered import Decoding
from weft.setting_types import Bounds, Count, DropoutRate, Positive, Probability, Sizes, check_fields
from weft.tasks.language.decoding import LanguageDecoding


@dataclass(frozen=True, kw_only=True)
class Part:
    """Settings with ranges."""

    num_layers: Count = 2
    dropout: DropoutRate = 0.1
    sizes: Sizes = (3,)
    rate: Positive | None = None
    share: Annotated[float, Bounds(gt=0, le=1)] = 1.0
    pair: tuple[DropoutRate, DropoutRate] = (0.0, 0.5)
    order: Literal["before", "after"] | None = "before"
    weight: Probability | Literal["tuned"] = 0.0
    plain: int = 0


WRONG = [
    ("num_layers: 10001", "num_layers", "a whole number from 0 to 10,000"),
    ("dropout: 1.0", "dropout", "a number from 0 to below 1"),
    ("sizes: [5, -1]", r"sizes\[1\]", "a whole number from 0 to 10,000,000"),
    ("rate: 0.0", "rate", "a number above 0"),
    ("share: 1.5", "share", "a number above 0 and up to 1"),
    ("pair: [0.5, 1.0]", r"pair\[1\]", "a number from 0 to below 1"),
    ("dropout: .nan", "dropout", "a finite number"),
]


@pytest.mark.parametrize(("line", "key", "need"), WRONG)
def test_a_recipe_is_checked_with_file_and_line(line: str, key: str, need: str) -> None:
    table = parse(f"plain: 3\n{line}\n", "x.yaml")
    with pytest.raises(ConfigError, match=rf"^x\.yaml:2: {key}: expected {need}"):
        build(table, Part)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_layers": -1}, "^num_layers: .*got -1"),
        ({"dropout": 1.0}, "^dropout: .*from 0 to below 1, got 1.0"),
        ({"dropout": float("nan")}, "^dropout: .*got nan"),
        ({"sizes": (5, -1)}, "^sizes: .*got -1"),
        ({"rate": 0.0}, "^rate: .*above 0, got 0.0"),
        ({"share": 0.0}, "^share: .*above 0 and up to 1, got 0.0"),
        ({"pair": (0.5, 1.0)}, "^pair: .*got 1.0"),
        ({"weight": 2.0}, "^weight: expected a number from 0 to 1, got 2.0"),
        ({"order": "never"}, "^order: .*one of before, after, got 'never'"),
    ],
)
def test_a_dataclass_is_checked_in_python(settings: dict[str, object], message: str) -> None:
    for good in ({}, {"weight": "tuned"}, {"weight": 0.5}, {"order": "after"}, {"sizes": (1, 2)}):
        check_fields(Part(**good))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message):
        check_fields(Part(**settings))  # type: ignore[arg-type]


def test_values_at_the_bounds_are_allowed() -> None:
    table = parse("num_layers: 10000\ndropout: 0\nshare: 1\nrate: null\nsizes: []\n", "x.yaml")
    part = build(table, Part)
    check_fields(part)
    assert (part.num_layers, part.dropout, part.share, part.rate, part.sizes) == (10000, 0.0, 1.0, None, ())


@pytest.mark.parametrize(
    ("section", "given", "said"),
    [
        (Decoding, {"max_extra": 100_000_000}, "max_extra: expected a whole number from 1 to 100,000"),
        (Decoding, {"temperature": 0.0}, "temperature: expected a number above 0"),
        (Decoding, {"coverage": float("inf")}, "coverage: expected a number from 0"),
        (Decoding, {"beam": 1_001}, "beam: expected a whole number from 1 to 1,000"),
        (LanguageDecoding, {"mixture": 1.5}, "mixture: expected a number from 0 to 1, got 1.5"),
        (LanguageDecoding, {"max_lines": 0}, "max_lines: expected a whole number from 1"),
    ],
)
def test_searches_out_of_range_are_refused(section: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        section(**given)
    assert LanguageDecoding(mixture="tuned").tuned
