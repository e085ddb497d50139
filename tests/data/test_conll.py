"""Tagged text as corpora and taggers write it: columns as in CoNLL-2003, and words joined with their tags."""

import os
from pathlib import Path

import pytest

from tests.commands.shell import refused, unanswered, weft
from weft.data.conll import TaggedForm, form_of, form_of_lines, holds_tags, reading_of, words_among
from weft.data.conllu import each_input, read_sentences
from weft.errors import DataError
from weft.tasks.tag.data import check_tags
from weft.tasks.vocabulary import Lexicon

# The first sentences of CoNLL-2003's development file, as its README shows the form.
CONLL = """\
-DOCSTART- -X- -X- O

CRICKET NNP B-NP O
- : O O
LEICESTERSHIRE NNP B-NP B-ORG
TAKE NNP I-NP O
OVER IN B-PP O

LONDON NNP B-NP B-LOC
1996-08-30 CD I-NP O

"""
WORDS = [["CRICKET", "-", "LEICESTERSHIRE", "TAKE", "OVER"], ["LONDON", "1996-08-30"]]
NER = [["O", "O", "B-ORG", "O", "O"], ["B-LOC", "O"]]
POS = [["NNP", ":", "NNP", "NNP", "IN"], ["NNP", "CD"]]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def read(path: Path, column: str = "ner") -> tuple[list[list[str]], list[list[str] | None]]:
    found = [one for one in read_sentences(path, column=column) if one.forms]  # type: ignore[arg-type]
    return [one.forms for one in found], [one.tags for one in found]


