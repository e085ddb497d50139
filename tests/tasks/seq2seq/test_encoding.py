"""Pairs as tokens and batches: what is read and lent, what masks say, and how pairs change in training alone.

That a training resumes bit-identically is tested in tests/tasks/test_every_task.py, whose translator has all.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import toys
from tests.commands.corpus import make, translated
from weft.config import read_recipe
from weft.errors import ConfigError
from weft.nn.randomness import drawing
from weft.run.training import check_recipe
from weft.tasks.seq2seq.base import PairPipeline, PairTraining
from weft.tasks.seq2seq.batch_search import SourceReader, pad
from weft.tasks.seq2seq.encoding import PairBatch, collate_pairs, encode_pairs
from weft.tasks.task import training_of
from weft.text.vocabulary import UNK, Vocabulary

LINES = ["the cat sat on the mat .", "the dog saw the cat ."]


def vocabulary(kind: str = "word", **how: object) -> Vocabulary:
    return Vocabulary.train(LINES, kind=kind, size=None, **how)


def test_unknown_words_get_numbers_behind_the_vocabulary_in_the_order_in_which_they_come() -> None:
    words = vocabulary()
    size = len(words)
    reader = SourceReader(words, cut=None, copies=True)
    text = "the  zebra saw Ibsen , the zebra sat"
    assert reader.copyable(text) == [" zebra", " Ibsen", " ,"]
    plain = words.encode(text)
    assert plain.count(UNK) == 4
    named = iter([size, size + 1, size + 2, size])
    assert reader.encode(text) == [number if number != UNK else next(named) for number in plain]
    beside = words.extended(reader.copyable(text))
    assert beside.decode([size + 1, size, *words.encode("sat")]) == "Ibsen zebra sat"
    assert beside.pieces([size]) == ["▁zebra"] and len(beside) == size + 3
    assert len(words) == size and words.encode(text) == plain  # the vocabulary itself is what it was


def test_targets_are_spelled_with_the_words_of_their_own_source_alone() -> None:
    words = vocabulary()
    size = len(words)
    reader = SourceReader(words, cut=None, copies=True)
    sources, targets = ["the zebra sat", "Ibsen saw"], ["zebra Ibsen", "zebra Ibsen cat"]
    pairs = encode_pairs(reader, words, sources, targets)
    assert pairs.target == [[size, UNK], [UNK, size, *words.encode("cat")]]
    plain = encode_pairs(SourceReader(words, cut=None, copies=False), words, sources, targets)
    assert plain.target == [[UNK, UNK], [UNK, UNK, *words.encode("cat")]]
    assert encode_pairs(words, words, sources, targets) == plain


@pytest.mark.parametrize("copies", [False, True])
def test_a_cut_source_lends_only_what_is_read(copies: bool) -> None:
    words = vocabulary()
    reader = SourceReader(words, cut=3, copies=copies)
    texts = ["zebra sat on Ibsen", "Ibsen", "the cat sat"]
    assert [len(row) for row in reader.encode_batch(texts)] == [3, 1, 3]
    assert reader.num_cut(texts) == 1
    assert list(reader.copyable(texts[0])) == ([" zebra"] if copies else [])
    pairs = encode_pairs(reader, words, texts[:1], ["Ibsen zebra"])
    assert pairs.target == [[UNK, len(words) if copies else UNK]]
    assert reader.extended(reader.copyable(texts[0])).encode(texts[0]) == reader.encode(texts[0])


def test_unknown_characters_are_lent_too() -> None:
    letters = Vocabulary.train(["aab ba"], kind="character", size=None)
    reader = SourceReader(letters, cut=None, copies=True)
    assert reader.copyable("ac a!c") == ["c", "!"]
    beside = letters.extended(["c", "!"])
    assert beside.decode(reader.encode("ac a!c")) == "ac a!c"


def test_a_batch_has_what_the_model_reads_and_writes() -> None:
    batch = collate_pairs([[7, 8, 9], [5]], [np.array([6]), np.array([4, 5])])
    assert batch.source.tolist() == [[7, 8, 9], [5, 0, 0]]
    assert batch.source_mask.tolist() == [[True] * 3, [True, False, False]]
    assert batch.target_in.tolist() == [[2, 6, 0], [2, 4, 5]]
    assert batch.target_out.tolist() == [[6, 3, 0], [4, 5, 3]]
    assert batch.target_mask.tolist() == [[True, True, False], [True] * 3]
    assert batch.target_tokens == 5
    assert batch.to(torch.device("cpu")).target_tokens == 5


def test_an_empty_row_keeps_one_real_position() -> None:
    tokens, mask = pad([[], [7, 8]])
    assert (tokens.tolist(), mask.tolist()) == ([[0, 0], [7, 8]], [[True, False], [True, True]])
    assert pad([[]])[1].tolist() == [[True]]


@pytest.mark.parametrize("width", [2, 5])
def test_a_wider_batch_has_more_padding_only(width: int) -> None:
    tokens, mask = pad([[7, 8], [9]], width)
    assert tokens.shape == mask.shape == (2, width)
    assert tokens.tolist() == [[7, 8, *[0] * (width - 2)], [9, *[0] * (width - 1)]]
    assert mask.sum(1).tolist() == [2, 1]


ALL = "data.augment={concatenate: 0.5, drop_words: 0.2, swap_words: 0.2, typos: 0.2}"


def prepared(folder: Path, *changes: str) -> tuple[PairPipeline, PairTraining]:
    task = check_recipe(read_recipe(make(folder), changes)).task
    (folder / "run").mkdir(exist_ok=True)
    pipeline = task.prepare(folder / "run", lambda *told: None)
    training = training_of(pipeline)
    assert isinstance(pipeline, PairPipeline) and isinstance(training, PairTraining)
    return pipeline, training


def batch(training: PairTraining, seed: int | None, numbers: np.ndarray) -> PairBatch:
    with drawing(None if seed is None else torch.Generator().manual_seed(seed)):
        return training.collate(numbers)


def texts(pipeline: PairPipeline, found: PairBatch) -> list[tuple[str, str]]:
    sources = [pipeline.source.decode(row) for row in found.source]
    return list(zip(sources, (pipeline.target.decode(row) for row in found.target_out), strict=True))


def test_joined_pairs_are_those_of_the_batch_each_once(tmp_path: Path) -> None:
    pipeline, training = prepared(tmp_path, "data.augment.concatenate=0.5")
    turns = Counter[bool]()
    for seed in range(60):
        numbers = np.random.default_rng(seed).choice(397, 2 + seed % 7, replace=False)
        plain, found = batch(training, None, numbers), batch(training, seed, numbers)
        turns[found.joined] += 1
        rows = texts(pipeline, found)
        assert len(rows) == (-(-len(numbers) // 2) if found.joined else len(numbers))
        assert all(translated(source) == target for source, target in rows)
        # The same words as in the batch as it is, and pairs in their order.
        alone = texts(pipeline, plain)
        assert sum((Counter(source.split()) for source, _ in rows), Counter()) == sum(
            (Counter(source.split()) for source, _ in alone), Counter()
        )
        assert all(any(source.startswith(one) for one, _ in alone) for source, _ in rows)
        assert found.target_tokens == plain.target_tokens - (len(numbers) - len(rows))
    assert turns[True] > 18 and turns[False] > 18


def test_pairs_that_would_be_too_long_stay_alone(tmp_path: Path) -> None:
    pipeline, training = prepared(tmp_path, "data.augment.concatenate=0.99", "data.max_length=6")
    numbers = np.arange(40)
    rows = texts(pipeline, batch(training, 1, numbers))
    assert max(len(source.split()) for source, _ in rows) == 6
    assert Counter(" ".join(s for s, _ in rows).split()) == Counter(
        " ".join(s for s, _ in texts(pipeline, batch(training, None, numbers))).split()
    )


def test_a_joined_batch_is_not_cut_into_rows_as_if_they_were_pairs(tmp_path: Path) -> None:
    _, training = prepared(tmp_path, "data.augment.concatenate=0.99")
    joined, plain = batch(training, 1, np.arange(6)), batch(training, None, np.arange(6))
    assert joined.joined and joined.rows(slice(0, 3)) is None and joined.to(torch.device("cpu")).joined
    part = plain.rows(slice(0, 3))
    assert part is not None and len(part.source) == 3


def test_mistakes_are_in_sources_alone(tmp_path: Path) -> None:
    pipeline, training = prepared(tmp_path, "data.augment={drop_words: 0.3, swap_words: 0.3, typos: 0.2}")
    numbers = np.arange(50)
    plain, found = (texts(pipeline, batch(training, epoch, numbers)) for epoch in (None, 4))
    assert [target for _, target in found] == [target for _, target in plain]
    changed = sum(a != b for (a, _), (b, _) in zip(found, plain, strict=True))
    assert 15 < changed < 50


def test_the_same_numbers_draw_the_same_and_others_draw_others(tmp_path: Path) -> None:
    _, training = prepared(tmp_path, ALL)
    numbers = np.arange(30)
    first, again, other = (batch(training, seed, numbers).source for seed in (3, 3, 8))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_validation_and_use_read_texts_as_they_are(tmp_path: Path) -> None:
    changed, plain = prepared(tmp_path, ALL), prepared(tmp_path)
    models = []
    for pipeline, _ in (changed, plain):
        torch.manual_seed(1)
        models.append(pipeline.model().eval())
    with torch.no_grad(), drawing(torch.Generator().manual_seed(1)):
        found = [one.validate(model) for (_, one), model in zip((changed, plain), models, strict=True)]
        lines = [f"{' '.join(['alpha', 'beta'] * n)} gamma" for n in range(5)]
        said = [
            [answer.text() for answer in pipeline.predictor(model).answers(lines)]
            for (pipeline, _), model in zip((changed, plain), models, strict=True)
        ]
    assert found[0].scores == found[1].scores
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["data.augment.typos=1"], "typos=1: expected a number from 0 to below 1, got 1"),
        (["data.augment.concatenate=-0.1"], "concatenate=-0.1: expected a number"),
        (["data.augment.concatenate=.1", "data.batch_rows=1"], "leaves no pairs to join"),
        (["data.augment.typo=0.1"], "typos"),
        (
            ["data.augment.typos=.1", "data.vocabulary.shared=true", "model.decoder={use: pointer}"],
            "a pointer copies source words",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, changes: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_recipe(read_recipe(make(tmp_path), changes))


def test_many_languages_join_pairs_of_one_target_behind_one_symbol(tmp_path: Path) -> None:
    recipe = toys.many(tmp_path / "many")
    with pytest.raises(ConfigError, match="augment: would change the words of the prompt"):
        check_recipe(read_recipe(recipe, ["data.augment.typos=0.1", "data.prompt='to {target}: {text}'"]))
    task = check_recipe(
        read_recipe(recipe, ["data.augment={concatenate: 0.9, drop_words: 0.1, swap_words: 0.1}"])
    ).task
    (tmp_path / "run").mkdir()
    pipeline = task.prepare(tmp_path / "run", lambda *told: None)
    training, size = training_of(pipeline), len(pipeline.source)  # type: ignore[attr-defined]
    language = {word: name for name, words in toys.NUMBERS.items() for word in words}
    joined = 0
    for seed in range(20):
        numbers = np.random.default_rng(seed).choice(1600, 9, replace=False)
        with drawing(torch.Generator().manual_seed(seed)):
            found = training.collate(numbers)
        plain = training.collate(numbers)
        assert sorted(set(plain.source[:, 0].tolist())) == sorted(set(found.source[:, 0].tolist()))
        joined += found.joined
        for source, target in zip(found.source, found.target_out, strict=True):
            first, *rest = source.tolist()
            assert first >= size and max(rest) < size  # the symbol is in front, and nowhere else
            wanted = task.data.targets[first - size]  # type: ignore[attr-defined]
            words = pipeline.source.decode(target.tolist()).split()  # type: ignore[attr-defined]
            assert {language[word] for word in words} == {wanted}
    assert joined > 12


def test_summaries_are_not_joined_but_their_texts_may_have_mistakes(tmp_path: Path) -> None:
    recipe = toys.digests(tmp_path / "digests")
    with pytest.raises(ConfigError, match="two joined summaries"):
        check_recipe(read_recipe(recipe, ["data.augment.concatenate=0.1"]))
    assert check_recipe(read_recipe(recipe, ["data.augment.typos=0.1"])).task.rehearse().count > 0
