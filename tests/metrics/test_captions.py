"""Scores of captions against manual calculations, sacrebleu and the published formulas."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import sacrebleu

from weft.errors import DataError
from weft.metrics.captions import CaptionWords, bleu_n, cider_d
from weft.metrics.rouge_n import Rouge, rouge_l

HYPOTHESES = [
    "a dog runs on the green grass",
    "two people ride a red bike down the road",
    "a cat sleeps on a mat in the sun",
    "a man",
]
REFERENCES = [
    ["a brown dog runs on the green grass today", "the dog is running on grass"],
    ["two people ride bikes down the road", "a couple ride a red bike down the street", "two riders"],
    ["a cat sleeps on a mat in the sun"],
    ["a man stands at the corner of a street", "one man waits"],
]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_bleu_n_is_sacrebleus_without_smoothing(order):
    count = max(map(len, REFERENCES))
    by_stream = [[answers[min(n, len(answers) - 1)] for answers in REFERENCES] for n in range(count)]
    judge = sacrebleu.BLEU(max_ngram_order=order, smooth_method="none", tokenize="none")
    expected = judge.corpus_score(HYPOTHESES, by_stream).score
    assert bleu_n(HYPOTHESES, REFERENCES)[order - 1].value == pytest.approx(expected, abs=1e-9)


def test_counts_are_clipped_and_the_nearest_length_is_taken():
    # Papineni et al. 2002, example 2: seven times "the" matches twice; p_1 = 2/7, lengths are equal
    found = bleu_n(
        ["the the the the the the the"], [["The cat is on the mat.", "There is a cat on the mat."]]
    )
    assert found[0].value == pytest.approx(100 * 2 / 7, abs=1e-9)
    assert [one.value for one in found[1:]] == [0, 0, 0]


def test_rouge_l_is_lins_example():
    # Lin 2004, section 3.1: S1 police killed the gunman, S2 3/4, S3 2/4 ("the gunman" alone)
    reference = [["police killed the gunman"]]
    assert rouge_l(["police kill the gunman"], reference, beta=1).value == pytest.approx(75)
    assert rouge_l(["the gunman kill police"], reference, beta=1).value == pytest.approx(50)


def test_rouge_l_takes_the_best_precision_and_the_best_recall():
    # common words 2 with both: P = 2/4, R = max(2/8, 2/2); F = 2.44 P R / (R + 1.44 P)
    found = rouge_l(["a b x y"], [["a b c d e f g h", "a b"]])
    assert found.value == pytest.approx(100 * 2.44 * 0.5 * 1 / (1 + 1.44 * 0.5), abs=1e-9)


def test_cider_d_is_the_formula_of_the_paper():
    """Vedantam et al. 2015, as computed by the authors' program, with dense vectors."""

    def grams(text, n):
        cut = text.split()
        return Counter(tuple(cut[at : at + n]) for at in range(len(cut) - n + 1))

    expected = []
    for hypothesis, answers in zip(HYPOTHESES, REFERENCES, strict=True):
        total = 0.0
        for n in range(1, 5):
            every = sorted(
                {g for all_ in REFERENCES for one in all_ for g in grams(one, n)} | set(grams(hypothesis, n))
            )
            idf = np.array(
                [
                    math.log(
                        len(REFERENCES) / max(1, sum(any(g in grams(r, n) for r in rs) for rs in REFERENCES))
                    )
                    for g in every
                ]
            )
            ours = np.array([grams(hypothesis, n)[g] for g in every]) * idf
            for answer in answers:
                theirs = np.array([grams(answer, n)[g] for g in every]) * idf
                norm = np.linalg.norm(ours) * np.linalg.norm(theirs)
                near = np.minimum(ours, theirs) @ theirs / norm if norm else 0.0
                apart = len(hypothesis.split()) - len(answer.split())
                total += near * math.exp(-(apart**2) / 72) / len(answers)
        expected.append(10 * total / 4)
    assert cider_d(HYPOTHESES, REFERENCES).value == pytest.approx(np.mean(expected), abs=1e-9)


def test_a_caption_of_its_own_words_has_ten_and_an_empty_one_nothing():
    # the first two share no n-gram with others, and have four words or more
    references = [["one two three four five"], ["six seven eight nine"]]
    assert cider_d([one[0] for one in references], references).value == pytest.approx(10)
    assert cider_d(["", ""], references).value == 0
    assert rouge_l(["", ""], references).value == 0
    assert [one.value for one in bleu_n(["", ""], references)] == [0, 0, 0, 0]


def test_words_are_small_and_without_signs():
    assert CaptionWords(spaced=True).cut("Woman Firefighter: medium-dark skin tone!") == [
        "woman",
        "firefighter",
        "medium-dark",
        "skin",
        "tone",
    ]


@pytest.mark.parametrize("score", [bleu_n, rouge_l, cider_d])
def test_captions_and_their_lists_of_references_are_checked(score):
    for captions, references, said in (
        ("a dog", [["a dog"]], "hypotheses: expected a list of texts, got one text"),
        (["a dog"], ["a dog"], "references: expected a list of one or more texts.* got a text at 0"),
        (["a dog", "a cat"], [["a dog"], []], "references: expected a list of one or more.* at 1"),
        ([["a dog"]], [["a dog"]], "hypotheses: expected a text for each item, got a list at 0"),
        (["a dog", None], [["a dog"], ["a cat"]], "hypotheses: expected .* got None at 1"),
        (["a dog"], [["a dog", None]], "references: expected .* got a list at 0"),
        (["a dog"], [["a dog"], ["a cat"]], "got 1 hypothesis and 2 references"),
    ):
        with pytest.raises(DataError, match=said):
            score(captions, references)


SAID = "The cat, the cat sat!"
KNOWN = "the cat sat on the mat"


@pytest.mark.parametrize(
    ("kind", "common", "ours", "theirs"),
    [("1", 4, 5, 6), ("2", 2, 4, 5), ("L", 3, 5, 6)],  # the cat the sat; the-cat cat-sat; the cat sat
)
def test_rouge_by_hand(kind: str, common: int, ours: int, theirs: int) -> None:
    score = Rouge(kind=kind).score([SAID], [KNOWN])
    assert score.value == pytest.approx(100 * 2 * common / (ours + theirs))
    assert f"kind:{kind}" in score.signature and score.size == 1


def test_the_longest_common_subsequence_is_the_longest_of_all() -> None:
    def subsequences(words: tuple[str, ...]) -> set[tuple[str, ...]]:
        keeps = itertools.product((False, True), repeat=len(words))
        return {tuple(itertools.compress(words, keep)) for keep in keeps}

    texts = [text for length in (1, 3) for text in itertools.product("ab", repeat=length)]
    for said, known in itertools.product(texts, texts):
        longest = max(map(len, subsequences(said) & subsequences(known)))
        want = 100 * 2 * longest / (len(said) + len(known))
        assert Rouge(kind="L").score([" ".join(said)], [" ".join(known)]).value == pytest.approx(want)


def test_an_output_without_words_scores_nothing() -> None:
    assert Rouge(kind="2").score(["", "..."], ["one word", "two"]).value == 0
