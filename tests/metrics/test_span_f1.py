"""F1 of whole names: counted by hand by the rules of conlleval, for every scheme."""

import itertools
import random

import pytest

from weft.metrics.span_f1 import SpanF1, are_spans, by_type, scheme, spans

# [Ann Lee] met [Bo] [Bo Ek] in [New York City] and [Rome], in each scheme
NAMES = [(0, 1, "PER"), (3, 3, "PER"), (4, 5, "PER"), (7, 9, "LOC"), (11, 11, "LOC")]
SENTENCE = {
    "IOB1": "I-PER I-PER O I-PER B-PER I-PER O I-LOC I-LOC I-LOC O I-LOC",
    "IOB2": "B-PER I-PER O B-PER B-PER I-PER O B-LOC I-LOC I-LOC O B-LOC",
    "IOE": "I-PER E-PER O E-PER I-PER E-PER O I-LOC I-LOC E-LOC O E-LOC",
    "IOBES": "B-PER E-PER O S-PER B-PER E-PER O B-LOC I-LOC E-LOC O S-LOC",
    "BILOU": "B-PER L-PER O U-PER B-PER L-PER O B-LOC I-LOC L-LOC O U-LOC",
    "BMEWO": "B-PER E-PER O W-PER B-PER E-PER O B-LOC M-LOC E-LOC O W-LOC",
}


@pytest.mark.parametrize("name", SENTENCE)
def test_every_scheme_marks_the_same_names(name: str) -> None:
    tags = SENTENCE[name].split()
    assert [tuple(span) for span in spans(tags)] == NAMES
    assert scheme([tags]) == name and are_spans(tags)


# What conlleval.pl makes of tags that break their scheme, by its startOfChunk and endOfChunk.
@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ("I-PER O", [(0, 0, "PER")]),  # O I: start
        ("O I-PER I-LOC", [(1, 1, "PER"), (2, 2, "LOC")]),  # another type: end and start
        ("B-PER I-LOC I-LOC", [(0, 0, "PER"), (1, 2, "LOC")]),
        ("B-PER B-PER", [(0, 0, "PER"), (1, 1, "PER")]),  # B B: end and start
        ("I-PER B-PER", [(0, 0, "PER"), (1, 1, "PER")]),  # I B: end and start
        ("E-PER E-PER", [(0, 0, "PER"), (1, 1, "PER")]),  # E E: end and start
        ("E-PER I-PER", [(0, 0, "PER"), (1, 1, "PER")]),  # E I: end and start
        ("B-PER I-PER E-PER I-PER", [(0, 2, "PER"), (3, 3, "PER")]),
        ("B-A-B I-A-B", [(0, 1, "A-B")]),  # the first hyphen ends the letter
        ("O O", []),
        ("", []),
        ("S-PER S-PER I-PER", [(0, 0, "PER"), (1, 1, "PER"), (2, 2, "PER")]),
        ("B-PER S-PER", [(0, 0, "PER"), (1, 1, "PER")]),
        ("NOUN NOUN O", [(0, 0, "NOUN"), (1, 1, "NOUN")]),  # conlleval -r: a name of one word each
    ],
)
def test_tags_that_break_their_scheme_are_read_as_conlleval_reads_them(tags: str, names: list) -> None:
    assert [tuple(span) for span in spans(tags.split())] == names


def test_scores_counted_by_hand() -> None:
    references = ["B-PER I-PER O B-LOC", "O B-ORG I-ORG O", "B-PER O O O"]
    outputs = ["B-PER I-PER O B-ORG", "O B-ORG O O", "B-PER O B-LOC O"]
    # true: PER PER LOC ORG; predicted: PER ORG, ORG, PER LOC; right: the two PER. P = 2/5, R = 2/4, F1 = 4/9
    found = SpanF1().score(outputs, references)
    assert found.value == pytest.approx(4 / 9)
    rows = by_type([line.split() for line in outputs], [line.split() for line in references])
    assert [(row.label, row.precision, row.recall) for row in rows] == [
        ("all names", 2 / 5, 2 / 4),
        ("PER", 1.0, 1.0),
        ("LOC", 0.0, 0.0),
        ("ORG", 0.0, 0.0),
    ]
    assert rows[0].f1 == found.value and [(row.there, row.predicted) for row in rows] == [
        (4, 5), (2, 2), (1, 1), (1, 2),
    ]  # fmt: skip


def test_a_sentence_without_names_counts_only_what_is_wrong() -> None:
    assert SpanF1().score(["O O", "B-PER"], ["O O", "B-PER"]).value == 1.0
    assert SpanF1().score(["B-PER O", "B-PER"], ["O O", "B-PER"]).value == pytest.approx(2 / 3)
    assert SpanF1().score(["O O"], ["O B-PER"]).value == 0.0


def test_which_tags_are_names() -> None:
    assert are_spans({"O", "B-PER", "I-PER"}) and are_spans({"U-LOC"})
    assert not are_spans({"O"}) and not are_spans({"NOUN", "O"}) and not are_spans({"B-", "O"})
    assert not are_spans({"O", "B-PER", "Case=Nom"})


def conlleval(references: list[str], outputs: list[str]) -> tuple[int, int, int]:
    """The loop of conlleval.pl over one sentence: names that are correct, in the output, in the reference."""

    def ends(before: str, now: str, kind: str, other: str) -> bool:
        pairs = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
        return before + now in pairs or (before not in "O." and kind != other)

    def starts(before: str, now: str, kind: str, other: str) -> bool:
        pairs = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}
        return before + now in pairs or (now not in "O." and kind != other)

    counts, inside = [0, 0, 0], False
    last = [("O", ""), ("O", "")]
    for pair in [*zip(references, outputs, strict=True), ("O", "O")]:
        now = [tuple(tag.split("-", 1)) if "-" in tag else (tag, "") for tag in pair]
        ended = [ends(last[n][0], now[n][0], last[n][1], now[n][1]) for n in (0, 1)]
        begun = [starts(last[n][0], now[n][0], last[n][1], now[n][1]) for n in (0, 1)]
        if inside:
            if all(ended) and last[0][1] == last[1][1]:
                inside, counts[0] = False, counts[0] + 1
            elif ended[0] != ended[1] or now[0][1] != now[1][1]:
                inside = False
        inside = inside or (all(begun) and now[0][1] == now[1][1])
        counts[2], counts[1] = counts[2] + begun[0], counts[1] + begun[1]
        last = now  # type: ignore[assignment]
    return counts[0], counts[1], counts[2]


def test_random_tags_are_counted_as_by_conlleval() -> None:
    chance = random.Random(3)
    for letters in ("BI", "IE", "BIE"):
        tags = ["O", "O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
        for _ in range(300):
            references, outputs = (chance.choices(tags, k=9) for _ in range(2))
            if letters == "BIE" and any(
                one[0] == "E" and other[0] == "B"
                for row in (references, outputs)
                for one, other in itertools.pairwise(row)
            ):
                continue  # no scheme of conlleval has E and B; there E-X B-X is one name
            row = by_type([outputs], [references])[0]
            want = conlleval(references, outputs)
            assert (round(row.recall * row.there), row.predicted, row.there) == want
