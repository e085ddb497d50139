"""Parallel text: two files or two columns give the same pairs; every error names its place."""

import gzip
from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.data.corpora import SPLITS, corpus, languages
from weft.data.parallel import ParallelText
from weft.errors import ConfigError, DataError

PAIRS = [(1, "a cat", "eine Katze"), (2, "", "leer"), (3, "two\u2028parts", "zwei Teile")]


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8", newline="\n")


def test_two_files_are_read_side_by_side(tmp_path: Path) -> None:
    write(tmp_path, train__en="a cat\n\ntwo\u2028parts\n", train__de="eine Katze\r\nleer\r\nzwei Teile")
    text = ParallelText(tmp_path / "train", "en", "de")
    assert list(text) == PAIRS
    assert list(text) == PAIRS  # iterate again
    assert text.files == [tmp_path / "train.en", tmp_path / "train.de"]
    assert text.name == str(tmp_path / "train")
    assert text.place(3) == f"{tmp_path}/train.en:3"


def test_one_side_may_be_compressed(tmp_path: Path) -> None:
    write(tmp_path, train__en="a cat\n\ntwo\u2028parts\n")
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"eine Katze\nleer\nzwei Teile\n"))
    assert list(ParallelText(tmp_path / "train", "en", "de")) == PAIRS


@pytest.mark.parametrize("end", ["tsv", "tsv.gz"])
def test_columns_are_found_by_name_or_taken_in_order(end: str, tmp_path: Path) -> None:
    rows = "".join(f"{number}\t{target}\t{source}\n" for number, source, target in PAIRS)
    plain = "".join(f"{source}\t{target}\n" for _, source, target in PAIRS)
    for name, text in [("named", "id\tde\ten\n" + rows), ("plain", plain)]:
        raw = text.encode()
        (tmp_path / f"{name}.{end}").write_bytes(gzip.compress(raw) if end.endswith("gz") else raw)
    assert list(ParallelText(tmp_path / f"plain.{end}", "en", "de")) == PAIRS
    named = list(ParallelText(tmp_path / f"named.{end}", "en", "de"))
    assert [pair[1:] for pair in named] == [pair[1:] for pair in PAIRS]
    assert [pair.number for pair in named] == [2, 3, 4]  # lines of the file: the first is the header
    turned = list(ParallelText(tmp_path / f"named.{end}", "de", "en"))
    assert [(pair.target, pair.source) for pair in turned] == [pair[1:] for pair in PAIRS]


def test_pairs_with_an_empty_side_can_be_left_out_keeping_line_numbers(tmp_path: Path) -> None:
    write(tmp_path, x__en="a\n \nc\nd\n", x__de="A\nB\n\nD\n")
    assert [pair.number for pair in ParallelText(tmp_path / "x", "en", "de", complete=True)] == [1, 4]


@pytest.mark.parametrize(("en", "de"), [(1041, 1040), (1, 3), (5, 2)])
def test_unequal_files_are_refused_with_both_counts(en: int, de: int, tmp_path: Path) -> None:
    write(tmp_path, train__en="a\n" * en, train__de="b\n" * de)
    with pytest.raises(DataError, match=rf"train.en has {en:,} lines? and .*train.de has {de:,}; each line"):
        list(ParallelText(tmp_path / "train", "en", "de"))


def test_a_bad_line_is_named_with_its_file(tmp_path: Path) -> None:
    write(tmp_path, train__en="a\n" * 2000)
    (tmp_path / "train.de").write_bytes(b"b\n" * 1040 + b"\xff\n" + b"b\n" * 959)
    with pytest.raises(DataError, match=r"train.de:1041: not UTF-8"):
        list(ParallelText(tmp_path / "train", "en", "de"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nno tab\n", r"x\.tsv:2: .*en TAB de"),
        ("en\tde\na\tb\tc\n", r"x\.tsv:2: .*got 3"),
        ("id\ten\tde\n1\ta\n", r"x\.tsv:2: .*3 columns, got 2"),
        ("id\ten\tfr\n1\ta\tb\n", r"x\.tsv:1: .*'de', got id, en, fr"),
        ("en\tfr\na\tb\n", r"x\.tsv:1: .*'de'"),
        ("one\ttwo\tthree\n", r"x\.tsv:1: .*'en'.*write a line of names above it, such as en and de"),
        ("only one\n", r"x\.tsv:1: .*'en'"),
    ],
)
def test_wrong_columns_are_named(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, x__tsv=text)
    with pytest.raises(DataError, match=message):
        list(ParallelText(tmp_path / "x.tsv", "en", "de"))


def test_missing_and_ambiguous_sides_are_refused(tmp_path: Path) -> None:
    write(tmp_path, train__en="a\n")
    with pytest.raises(DataError, match=r"train.de: "):
        ParallelText(tmp_path / "train", "en", "de")
    write(tmp_path, train__de="a\n", train__de__gz="x")
    with pytest.raises(DataError, match=r"train.de and .*train.de.gz"):
        ParallelText(tmp_path / "train", "en", "de")
    with pytest.raises(DataError, match=r"none.tsv: no such file"):
        ParallelText(tmp_path / "none.tsv", "en", "de")


@pytest.mark.slow  # also: test_store.py
def test_a_corpus_twice_as_large_takes_no_more_memory(tmp_path: Path) -> None:
    import tracemalloc

    peaks = []
    for count in (100_000, 200_000):
        write(tmp_path, x__en="some short words\n" * count, x__de="ein paar kurze Worte\n" * count)
        tracemalloc.start()
        assert sum(1 for _ in ParallelText(tmp_path / "x", "en", "de")) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 2**20


