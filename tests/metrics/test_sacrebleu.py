"""BLEU and chrF equal sacrebleu's value and signature, and so do resamples and p-values."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from weft.errors import ConfigError
from weft.metrics.bleu import MECAB, TOKENIZERS, Bleu, Chrf, SentenceBleu
from weft.metrics.intervals import compare, values_of


def pairs_of_metrics():
    for tokenize in [name for name in TOKENIZERS if name not in ("auto", *MECAB)]:
        for lowercase in (False, True):
            yield (
                f"bleu-{tokenize}-{lowercase}",
                Bleu(tokenize=tokenize, lowercase=lowercase),
                sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True),
            )
    for order in (0, 2):
        for lowercase in (False, True):
            yield (
                f"chrf-{order}-{lowercase}",
                Chrf(word_order=order, lowercase=lowercase),
                sacrebleu.CHRF(word_order=order, lowercase=lowercase),
            )


CASES = {name: (ours, theirs) for name, ours, theirs in pairs_of_metrics()}
each = pytest.mark.parametrize(("ours", "theirs"), CASES.values(), ids=CASES)


@each
def test_value_and_signature_are_sacrebleus(ours, theirs, good, references):
    score = ours.score(good, references)
    assert score.value == pytest.approx(theirs.corpus_score(good, [references]).score, abs=1e-10)
    assert score.signature == str(theirs.get_signature())


@each
@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ("", "the cat"),
        ("the", "the"),
        ("the cat sat", "the cat sat"),
        ("the cat sat on", "the cat sat on"),
        ("dog", "cat sat"),
        ("a b c d e f g", "a x c y e z g"),
        ("a b x d e f", "a b c d e f"),
        ("the cat sat on the mat with a dog", "the mat"),
    ],
)
def test_single_sentences_with_missing_orders_agree(ours, theirs, hypothesis, reference):
    want = theirs.corpus_score([hypothesis], [[reference]]).score
    assert ours.score([hypothesis], [reference]).value == pytest.approx(want, abs=1e-10)


@each
def test_one_sentence_after_another_agrees(ours, theirs, good, references):
    values = ours.value(ours.statistics(good[:41], references[:41]))
    want = [theirs.corpus_score([a], [[b]]).score for a, b in zip(good[:41], references[:41], strict=True)]
    np.testing.assert_allclose(values, want, atol=1e-10)


@pytest.mark.parametrize(("ours", "theirs"), [(Bleu(), sacrebleu.BLEU()), (Chrf(), sacrebleu.CHRF())])
def test_resamples_are_sacrebleus(ours, theirs, good, references, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    want = theirs.corpus_score(good, [references], n_bootstrap=200)
    drawn = np.sort(values_of(ours, [ours.rows(good, references)], 200, 12345)[0])
    assert (drawn[-6] - drawn[5]) / 2 == pytest.approx(want._ci, abs=1e-4)  # sacrebleu resamples in float32


@pytest.mark.parametrize(("ours", "theirs"), [(Bleu(), sacrebleu.BLEU()), (Chrf(), sacrebleu.CHRF())])
def test_p_value_of_a_pair_is_that_of_sacrebleus_randomisation(ours, theirs, good, references, damaged):
    second = damaged(references, seed=9, rate=0.31)  # only slightly worse: a p-value between 0 and 1
    systems = [("first", good), ("second", second)]
    _, table = PairedTest(systems, {"metric": theirs}, [references], "ar", n_samples=3000)()
    (name,) = set(table) - {"System"}
    got = compare(ours, good, second, references, resamples=3000)
    assert got.p_value == pytest.approx(table[name][1].p_value, abs=0.04)  # both draw at random
    assert 0.01 < got.p_value < 0.95
    assert got.difference == pytest.approx(table[name][1].score - table[name][0].score, abs=1e-9)


def test_a_tokeniser_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(ConfigError, match=r"tokenize: expected one of auto, 13a, intl.*got '13b'"):
        Bleu(tokenize="13b")


@pytest.mark.parametrize("lowercase", [False, True])
def test_sentence_bleu_is_sacrebleus_add_one(good, references, lowercase):
    theirs = sacrebleu.BLEU(
        smooth_method="add-k", smooth_value=1, lowercase=lowercase, force=True, effective_order=False
    )
    lines = [*zip(good, references, strict=True), ("", "the cat"), ("The cat", "the cat sat"), ("a", "b")]
    wanted = [theirs.sentence_score(one, [other]).score for one, other in lines]
    found = SentenceBleu(lowercase=lowercase).statistics(*zip(*lines, strict=True))[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
    assert SentenceBleu().score(["x"], ["x"]).value == 100.0