@pytest.mark.parametrize("gap", [" ", "\t", "  "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_four_columns_of_conll_2003(tmp_path: Path, gap: str, end: str) -> None:
    path = write(tmp_path / "eng.testa", CONLL.replace(" ", gap).replace("\n", end))
    assert form_of(path) == TaggedForm("\t" if gap == "\t" else " ", 4)
    assert read(path) == (WORDS, NER) and read(path, "pos") == (WORDS, POS)
    assert read(path, "chunk")[1][1] == ["B-NP", "I-NP"]
    with pytest.raises(DataError, match=r"eng\.testa:1: expected CoNLL-U for column upos, got 4 columns"):
        read(path, "upos")


def test_tags_are_written_back_into_their_column(tmp_path: Path) -> None:
    for gap in (" ", "\t", "  "):
        path = write(tmp_path / "x.txt", CONLL.replace(" ", gap))
        start, first, second = read_sentences(path, column="ner")
        assert "\n".join(start.lines) == f"-DOCSTART-{gap}-X-{gap}-X-{gap}O" and start.forms == []
        assert first.tagged(list("abcde"), "ner")[2] == gap.join(["LEICESTERSHIRE", "NNP", "B-NP", "c"])
        assert second.tagged(["X", "Y"], "pos")[1] == gap.join(["1996-08-30", "Y", "I-NP", "O"])


@pytest.mark.parametrize(
    ("text", "form", "tags"),
    [
        (
            "EU B-ORG\nrejects O\nlamb O\n\nPeter B-PER\n. O\n",
            (" ", 2),
            [["B-ORG", "O", "O"], ["B-PER", "O"]],
        ),
        ("EU NNP B-ORG\nrejects VBZ O\nlamb NN O\n", (" ", 3), [["B-ORG", "O", "O"]]),
        (
            "la det o\ncasa noun b-x\n\n" * 4,
            (" ", 3),
            [["o", "b-x"]] * 4,
        ),
        (
            "The/DT dog/NN barks/VBZ ./.\n1/2/CD and/or/CC\n",
            ("/", 0),
            [["DT", "NN", "VBZ", "."], ["CD", "CC"]],
        ),
        ("The_DT dog_NN barks_VBZ\n\nA_DT cat_NN\n", ("_", 0), [["DT", "NN", "VBZ"], ["DT", "NN"]]),
        ("中 B-LOC\n国 E-LOC\n很 O\n\n我 O\n", (" ", 2), [["B-LOC", "E-LOC", "O"], ["O"]]),
        ('" O\nEU B-ORG\n" O\n', (" ", 2), [["O", "B-ORG", "O"]]),
        ("10\u00a0000 B-NUM\nkg O\n. O\n", (" ", 2), [["B-NUM", "O", "O"]]),
        ("# id 7\tdomain=en\nEU _ _ B-ORG\n# _ _ O\nis _ _ O\n", (" ", 4), [["B-ORG", "O", "O"]]),
        ("the/at jury/nn the/at jury/nn\n", ("/", 0), [["at", "nn", "at", "nn"]]),
    ],
)
def test_other_forms(tmp_path: Path, text: str, form: tuple[str, int], tags: list[list[str]]) -> None:
    path = write(tmp_path / "x.txt", text)
    assert form_of(path) == TaggedForm(*form)
    assert read(path)[1] == tags
    assert weft("data", "check", path).code == (len(tags) == 1)  # of a single sentence none is held out


def test_half_of_the_tags_may_be_punctuation() -> None:
    rows = ["Peter NNP", ", ,", "61 CD", ". ."]
    assert form_of_lines(rows) == TaggedForm(" ", 2)


def test_a_word_with_a_slash_keeps_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "The/DT dog/NN barks/VBZ\n1/2/CD and/or/CC\n")
    assert read(path)[0][1] == ["1/2", "and/or"]
    assert [one.tagged(["x"] * len(one.forms), "ner") for one in read_sentences(path)][1] == [
        "1/2\tx",
        "and/or\tx",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["two words", "of plain", "text here"],
        ["HELLO WORLD", "SECOND LINE", "THIRD LINE"],
        ["Hello there , friend .", "Bye ."],
        ["and/or", "a b/c"],
        ["word\tTAG", "other\tTAG"],
        ["1\tHi\t_", "2\tall\t_"],
        ["1\tHi\t_\tX\t_\t_\t0\troot\t_\t_"],
        [],
        ["a b", "", "c d", "", "e f"],
        ["you sing .", "he reads .", "we dance ."],
        ["you sing .", "he reads !", "they left ?", "", "we dance ."],
        ["он поёт .", "You sing .", "мы идём ."],
        ["me gusta »", "te gusta …", "nos gusta ?!"],
        ["Peter lives in PARIS", "Mary works in LONDON", "John sits in ROME", "Anna was in BERLIN"],
        ["buy MILK", "sell EGGS", "get BREAD"],
        ["I like IBM", "you like NASA", "", "we like IBM", "they like NASA"],
        ["room number 12", "room number 14", "room number 15"],
    ],
)
def test_plain_text_and_conllu_have_no_other_form(lines: list[str]) -> None:
    assert form_of_lines(lines) is None


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("a NNP B-NP\n", "expected 4 columns, got 3"),
        ("a NNP B-NP O O\nb B O O\n", "expected 4 columns, got 5"),
    ],
)
def test_a_wrong_line_is_named_and_reading_continues(tmp_path: Path, more: str, what: str) -> None:
    good = CONLL * 300
    path = write(tmp_path / "x.txt", good + more + "\n" + CONLL)
    with pytest.raises(DataError, match=rf"x\.txt:3301: {what}"):
        read(path)
    report = weft("data", "check", path)
    assert report.code == 1 and f"{path}:3301: {what}" in report.out


