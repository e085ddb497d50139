"""CoNLL-U and word TAB tag: other columns are kept byte for byte, errors name their place."""

import io
from collections.abc import Iterator, Sequence

import pytest

from weft.data.conllu import ConlluSentence, read_sentences
from weft.errors import DataError

CONLLU = """\
# newdoc id = 1
# text = Vámonos	al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tvm\tMood=Imp|Number=Plur\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tpp\tCase=Acc\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\ta\ta\tADP\tsp\t_\t5\tcase\t_\t_
4\tel\tel\tDET\tda\tDefinite=Def\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\tnc\tGender=Masc\t1\tobl\t1:obl\tA=B C
5.1\tvamos\tir\tVERB\t_\t_\t_\t_\t1:conj\t_

# sent_id = 2
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_

"""


def sentences(lines: Sequence[str], column: str = "upos") -> Iterator[ConlluSentence]:
    return read_sentences(io.BytesIO("\n".join(lines).encode()), column=column)


def test_the_words_are_those_with_a_plain_number() -> None:
    first, second = sentences(CONLLU.split("\n"))
    assert first.forms == ["Vamos", "nos", "a", "el", "mar"]
    assert first.tags == ["VERB", "PRON", "ADP", "DET", "NOUN"]
    assert (second.forms, second.tags, second.first) == (["#"], ["SYM"], 12)
    feats = next(sentences(CONLLU.split("\n"), column="feats"))
    assert feats.tags[0] == "Mood=Imp|Number=Plur"


@pytest.mark.parametrize(("column", "place"), [("upos", 3), ("xpos", 4), ("feats", 5)])
def test_only_the_column_that_is_asked_for_changes(column, place) -> None:
    before = list(sentences(CONLLU.split("\n"), column=column))
    same = "".join("\n".join(one.tagged(one.tags, column)) + "\n\n" for one in before)
    assert same == CONLLU
    for one in before:
        for old, new in zip(one.lines, one.tagged(["X"] * len(one.forms), column), strict=True):
            cells, changed = old.split("\t"), new.split("\t")
            if len(cells) == 10 and cells[0].isdigit():
                assert changed[place] == "X"
                changed[place] = cells[place]
            assert changed == cells


def test_words_with_tags_words_alone_and_sentences_on_a_line() -> None:
    one, two = sentences(["the\tDET", "#\tSYM", "", "x\tX"])
    assert (one.forms, one.tags, two.forms) == (["the", "#"], ["DET", "SYM"], ["x"])
    (words,) = sentences(["the", "cat", ""])
    assert (words.forms, words.tags) == (["the", "cat"], None)
    assert words.tagged(["DET", "NOUN"], "upos") == ["the\tDET", "cat\tNOUN"]
    for lines in (["the cat", "", "it sleeps"], ["the cat", "it sleeps"]):
        first, second = sentences(lines)
        assert (first.forms, second.forms) == (["the", "cat"], ["it", "sleeps"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1\ta\tb\n", r"in:1: .*got 3"),
        (CONLLU.replace("3\ta\ta", "4\ta\ta"), "in:7: .*word 4"),
        (CONLLU.replace("1-2\t", "2-1\t"), "in:3: .*word 1"),
        (CONLLU.replace("5.1\t", "x\t"), "in:10: .*word number"),
        (CONLLU.replace("\tVERB\tvm", "\t\tvm"), r"in:4: column 4 is empty; write _"),
        (CONLLU.replace("1\t#\t#", "1-2\t#\t#"), r"in:13: the sentence ends before word 2"),
        ("the\tDET\ncat\n", "in:2: .*word TAB tag"),
        ("the\tDET\n\tNOUN\n", "in:2: .*word TAB tag"),
    ],
)
def test_what_is_wrong_is_named(text, sentence) -> None:
    file = io.BytesIO(text.encode())
    file.name = "in"
    with pytest.raises(DataError, match=sentence):
        list(read_sentences(file))


def test_a_sentence_of_one_word_among_sentences_on_each_line():
    lines = ["The cat sat .", "***", "#1", "It is 5 o'clock", "", "Yes"]
    found = list(sentences(lines))
    assert [one.forms for one in found] == [line.split() for line in lines if line]
    assert [one.first for one in found] == [1, 2, 3, 4, 6]
