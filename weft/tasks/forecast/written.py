"""Forecasts as lines of a CSV. Read next: predictor.py."""

import csv
import io
from collections.abc import Sequence
from typing import Any


def line(cells: Sequence[str]) -> str:
    """Cells as a line of a CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)  # which also says what has to be quoted
    return text.getvalue().removesuffix("\n")


def shown_times(times: Sequence[Any], zone: str) -> list[str]:
    """Times as a table has them, all in one way: days where each of them is one, else with the clock."""
    texts = [str(time).replace("T", " ") for time in times]
    days = all(text.endswith(" 00:00:00") for text in texts)
    return [text.removesuffix(" 00:00:00") if days and not zone else text + zone for text in texts]