def test_comments_and_starts_of_documents_are_no_words(tmp_path: Path) -> None:
    text = "-DOCSTART-\tO\n\n# id 1\nEU\tB-ORG\n#\tO\n\n# sent_id = 2\n#\tO\n"
    path = write(tmp_path / "x.txt", text)
    assert read(path) == ([["EU", "#"], ["#"]], [["B-ORG", "O"], ["O"]])
    (_, first, second) = read_sentences(path)
    assert first.tagged(["a", "b"], "ner") == ["# id 1", "EU\ta", "#\tb"] and second.first == 7
    assert weft("data", "check", path).code == 0


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("EU\tB-ORG\nis\t\n", 2, "got an empty tag"),
        ("EU\tx\tB-ORG\nis\ty\t\n", 2, "got an empty column"),
        ("EU x B-ORG\nis y O\n" * 9 + "it O\n", 19, "expected 3 columns, got 2"),
    ],
)
def test_a_word_without_its_tag_is_named(tmp_path: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(DataError, match=rf"x\.txt:{line}: .*{what}"):
        read(write(tmp_path / "x.txt", text))


def test_words_may_all_be_without_a_tag(tmp_path: Path) -> None:
    for text in ("EU\t\nis\t\n", "EU\tx\t\nis\ty\t\n"):
        assert read(write(tmp_path / "x.txt", text)) == ([["EU", "is"]], [None])


def test_conllu_with_spaces_is_no_text(tmp_path: Path) -> None:
    rows = ["# text = Hi all", "1 Hi hi INTJ UH _ 0 root _ _", "2 all all PRON DT _ 1 dep _ _", ""]
    path = write(tmp_path / "x.conllu", "\n".join(rows))
    with pytest.raises(DataError, match=r"x\.conllu: CoNLL-U with spaces .* sed -E"):
        read(path)


def test_a_joined_word_without_a_tag_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "The/DT dog/NN barks/VBZ\n" * 2000 + "A cat/NN\n")
    with pytest.raises(DataError, match=r"x\.txt:2001: expected WORD/TAG, got 'A'"):
        read(path)


def test_a_tagger_of_names_from_init_to_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("eng.train", "eng.testa", "eng.testb"):
        write(Path(name), CONLL * 3)
    began = weft("init", "tag", "eng.train", "eng.testa", "eng.testb")
    assert began.code == 0 and "the last of its columns is learnt (ner)" in began.lines[0]
    assert "column: ner" in began.out and "# 3 tags (ner), 6 training sentences, 21 words" in began.out
    weft("train", "tag.yaml", "--run", "run", "training.max_updates=1", code=0)
    assert "eng.testb ner, 6 sentences, 21 gold words" in weft("evaluate", "run").out
    answer = weft("predict", "run", "eng.testb")
    assert [line.split()[:3] for line in answer.lines] == [
        line.split()[:3] for line in (CONLL * 3).splitlines()
    ]
    assert weft("predict", "run", stdin=(CONLL * 3).encode()).out == answer.out
    assert weft("predict", "run", stdin=b"LONDON TAKE OVER\n").lines[0].startswith("LONDON\t")
    assert "choose ner" in refused(weft("train", "tag.yaml", "--run", "other", "data.column=upos"))
    write(Path("bad.txt"), CONLL * 200 + "x\n\n" + CONLL)
    assert "bad.txt:2201: expected 4 columns, got 1" in unanswered(weft("predict", "run", "bad.txt"))[0]


def test_a_sentence_without_tags_in_the_last_column_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("Rain\tNN\tO\nin\tIN\tO\nRome\tNNP\tB-LOC\n\nSun\tNN\t\nset\tVB\t\n")
    (found,) = check_tags([path]).findings
    assert (found.line, found.kind) == (5, "tag") and "the last column has no tag" in found.text


def test_sentences_are_counted_whatever_the_form(tmp_path: Path) -> None:
    for name, text in (
        ("a.txt", CONLL),
        ("b.txt", "Rain/NN falls/VB\nSun/NN sets/VB\n"),
        ("c.txt", "a\tX\nb\tY\n\nc\tX\n"),
    ):
        write(tmp_path / name, text)
        found = check_tags([tmp_path / name])
        assert found.summary.startswith(f"{tmp_path / name}: 2 sentences") and found.counts == {}, found


COMMANDS = "switch lights on\nturn radio on\nplay music on\n\nturn heating on\n"
THREE, FOUR = TaggedForm(" ", 3), TaggedForm(" ", 4)
TAGS = {"O", "B-ORG", "B-LOC"}


