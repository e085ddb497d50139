"""The token store: round trips, atomic writes, counts, keys, constant memory."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.data import building
from weft.data.building import EncodedPairs
from weft.data.store import TokenStore, content_key
from weft.errors import DataError

OTHER = """
import sys
from weft.data.building import EncodedPairs
from weft.data.store import TokenStore
both = lambda texts, others: EncodedPairs([[1]] * len(texts), [[1]] * len(texts))
TokenStore.build(sys.argv[1], [(n, "a", "b") for n in range(3)], both, max_length=4, key="k")
"""


def numbers(texts: list[str]) -> list[list[int]]:
    """One token per word: its length in symbols, plus 70,000 for a word in capitals."""
    return [[len(word) + 70_000 * word.isupper() for word in text.split()] for text in texts]


def both(sources: list[str], targets: list[str]) -> EncodedPairs:
    """Sources of five or more words count as cut."""
    return EncodedPairs(numbers(sources), numbers(targets), sum(len(text.split()) > 4 for text in sources))


def build(directory: Path, pairs: list[tuple[int, str, str]], key: str = "k", **how: object) -> TokenStore:
    how = {"max_length": 4} | how
    return TokenStore.build(directory, pairs, both, key=key, **how)


OLD = '{"version": 0, "bytes": {}}'
PAIRS = [
    (1, "a bb", "ccc"),
    (2, "", "x"),
    (3, "a b c d e", "x"),
    (4, "a b c d", "AB x y zz"),
    (5, "x", " "),
    (9, "x", "a b c d e"),
    (10, "q", "q"),
]


def test_what_goes_in_comes_out_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    store = build(tmp_path / "store", PAIRS)
    assert [[side.tolist() for side in store[number]] for number in range(len(store))] == [
        [[1, 2], [3]],
        [[1, 1, 1, 1], [70_002, 1, 1, 2]],
        [[1], [1]],
    ]
    assert store.lengths.tolist() == [[2, 1], [4, 4], [1, 1]]
    assert store.lengths.dtype == np.int32
    assert store.numbers.tolist() == [1, 4, 10]
    assert store.report == {"pairs": 7, "kept": 3, "too_long": 2, "empty": 2, "cut": 1}


@given(
    pairs=st.lists(
        st.tuples(st.text("ab ", max_size=12), st.text("ab ", max_size=12)), min_size=1, max_size=30
    ),
    batch=st.integers(1, 7),
)
@settings(max_examples=25)
def test_any_pairs_in_any_batches_come_out_in_order(
    pairs: list[tuple[str, str]], batch: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [tuple(numbers(list(pair))) for pair in pairs]
    kept = [pair for pair in rows if all(0 < len(side) <= 3 for side in pair)]
    directory = tmp_path_factory.mktemp("stores") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "BATCH", batch)
        numbered = [(number, *pair) for number, pair in enumerate(pairs, 1)]
        if not kept:
            with pytest.raises(DataError, match="no pair is left"):
                build(directory, numbered, max_length=3)
            return
        store = build(directory, numbered, max_length=3)
    assert [tuple(side.tolist() for side in store[number]) for number in range(len(store))] == kept
    assert sum(store.report[name] for name in ("kept", "too_long", "empty")) == store.report["pairs"]


def test_the_same_key_opens_and_another_builds_anew(tmp_path: Path) -> None:
    def fail() -> Iterator[tuple[int, str, str]]:
        raise AssertionError("read again")
        yield

    first = build(tmp_path / "store", PAIRS)
    again = TokenStore.build(tmp_path / "store", fail(), both, max_length=4, key="k")
    assert again.lengths.tolist() == first.lengths.tolist()
    other = build(tmp_path / "store", PAIRS[:1], key="other")
    assert len(other) == len(TokenStore.open(tmp_path / "store")) == 1
    assert first[1][1].tolist() == [70_002, 1, 1, 2]  # an open store outlives its replacement
    assert os.listdir(tmp_path) == ["store"]


def test_rows_are_read_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        build(tmp_path / "store", PAIRS)[0][0][0] = 5


def test_progress_is_told_after_every_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "BATCH", 3)
    seen: list[int] = []
    build(tmp_path / "store", PAIRS, progress=seen.append)
    assert seen == [3, 6, 7]


def test_two_processes_that_build_the_same_store_both_end_with_it(tmp_path: Path) -> None:
    def meanwhile() -> Iterator[tuple[int, str, str]]:
        yield from PAIRS
        subprocess.run([sys.executable, "-c", OTHER, str(tmp_path / "store")], check=True)

    store = TokenStore.build(tmp_path / "store", meanwhile(), both, max_length=4, key="k")
    assert len(store) == 3
    assert os.listdir(tmp_path) == ["store"]


def test_a_bad_line_while_building_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "BATCH", 2)
    build(tmp_path / "store", PAIRS)

    def bad() -> Iterator[tuple[int, str, str]]:
        yield from PAIRS
        raise DataError("train.en:8: not UTF-8")

    with pytest.raises(DataError, match=r"train.en:8: not UTF-8"):
        TokenStore.build(tmp_path / "store", bad(), both, max_length=4, key="new")
    assert TokenStore.open(tmp_path / "store").key == "k"
    assert os.listdir(tmp_path) == ["store"]


def test_no_space_left_is_one_sentence_and_leaves_what_was_there(tmp_path: Path) -> None:
    build(tmp_path / "store", PAIRS)
    many = [(number, "a b c", "d e f") for number in range(200_000)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(DataError, match=r"store: .*cannot be written \(File too large"):
            build(tmp_path / "store", many, key="new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert TokenStore.open(tmp_path / "store").key == "k"
    assert os.listdir(tmp_path) == ["store"]


def test_a_build_killed_midway_leaves_nothing_that_counts(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom weft.data.building import EncodedPairs\n"
        "from weft.data.store import TokenStore\n"
        "def pairs():\n    for n in range(5000): yield n, 'a', 'c'\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "both = lambda texts, others: EncodedPairs([[1]] * len(texts), [[1]] * len(texts))\n"
        "TokenStore.build(sys.argv[1], pairs(), both, max_length=4, key='k')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "store")], check=False)
    assert done.returncode == -9
    assert not (tmp_path / "store").exists()
    with pytest.raises(DataError, match="no token store"):
        TokenStore.open(tmp_path / "store")
    assert len(os.listdir(tmp_path)) == 1
    build(tmp_path / "store", PAIRS)  # and the next build removes it
    assert os.listdir(tmp_path) == ["store"]


def test_nothing_left_is_refused_with_the_reasons(tmp_path: Path) -> None:
    pairs = [(1, "a b c", "x"), (2, "", "x"), (3, "a b c", "y")]
    message = "of 3: 1 have an empty side, 2 have more than 2 tokens"
    with pytest.raises(DataError, match=message):
        build(tmp_path / "store", pairs, max_length=2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (
            lambda path: (path / "source.ids").write_bytes(b"123"),
            "28 bytes, got 3",
        ),
        (lambda path: (path / "lengths").unlink(), "no token store .No such file"),
        (lambda path: (path / "store.json").write_text("{"), r"store\.json is damaged"),
        (lambda path: (path / "store.json").write_text("[]"), "store.json is damaged"),
        (
            lambda path: (path / "store.json").write_text(
                (path / "store.json").read_text().replace('"version": 2', '"version": 0')
            ),
            "version 2, got 0",
        ),
    ],
)
def test_a_damaged_store_is_refused_and_built_again(harm: object, message: str, tmp_path: Path) -> None:
    build(tmp_path / "store", PAIRS)
    harm(tmp_path / "store")
    with pytest.raises(DataError, match=message):
        TokenStore.open(tmp_path / "store")
    assert len(build(tmp_path / "store", PAIRS)) == 3


def test_the_key_is_of_content_and_settings_not_of_names(tmp_path: Path) -> None:
    for name, text in [("a", "same"), ("b", "same"), ("c", "other")]:
        (tmp_path / name).write_text(text)
    key = content_key([tmp_path / "a"], max_length=4)
    assert key == content_key([tmp_path / "b"], max_length=4)
    assert key != content_key([tmp_path / "c"], max_length=4)
    assert key != content_key([tmp_path / "a"], max_length=5)
    assert content_key([tmp_path / "a", tmp_path / "c"]) != content_key([tmp_path / "c", tmp_path / "a"])
    with pytest.raises(DataError, match=r"none: cannot be read \(No such file"):
        content_key([tmp_path / "none"])


def test_memory_stays_flat_for_a_corpus_four_times_as_large(tmp_path: Path) -> None:
    code = (
        "import resource, sys\nfrom weft.data.building import EncodedPairs\n"
        "from weft.data.store import TokenStore\n"
        "row = [[7] * 10] * 2000\n"
        "def pairs(count):\n    for n in range(count): yield n, 'source words', 'target words'\n"
        "both = lambda texts, others: EncodedPairs(row[: len(texts)], row[: len(texts)])\n"
        "def peak(count):\n"
        "    name = sys.argv[1] + str(count)\n"
        "    store = TokenStore.build(name, pairs(count), both, max_length=20, key='k')\n"
        "    assert len(store) == count\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "small = peak(50_000)\nlarge = peak(400_000)\nprint((large - small) / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    # The larger store's ids alone are 32 MB; Python lists of them would be more than 60.
    assert float(done.stdout) < 8