@pytest.mark.slow
def test_the_embedded_corpus_has_thirty_directions() -> None:
    known = languages("libreoffice-help")
    assert known == ["en", "de", "es", "fr", "pl", "ru"]
    for source in known:
        for target in set(known) - {source}:
            pairs = list(corpus("libreoffice-help", source, target, "test"))
            assert 390 < len(pairs) <= 776
            assert all(pair.source and pair.target for pair in pairs)


def test_the_embedded_corpus_is_whole() -> None:
    counts = {split: [0, 0] for split in SPLITS}
    english = {}
    for split in SPLITS:
        text = corpus("libreoffice-help", "en", "de", split)
        text.complete = False
        for pair in text:
            counts[split][0] += 1
            counts[split][1] += len(pair.source.split())
            assert english.setdefault(pair.source, split) == split
    # The counts of NOTICE.md.
    assert counts == {"train": [33406, 424000], "valid": [974, 12316], "test": [776, 9570]}


def test_the_embedded_corpus_carries_its_licence() -> None:
    folder = corpus("libreoffice-help", "en", "es", "test").files[0].parent
    assert "Mozilla Public License Version 2.0" in (folder / "LICENSE").read_text("utf-8")
    notice = (folder / "NOTICE.md").read_text("utf-8")
    assert "LibreOffice contributors" in notice
    assert "Mozilla Public License 2.0" in notice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("libreoffice-halp", "en", "es", "train"),
            "corpus 'libreoffice-halp'.* 'libreoffice-help'",
        ),
        (("xyz", "en", "es", "train"), "'xyz'.*libreoffice-help"),
        (("../corpora", "en", "es", "train"), "unknown corpus"),
        (
            ("libreoffice-help", "en", "hr", "train"),
            "has no language 'hr'; choose two of en, de, es, fr, pl, ru",
        ),
        (("libreoffice-help", "en", "es", "val"), "has no split 'val'; choose one of train, valid, test"),
        (("libreoffice-help", "en", "en", "test"), "source and target are both 'en'"),
    ],
)
def test_an_unknown_corpus_language_or_split_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        corpus(*arguments)


def test_a_first_row_that_may_be_a_header_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Vorlage;Fassung\none house;ein Haus\n")
    text = ParallelText(path, "en", "de")
    assert len(list(text)) == 2
    assert "the first row (Vorlage, Fassung) is a pair; if it names" in text.notes[0]
    assert ParallelText(path, "Vorlage", "Fassung").notes == []
    assert text.notes[0] in weft("data", "check", path, "--source", "en", "--target", "de").out
    (tmp_path / "x.tsv").write_text("One house.\tEin Haus.\nTwo\tZwei\n")
    assert ParallelText(tmp_path / "x.tsv", "en", "de").notes == []
    (tmp_path / "y.csv").write_text("Englisch;Deutsch\none house;ein Haus\n")  # a language in itself
    with pytest.raises(DataError, match="expected a column 'en', got Englisch, Deutsch; name the columns"):
        ParallelText(tmp_path / "y.csv", "en", "de")


def test_a_corpus_of_weft_needs_no_notes_on_its_quotes() -> None:
    assert corpus("libreoffice-help", "en", "es", "train").notes == []


def test_columns_without_names_have_numbers(tmp_path: Path) -> None:
    """As of Anki (with a licence) and Tatoeba (with ids)."""
    file = tmp_path / "anki.tsv"
    file.write_text("A cat sat.\tUn gato.\tCC-BY by Ann #1\nTwo dogs.\tDos perros.\tCC-BY by Bob #2\n")
    found = ParallelText(file, "1", "2")
    assert [pair[1:] for pair in found] == [("A cat sat.", "Un gato."), ("Two dogs.", "Dos perros.")]
    file.write_text("17\tA cat sat.\t18\tUn gato.\n19\tTwo dogs.\t20\tDos perros.\n")
    assert [pair.target for pair in ParallelText(file, "2", "4")] == ["Un gato.", "Dos perros."]
    file.write_text("english\tspanish\tlicence\nA cat sat.\tUn gato.\tCC\n")
    assert [pair.source for pair in ParallelText(file, "1", "2")] == ["A cat sat."]


def test_a_table_without_names_is_no_guess(tmp_path: Path) -> None:
    file = tmp_path / "anki.tsv"
    rows = [f"A cat sat {n}.\tUn gato.{n}\tCC-BY 2.0 of a long name #{n}\n" for n in range(5)]
    file.write_text("".join(rows))
    found = weft("data", "check", file)
    assert found.code == 1 and "--source and --target, 1 and 2 for the first two" in found.out
    said = refused(weft("init", "translate", file, "--source", "en", "--target", "es"))
    assert "expected a column 'en'" in said and "or by number, such as 1 and 2" in said
    file = file.rename(tmp_path / "anki.txt")
    found = weft("data", "check", file, "--source", "1", "--target", "2")
    assert found.code == 1 and "expected a table (.csv, .tsv, .xlsx), as --source" in found.out
    assert found.out.endswith("if it is one, name it anki.tsv\n")


def test_half_a_surrogate_pair_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"en": "a \\ud83d\\ude00", "es": "b"}\n{"en": "c\\ud83d", "es": "d"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected whole characters, got half"):
        list(ParallelText(file, "en", "es"))
    listed = tmp_path / "a.json"
    listed.write_text('[{"en": "a", "es": "b"}, {"en": "c\\ud83d", "es": "d"}]')
    with pytest.raises(DataError, match="record 2: expected whole characters"):
        list(ParallelText(listed, "en", "es"))