@pytest.mark.parametrize(
    ("text", "trained", "read_as", "kind", "words"),
    [
        (COMMANDS, None, "auto", "sentences", ["switch", "lights", "on"]),
        (COMMANDS, THREE, "auto", "sentences", ["switch", "lights", "on"]),
        (COMMANDS, THREE, "columns", "columns", ["switch", "turn", "play"]),
        ("stop\nswitch lights on\n", None, "auto", "sentences", ["stop"]),
        ("stop\n\nswitch lights on\n", FOUR, "auto", "sentences", ["stop"]),
        ("stop\n\nstart\nagain\n", FOUR, "auto", "words", ["stop"]),
        ("New York\nis\n", FOUR, "words", "words", ["New York", "is"]),
        ("stop\nthen\n", FOUR, "sentences", "sentences", ["stop"]),
        (CONLL, None, "auto", "columns", WORDS[0]),
        (CONLL, FOUR, "auto", "columns", WORDS[0]),
        (CONLL, THREE, "auto", "sentences", ["-DOCSTART-", "-X-", "-X-", "O"]),
        ("EU _ _ _\nrejects _ _ _\n", FOUR, "auto", "columns", ["EU", "rejects"]),
        ("EU\t_\nrejects\t_\n", FOUR, "auto", "tabs", ["EU", "rejects"]),
        ("EU/B-ORG is/O\n", TaggedForm("/"), "auto", "columns", ["EU", "is"]),
        ("and/or this/O\n", TaggedForm("/"), "auto", "sentences", ["and/or", "this/O"]),
    ],
)
def test_a_plain_sentence_is_no_columns(
    text: str, trained: TaggedForm | None, read_as: str, kind: str, words: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "in.txt", text)
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe, path.open("rb") as stream:
        for source in (path, stream, pipe):
            found = reading_of(source, trained, TAGS, "ner", read_as)  # type: ignore[arg-type]
            first = next(one for one in each_input(found, "x", column="ner") if one.forms)  # type: ignore[union-attr]
            assert found.kind == kind and first.forms == words  # type: ignore[union-attr]
            assert ("read as" in found.note) == (read_as == "auto" and kind in ("words", "columns"))


def test_a_stream_is_answered_before_it_ends() -> None:
    """A program that writes a sentence and waits for its tags."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe, os.fdopen(write_end, "wb") as other:
        for text in ("switch lights on\n", "EU\tO\n\n"):
            other.write(text.encode())
            other.flush()
        assert next(each_input(reading_of(pipe, FOUR, TAGS, "ner"), "x")).forms == ["switch", "lights", "on"]  # type: ignore[union-attr]


def test_a_run_keeps_the_form_of_its_training_data(tmp_path: Path) -> None:
    for text, column, form in ((CONLL, "ner", FOUR), ("EU\tO\nis\tO\n", "upos", None)):
        path = write(tmp_path / "train.txt", text)
        found = read_sentences(path, column=column)  # type: ignore[arg-type]
        Lexicon.learn(found, lowercase=True, min_count=1).save(tmp_path / "tags.json")
        assert Lexicon.load(tmp_path / "tags.json").form == form


def test_comments_may_hold_tabs() -> None:
    lines = ["# id 0\tdomain=train", "a\tO", "# b\tO"]
    assert words_among(lines, [2, 2, 2], 2) == [1, 2]  # the third stands after a word
    assert words_among(["#\tO", "a\tO"], [2, 2], 2) == [0, 1]  # a word


@pytest.mark.parametrize(
    ("name", "text", "tagged"),
    [
        (
            "a.tsv",
            "# id 0\tdomain=train\na\tO\ndog\tO\nSplit\tB-PER\n.\tO\n\n# id 1\tx=y\nthe\tO\ncar\tO\n",
            True,
        ),
        ("a.txt", "\ufeffDas\tDET\r\nHaus\tNOUN\r\n#\tSYM\r\n.\tPUNCT\r\n\r\nAna\tPROPN\r\n", True),
        ("a.tsv", "hund\tdog\nkatze\tcat\nhaus\thouse\nmaus\tmouse\n", False),
        ("a.tsv", "an awful day\tO\na fine day\tX\nhm hm\tO\nno no\tX\n", False),
    ],
)
def test_words_with_the_usual_tags_are_no_pairs(tmp_path: Path, name: str, text: str, tagged: bool) -> None:
    path = write(tmp_path / name, text)
    assert holds_tags(path) is tagged
    assert ("sentences" in weft("data", "check", path).out) is tagged
