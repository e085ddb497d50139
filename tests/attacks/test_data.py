"""Untrusted data: whatever it claims or decompresses to, one error, little memory, no side effects.

Read next: bombs.py, the files; jail.py, the process; test_runs.py.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests import toys
from tests.attacks import bombs
from tests.attacks.bombs import HUGE
from tests.attacks.jail import Jail, listing, refused
from tests.commands import corpus, labelled
from tests.commands.prose import make as make_prose
from tests.slow import leading

TEXTS = {
    "an endless line in gzip": ("gz", b"\0", 2**26, r"a line longer than 16 MiB|NUL"),
    "an endless line in zstandard": (
        "zst",
        b"a",
        2**32,
        r"a line longer than 16 MiB|unpacks to more than 300",
    ),
    "an endless line in xz": ("xz", b"a", 2**28, r"unpacks to more than 300 times its size"),
    "empty lines without end in zstandard": ("zst", b"\n", 2**28, r"unpacks to more than 300 times its size"),
    "empty lines without end in gzip": ("gz", b"\n", 2**28, r"unpacks to more than 300 times its size"),
}


@pytest.mark.parametrize("name", leading(TEXTS, 1))
def test_text_that_unpacks_to_far_more(jail: Jail, tmp_path: Path, name: str) -> None:
    pack, line, size, sentence = TEXTS[name]
    recipe = make_prose(tmp_path / "toy")
    text = tmp_path / "toy" / f"bomb.txt.{pack}"
    text.write_bytes(bombs.repeated(line, size, pack))
    assert text.stat().st_size < size / 100
    trained(jail, tmp_path, recipe, sentence, f"data.train={text}")


def trained(jail: Jail, folder: Path, recipe: Path, sentence: str, *changes: str) -> None:
    """Training fails without writing a model, and the data is unchanged."""
    before = listing(recipe.parent)
    code, out, err = jail.weft("train", recipe, "--run", folder / "run", *changes)
    said = err.rstrip("\n").split("\n")[-1]
    assert (code, out) == (2, "") and said.startswith("weft: ") and "Traceback" not in err, (
        code,
        err[-1500:],
    )
    assert re.search(sentence, said) and len(said) < 1200, said
    assert listing(recipe.parent) == before
    assert not [path for path in folder.rglob("*") if path.suffix == ".safetensors" or path.name == "harm"]


def made(data: bytes | Callable[[], bytes]) -> bytes:
    """A file's content; those that take long are made by the tests that need them, not by every worker."""
    return data if isinstance(data, bytes) else data()


WAVS: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "2 GB of samples": (bombs.wav(0x7FFEFFFE, 2**31), r"2,147,418,110 bytes of samples"),
    "a chunk beyond the file": (bombs.wav(2**30, 2**30), r"1,073,741,824 bytes of samples"),
    "no channel": (bombs.wav(8, 44, channels=0), r"damaged, or no recording"),
    "a rate of zero": (bombs.wav(8, 44, rate=0), r"damaged, or no recording|got 0 Hz"),
    "a rate of one": (bombs.wav(8, 44, rate=1) + b"\0" * 2**20, r"1,000 to 768,000 Hz"),
    "a rate without a divisor": (bombs.wav(8, 44, rate=99_991), r"to 8000 Hz"),
    "hours of silence": (bombs.flac, r"more than 300 times its size"),
}


@pytest.mark.parametrize("name", leading(WAVS, 2))
def test_recordings_that_promise(jail: Jail, tmp_path: Path, name: str) -> None:
    data, sentence = WAVS[name]
    recipe = toys.songs(tmp_path / "toy")
    (tmp_path / "toy" / "train0.wav").write_bytes(made(data))
    trained(jail, tmp_path, recipe, sentence)


