"""Calculated figures in docs/appendix/scale.md follow from their formulas."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "appendix" / "scale.md").read_text("utf-8")
ROW = r"\| (.+) \| ([\d.]+) M \| (?:(\d+) \+ (\d+) M|0) \| (\d+) MB \| (\d+) MB \| (\d+) MB \|"


def test_what_is_sent_for_each_model() -> None:
    """b = 4; a ring sends 2 (N - 1)/N of an all-reduce and (N - 1)/N of what is gathered or scattered."""
    rows = re.findall(ROW, PAGE)
    assert len(rows) == 3
    for name, numbers, encoder, decoder, two, many, full in rows:
        p, e, d = float(numbers), float(encoder or 0), float(decoder or 0)
        found = [round(4 * p), round(8 * p), round(4 * (2 * p + e + 3 * d))]
        assert [int(two), int(many), int(full)] == found, name


def test_shares_of_lost_time() -> None:
    """V/B / (T_c + V/B) = 0.05 gives T_c = 19 V/B, V = 2 (N - 1)/N 4 P."""
    for processes, p, speed, sent, seconds in (
        (8, 65, 300, 0.46, 0.029),
        (64, 65, 50, 0.51, 0.2),
        (1000, 213, 50, 1.7, 0.65),
    ):
        volume = 2 * (processes - 1) / processes * 4 * p / 1000  # GB
        assert abs(volume - sent) < 0.01 and abs(19 * volume / speed - seconds) < 0.03 * seconds
        shown = f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:g} s"
        assert re.search(rf"\| {p} M \| .* \| {sent} GB \| {shown} \|", PAGE)


def test_a_billion_pairs() -> None:
    assert "1e9 · (50 · 4 + 32) = 232 GB" in PAGE and 50 * 4 + 32 == 232
    assert "954 blocks" in PAGE and -(-(10**9) // 2**20) == 954
    assert "6,100 updates" in PAGE and 25e9 // (4096 * 1000) in range(6100, 6105)
