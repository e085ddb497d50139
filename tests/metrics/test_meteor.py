"""METEOR against nltk where nltk follows the paper, and against enumeration elsewhere."""

import itertools
import random
from collections import Counter

import pytest

from weft.errors import ConfigError
from weft.metrics.meteor import Meteor, align, chunks


class NoSynonyms:
    def synsets(self, word):
        return []


class NoStemmer:
    def stem(self, word):
        return word


def balanced_pair(seed: int) -> tuple[list[str], list[str]]:
    """Words whose stems occur equally often on both sides, or on one side only: the alignment is unique."""
    generator = random.Random(seed)
    shared = generator.choices(["cat", "walked", "dog", "ran", "mat", "sat"], k=generator.randint(0, 7))
    ours = shared + generator.sample(["red", "green", "seven"], generator.randint(0, 3))
    theirs = shared + generator.sample(["blue", "eight", "nine"], generator.randint(0, 3))
    generator.shuffle(ours)
    generator.shuffle(theirs)
    return ours or ["x"], theirs or ["y"]


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.81, "beta": 0.83, "gamma": 0.28}])
def test_exact_stage_equals_nltk(settings):
    from nltk.translate.meteor_score import single_meteor_score

    for seed in range(200):
        ours, theirs = balanced_pair(seed)
        want = single_meteor_score(theirs, ours, stemmer=NoStemmer(), wordnet=NoSynonyms(), **settings)
        got = Meteor(**settings).score([" ".join(ours)], [" ".join(theirs)]).value
        assert got == pytest.approx(want, abs=1e-10)


def test_stem_stage_equals_nltk_with_its_porter_stemmer():
    from nltk.stem.porter import PorterStemmer
    from nltk.translate.meteor_score import single_meteor_score

    endings = {"walked": "walking", "cat": "cats", "ran": "run"}
    for seed in range(200):
        generator = random.Random(seed)
        ours, theirs = balanced_pair(seed)
        # all occurrences of a word or none, so that the exact stage leaves no extra words to the stem stage
        changed = {word for word in endings if generator.random() < 0.5}
        ours = [endings[word] if word in changed else word for word in ours]
        want = single_meteor_score(theirs, ours, stemmer=PorterStemmer(), wordnet=NoSynonyms())
        got = Meteor(stem="porter").score([" ".join(ours)], [" ".join(theirs)]).value
        assert got == pytest.approx(want, abs=1e-10)


def test_hand_computed_value_of_the_paper_s_example():
    # 6 of 7 words match, in the chunks "the president", "then spoke to the audience": see the paper, 2.2
    score = Meteor().score(
        ["the president spoke to the audience"], ["the president then spoke to the audience"]
    )
    precision, recall = 6 / 6, 6 / 7
    f_mean = 10 * precision * recall / (recall + 9 * precision)
    assert score.value == pytest.approx(f_mean * (1 - 0.5 * (2 / 6) ** 3), abs=1e-10)


def every_alignment(ours, theirs):
    """All one-to-one alignments of equal words that have as many links as possible."""
    size = sum((Counter(ours) & Counter(theirs)).values())
    for left in itertools.combinations(range(len(ours)), size):
        for right in itertools.permutations(range(len(theirs)), size):
            if all(ours[i] == theirs[j] for i, j in zip(left, right, strict=True)):
                yield dict(zip(left, right, strict=True))


def crossings(links):
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in itertools.combinations(links.items(), 2))


def test_alignment_has_the_fewest_crossings_then_chunks_of_all_alignments():
    generator = random.Random(3)
    for _ in range(150):
        ours = generator.choices("abc", k=generator.randint(1, 5))
        theirs = generator.choices("abc", k=generator.randint(1, 5))
        best = min((crossings(links), chunks(links)) for links in every_alignment(ours, theirs))
        found = align(ours, theirs, {})
        assert (crossings(found), chunks(found)) == best, (ours, theirs)
        assert len(found) == sum((Counter(ours) & Counter(theirs)).values())
        assert all(ours[i] == theirs[j] for i, j in found.items())


def test_a_later_stage_keeps_the_links_of_an_earlier_one():
    links = align(["b", "x", "x"], ["x", "b", "x"], {0: 1})
    assert links[0] == 1
    assert sorted(links.values()) == [0, 1, 2]


def test_corpus_value_sums_counts_and_is_no_mean_of_sentences():
    # m=1, h=r=1, one chunk; then m=1, h=3, r=1: P = 2/4, R = 2/2, F = .5/(.45+.1), chunks/m = 1
    score = Meteor().score(["cat", "cat red green"], ["cat", "cat"])
    assert score.value == pytest.approx(0.5 / (0.9 * 0.5 + 0.1) * 0.5, abs=1e-10)


def test_signature_says_which_stages_ran_and_that_synonyms_did_not():
    assert "stages:exact|synonyms:no" in Meteor().signature()
    assert "stages:exact+german stem|synonyms:no" in Meteor(stem="german").signature()


def test_a_long_repetitive_output_is_scored_in_reasonable_time():
    score = Meteor().score(["the a " * 200], ["a the the " * 100])
    assert 0 < score.value < 1


def test_an_unknown_stemmer_is_refused():
    with pytest.raises(ConfigError, match="stem is 'klingon'; choose none or one of porter, danish"):
        Meteor(stem="klingon")


def test_without_nltk_the_stem_stage_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nltk.stem.porter", None)
    with pytest.raises(ConfigError, match="pip install nltk"):
        Meteor(stem="porter")


def test_the_mean_of_sentences_is_another_number_than_the_corpus() -> None:
    ours, theirs = ["the cat sat on the mat", "no", "a b"], ["the cat sat on a mat", "yes", "b a c"]
    each = [Meteor().score([one], [other]).value for one, other in zip(ours, theirs, strict=True)]
    found, corpus = Meteor(average="sentences").score(ours, theirs), Meteor().score(ours, theirs)
    assert found.value == pytest.approx(sum(each) / 3) and abs(found.value - corpus.value) > 0.05
    assert "average:sentences" in found.signature and "average:corpus" in corpus.signature
    with pytest.raises(ConfigError, match="average"):
        Meteor(average="words")
