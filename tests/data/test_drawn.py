"""Tables that are drawn for reading, or have a word in each row: the message's own command converts them."""

import subprocess
from pathlib import Path

import pytest

from weft.data.conll import form_of, holds_tags
from weft.data.conllu import read_sentences
from weft.data.guess import holds_texts
from weft.data.sides import AlignedText, texts
from weft.data.tables import TableFile
from weft.errors import DataError

DRAWN = {
    "psql": " en  | de \n-----+----\n a b | c d\n e   | \n(2 rows)\n\n",
    "mysql": "+-----+-----+\n| en  | de  |\n+-----+-----+\n| a b | c d |\n| e   |     |\n+-----+-----+\n",
    "markdown": "| en | de |\n|:---|---:|\n| a b | c d |\n| e | |\n",
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawn_table_is_converted_by_the_command(name: str, tmp_path: Path) -> None:
    path = tmp_path / "my pairs.csv"
    path.write_text(DRAWN[name])
    with pytest.raises(DataError, match="table with drawn lines") as found:
        TableFile(path)
    subprocess.run(str(found.value).partition("convert it: ")[2], shell=True, check=True)
    rows = [row.cells for row in TableFile(path.with_suffix(".tsv"))]
    assert rows == [["en", "de"], ["a b", "c d"], ["e", ""]]


def test_bars_and_dashes_alone_are_no_drawn_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("en|de\n-|-\na|---\n")
    assert [row.cells for row in TableFile(tmp_path / "a.csv")][1:] == [["-", "-"], ["a", "---"]]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_table_of_words_is_converted_by_the_command(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "ner.csv"
    text = 'Sentence #,Word,POS,Tag\nSentence: 1,Café,NNP,B-geo\n,",",",",O\nSentence: 2,It\'s,PRP,O\n'
    path.write_bytes(text.encode(encoding))
    assert holds_tags(path) and not holds_texts(path)
    with pytest.raises(DataError, match="a table with a word in each row") as found:
        form_of(path)
    subprocess.run(str(found.value).partition("convert it: ")[2], shell=True, check=True)
    read = [(one.forms, one.tags) for one in read_sentences(path.with_suffix(".conll")) if one.forms]
    assert read == [(["Café", ","], ["B-geo", "O"]), (["It's"], ["O"])]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "en,de\na b,c d\n", "names columns (en, de); name it .csv"),
        ("a.txt", "text;label\na;b\n", "names columns (text, label); name it .csv"),
        ("a.md", DRAWN["markdown"], "table with drawn lines"),
        ("a.txt", "First, we go\nthen, we stop\n", ""),
    ],
)
def test_a_text_that_is_a_table_is_named(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    (one,) = texts([tmp_path / name])
    assert isinstance(one, AlignedText)
    notes = "".join(one.notes)
    assert (told in notes) if told else not notes
