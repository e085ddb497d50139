"""Held-out examples: one of each block, always the same, and none in both parts."""

from pathlib import Path

import pytest

from weft.data.held_out import is_held_out
from weft.errors import ConfigError
from weft.tasks.seq2seq.data import PairData


@pytest.mark.parametrize("every", [2, 7, 20])
def test_one_of_each_block_is_held_out_and_not_always_at_the_same_place(every: int) -> None:
    held = [[is_held_out(block * every + n, every) for n in range(every)] for block in range(50)]
    assert all(sum(block) == 1 for block in held)
    assert held[0][0] and len({tuple(block) for block in held}) > 1


def test_training_and_validation_are_parts_of_the_whole_text(tmp_path: Path) -> None:
    pairs = [(f"a {n}", f"b {n}") for n in range(100)]
    for side, name in enumerate(("xx", "yy")):
        (tmp_path / f"text.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    data = PairData(source="xx", target="yy", folder=tmp_path, train="text", hold_out=20)
    train, valid = ([tuple(pair[1:]) for pair in data.open(split)] for split in ("train", "valid"))
    assert len(valid) == 5 and len(train) == 95 and sorted([*train, *valid]) == sorted(pairs)
    assert data.has("valid") and data.describe("valid") == "one pair of 20 of text xx-yy"
    assert next(iter(data.open("valid"))).number == 1  # lines keep their numbers
    with pytest.raises(ConfigError, match="hold_out: cannot be combined with validation files"):
        PairData(source="xx", target="yy", folder=tmp_path, train="text", valid="text", hold_out=20)
    with pytest.raises(ConfigError, match="set hold_out: 20 to hold out"):
        PairData(source="xx", target="yy", folder=tmp_path, train="text")