PICTURES: dict[str, tuple[str, bytes | Callable[[], bytes], str]] = {
    "a PNG of 10^9 pixels": ("png", partial(bombs.png, 100_000, 10_048), r"more than 89,478,485 pixels"),
    "a PNG that promises 10^18": (
        "png",
        bombs.png(8, 64, promised=10**9),
        r"more than 89,478,485 pixels",
    ),
    "an array of 10^12 numbers": ("npy", bombs.npy((HUGE,)), r"array of numbers|damaged"),
    "an array whose size overflows": ("npy", bombs.npy((2**40, 2**40)), r"array of numbers|damaged"),
    "a GIF of endless frames": ("gif", partial(bombs.gif, 2000, 2000, 9000), r"more than 256 MiB of frames"),
    "an array of objects": ("npy", bombs.pickled_npy(), r"array of numbers|damaged"),
    "an array of nothing, hugely": ("npy", bombs.npy((0, HUGE, HUGE)), r"array of numbers|no array"),
    "a zip by the name of an array": ("npy", bombs.archive("zip"), r"array of numbers|no array"),
}


@pytest.mark.parametrize("name", leading(PICTURES, 3))
def test_pictures_that_become_more(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ending, data, sentence = PICTURES[name]
    recipe = toys.pictures(tmp_path / "toy", clips=ending in ("npy", "gif"))
    first = min((tmp_path / "toy" / "train").rglob("*.*"))
    first.with_name(f"0bomb.{ending}").write_bytes(made(data))
    trained(jail, tmp_path, recipe, sentence, f"data.folder={tmp_path / 'toy'}")


def test_a_caption_of_a_bomb(jail: Jail, tmp_path: Path) -> None:
    recipe = toys.captions(tmp_path / "toy")
    first = next(path for path in sorted((tmp_path / "toy").rglob("*.png")))
    first.write_bytes(made(PICTURES["a PNG of 10^9 pixels"][1]))
    trained(jail, tmp_path, recipe, r"more than 89,478,485 pixels", f"data.folder={tmp_path / 'toy'}")


VECTORS: dict[str, tuple[str, bytes | Callable[[], bytes], str]] = {
    "a head of 10^15 words": ("bin", b"%d 300\nword " % 10**15, r"says 300 numbers for each word, got 0"),
    "a head of 10^15 numbers": ("bin", b"1 %d\nword " % 10**15, r"says 1,000,000,000,000,000 numbers"),
    "a head of 5,000 digits": ("bin", b"1" * 5000 + b" 3\n", r"expected a first line"),
    "a line of 5 million numbers": ("txt", partial(bombs.glove, 5_000_000), r"more than 1,000,000 numbers"),
    "a text head that lies": (
        "txt",
        b"%d 3\nword 1 2\nmore 1 2 3\n" % HUGE,
        r"a word and (2 numbers, got 3|3 numbers, got 2)",
    ),
}


@pytest.mark.parametrize("name", leading(VECTORS, 2))
def test_vectors_that_promise(jail: Jail, tmp_path: Path, name: str) -> None:
    ending, data, sentence = VECTORS[name]
    recipe = labelled.make_sentences(tmp_path / "toy")
    (tmp_path / "toy" / f"v.{ending}").write_bytes(made(data))
    trained(jail, tmp_path, recipe, sentence, f"model.embedding.vectors={tmp_path / 'toy' / f'v.{ending}'}")


ARPAS = {
    "a count of 10^15": (
        f"\\data\\\nngram 1={10**15}\n\n\\1-grams:\n-1 a\n\n\\end\\\n",
        r"1000000000000000 1-grams",
    ),
    "an order of 10^9": (
        "\\data\\\nngram 1=1\n\n\\1000000000-grams:\n-1 a\n\n\\end\\\n",
        r"is not a line|incomplete ARPA file",
    ),
    "an order of 5,000 digits": (
        "\\data\\\n\\" + "9" * 5000 + "-grams:\n\\end\\\n",
        r"is not a line of an ARPA file",
    ),
    "no number": (
        "\\data\\\nngram 1=1\n\n\\1-grams:\nnan <s>\n\n\\end\\\n",
        r"is not a line of an ARPA file",
    ),
}


@pytest.mark.parametrize("name", leading(ARPAS, 2))
def test_models_of_n_grams_that_promise(jail: Jail, tmp_path: Path, name: str) -> None:
    text, sentence = ARPAS[name]
    (tmp_path / "x.arpa").write_text(text)
    (tmp_path / "x.txt").write_text("a b\n")
    refused(jail, tmp_path, sentence, "ngram", "score", tmp_path / "x.arpa", tmp_path / "x.txt")


TABLES = {
    "a cell of 200,000 letters": (
        b"date,y\n2024-01-01," + b"9" * 200_000 + b"\n",
        r"x\.csv:2: 9+ in column y is infinite",
    ),
    "a quote that never ends": (
        b'date,y\n"2024' + b"\n1" * 200_000,
        r"field larger|unexpected end|expected [0-9]+ cells",
    ),
    "times that are none": (b"date,y\nnow,1\ntoday,2\n", r"is not a time"),
    "a year of a million digits": (b"date,y\n" + b"9" * 100_000 + b"-01-01,1\n", r"is not a time"),
    "infinity": (b"date,y\n2024-01-01,1e999\n", r"is infinite"),
}


@pytest.mark.parametrize("name", leading(TABLES, 2))
def test_tables_of_series(jail: Jail, tmp_path: Path, name: str) -> None:
    data, sentence = TABLES[name]
    recipe = toys.series(tmp_path / "toy")
    (tmp_path / "toy" / "x.csv").write_bytes(data)
    trained(jail, tmp_path, recipe, sentence, "training.max_updates=1")


@pytest.mark.slow
def test_a_parquet_file_of_thirty_million_equal_rows(jail: Jail, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    recipe = toys.series(tmp_path / "toy")
    table = pyarrow.table({"y": pyarrow.array([0.0]).take(pyarrow.array([0] * 30_000_000, pyarrow.int32()))})
    parquet.write_table(table, tmp_path / "toy" / "x.parquet", compression="zstd")
    trained(
        jail,
        tmp_path,
        recipe,
        r"cells in a file too small",
        "training.max_updates=1",
        f"data.file={tmp_path / 'toy' / 'x.parquet'}",
    )


def test_sentences_with_numbers_of_5000_digits(jail: Jail, tmp_path: Path) -> None:
    recipe = labelled.make_sentences(tmp_path / "toy")
    train = next(path for path in (tmp_path / "toy").iterdir() if "train" in path.name)
    word = "9" * 5000
    train.write_text("\t".join([word, "a", *"_" * 8]) + "\n\n")
    trained(jail, tmp_path, recipe, r"expected a word number")


ARCHIVES: dict[str, Callable[[Path], object]] = {
    "a zip": lambda path: path.write_bytes(bombs.archive("zip")),
    "a tar": lambda path: path.write_bytes(bombs.archive("tar")),
    "a sparse terabyte": lambda path: bombs.sparse(path, 2**40),
}


@pytest.mark.parametrize("name", leading(ARCHIVES, 1))
def test_archives_by_the_name_of_text(jail: Jail, tmp_path: Path, name: str) -> None:
    recipe = corpus.make(tmp_path / "toy")
    (tmp_path / "toy" / "train.yy").unlink()
    ARCHIVES[name](tmp_path / "toy" / "train.yy")
    trained(
        jail,
        tmp_path,
        recipe,
        r"train\.yy(:1)?: (a NUL byte|not UTF-8|a line longer|expected plain text, got a)",
    )


RECIPES = {
    "a layer of 10^12": "model.encoder.sizes=[1000000000000]",
    "a hundred million layers": "model.encoder={use: transformer, num_heads: 2, num_layers: 99999999}",
    "a part of the interpreter": "model.encoder.cell=os.system",
    "a part of Weft that is none": "model.encoder.cell=weft.cli.main",
    "a part of a plugin that was not named": "model.encoder.cell=mine.leaky.Leaky",
}


@pytest.mark.parametrize("name", leading(RECIPES, 3))
def test_recipes_that_ask_for_everything(jail: Jail, tmp_path: Path, name: str) -> None:
    trained(
        jail,
        tmp_path,
        corpus.make(tmp_path / "toy"),
        r"sizes|memory|num_layers|no cell|--plugin",
        RECIPES[name],
    )
