"""A linear CRF over features of words: what it reads, its minimum, and the run that it makes."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.commands.labelled import LINEAR, make_sentences
from tests.commands.shell import refused, weft
from tests.tasks.every import KINDS
from weft.config import read_recipe
from weft.errors import ConfigError
from weft.models import Labeller
from weft.run import open_run
from weft.run.training import check_recipe
from weft.tasks.labels.solver import Design, solve
from weft.tasks.tag.features import TagFeatures, WordFeatures
from weft.tasks.tag.task import Spelling, TagModel

SENTENCES = [["It"], ["Sit", "down"], ["The", "cat", "sat"], ["A", "dog", "sat", "down", "."]]
TAGS = [[1], [2, 2], [0, 1, 2], [0, 1, 2, 2, 0]]  # every tag begins and ends a sentence


def model_of(features: WordFeatures) -> Any:
    return TagModel(features=features.how).build(0, 0, 3, num_features=features.num_rows)


def read(features: WordFeatures) -> Design:
    numbers = [row for one in SENTENCES for row in features.numbers(one)]
    lengths = [len(one) for one in SENTENCES]
    return Design.of_words(numbers, lengths, torch.tensor([*chain(*TAGS)]), features.num_rows)


def test_neighbours_edges_and_the_first_word_are_features_in_any_script() -> None:
    features = WordFeatures.learn(TagFeatures(), [["Écoute", "日本", "3.5"]])
    first, second, _ = (
        {features.kept[n - 1] for n in row} for row in features.numbers(["Écoute", "日本", "x"])
    )
    assert {"word=écoute", "shape=Xx", "ends=oute", "begins=éc", "-1 nothing", "+1 word=日本"} <= first
    assert "first shape=Xx" in first
    assert {"word=日本", "shape=o", "-1 word=écoute", "-1 ends=te"} <= second
    assert "first shape=o" not in second and not any(name.startswith("+1") for name in second)
    decomposed = features.numbers(["E\u0301coute", "日本", "3.5"])
    assert decomposed == features.numbers(["Écoute", "日本", "3.5"])


def test_the_model_adds_the_weights_of_a_words_features() -> None:
    features = WordFeatures.learn(TagFeatures(window=2), SENTENCES)
    model = model_of(features)
    with torch.no_grad():
        model.embed.weight.normal_(generator=torch.Generator().manual_seed(1))
    numbers, mask = features.read(SENTENCES)
    h, _ = model.features(numbers, mask)
    for row, sentence in enumerate(SENTENCES):
        for place, known in enumerate(features.numbers(sentence)):
            assert torch.allclose(h[row, place], model.embed.weight[known].sum(0), atol=1e-5)


@pytest.mark.parametrize("penalty", [0.2, 2.0])
def test_it_stands_at_the_minimum_of_the_loss_and_the_penalty(penalty: float) -> None:
    features = WordFeatures.learn(TagFeatures(), SENTENCES)
    model = model_of(features)
    design = read(features)
    solve(model, design, design, penalty)
    numbers, mask = features.read(SENTENCES)
    target = torch.zeros(mask.shape, dtype=torch.int64)
    for row, tags in enumerate(TAGS):
        target[row, : len(tags)] = torch.tensor(tags)
    model.double()
    learnt = [one for one in model.parameters() if one.requires_grad]
    assert len(learnt) == 4  # of features, transitions, beginnings and ends
    h, mask = model.features(numbers, mask)
    total = model.head.loss(h, target, mask).total
    total = total + penalty / 2 * sum(one.square().sum() for one in learnt)
    for slope in torch.autograd.grad(total, learnt):
        assert slope.abs().max() < 11 * 1e-4


def test_it_equals_crfsuite(tmp_path: Path) -> None:
    crfsuite = pytest.importorskip("pycrfsuite")
    features = WordFeatures.learn(TagFeatures(), SENTENCES)
    trainer = crfsuite.Trainer(verbose=False)
    names = {"c1": 0.0, "c2": 0.15, "epsilon": 1e-9, "max_iterations": 5000}
    trainer.set_params({**names, "feature.possible_states": True, "feature.possible_transitions": True})
    for sentence, tags in zip(SENTENCES, TAGS, strict=True):
        rows = [[f"f{n}" for n in row] for row in features.numbers(sentence)]
        rows[0].append("begin")
        rows[-1].append("end")
        trainer.append(rows, [str(tag) for tag in tags])
    trainer.train(str(tmp_path / "model"))
    tagger = crfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    model = model_of(features)
    design = read(features)
    solve(model, design, design, 0.3)  # twice c2
    for sentence in SENTENCES:
        rows = [[f"f{n}" for n in row] for row in features.numbers(sentence)]
        rows[0].append("begin")
        rows[-1].append("end")
        tagger.set(rows)
        theirs = [[tagger.marginal(str(tag), at) for tag in range(3)] for at in range(len(rows))]
        h, mask = model.features(*features.read([sentence]))
        assert np.abs(model.head.marginals(h, mask)[0].exp().detach().numpy() - theirs).max() < 1e-3


def test_a_run_tags_and_shows_its_telling_features(tmp_path: Path) -> None:
    run = tmp_path / "run"
    weft("train", make_sentences(tmp_path / "toy"), "--run", run, *LINEAR, code=0)
    found = weft("predict", run, "--scores", stdin=b"bobing ningo .\n").out.splitlines()
    assert [line.split("\t")[1] for line in found[:3]] == ["VERB", "NOUN", "PUNCT"]
    views = "--views", tmp_path, "--format", "csv"
    seen = weft("inspect", run, "ningo .", "--only", "telling-features", *views)
    rows = (tmp_path / "telling-features.csv").read_text().splitlines()
    assert seen.code == 0 and rows[0] == "label,feature,weight"
    assert any(row.startswith("VERB,ends=ing,") for row in rows)


@pytest.mark.parametrize("other", [{"smoothing": 0.1}, {"class_weights": "balanced"}])
def test_settings_that_a_crf_does_not_know_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="with a CRF"):
        TagModel(features=TagFeatures(), **other)  # type: ignore[arg-type]


def test_a_network_beside_it_learns_alone_and_their_scores_are_added(tmp_path: Path) -> None:
    recipe, run, other = make_sentences(tmp_path / "toy"), tmp_path / "run", tmp_path / "other"
    changes = (
        "model.features={affixes: 3, alone: false, size: 7}",
        "training.max_updates=5",
        "training.refit=true",
    )
    weft("train", recipe, "--run", run, *changes, code=0)
    weft("train", recipe, "--run", other, LINEAR[0], *changes[1:], code=0)
    opened, linear = open_run(run, device="cpu"), open_run(other, device="cpu")
    model, head = opened.model, opened.model.head
    assert model.table.weight.equal(linear.model.embed.weight)  # what training left alone
    source, mask = opened.pipeline.lexicon.read([["bobing", "ningo", "."], ["."]])
    target = torch.tensor([[2, 0, 1], [1, 0, 0]])
    h, _ = model.features(source, mask)
    network = Labeller(model.embed, model.encoder, head.own)
    scores = head.own.emit(network.features(source, mask)[0]) + model.table(source.numbers)
    crf, added = head.both(h)
    assert torch.allclose(scores, added) and head.best(h, mask).equal(crf.best(scores, mask))
    assert torch.allclose(crf.transitions, head.linear.transitions + head.own.transitions)
    assert head.loss(h, target, mask).total.equal(crf.loss(added, target, mask).total)
    model.train()
    own = head.own.loss(h[..., : head.own.in_size], target, mask).total
    assert head.loss(h, target, mask).total.equal(own)
    assert not any(one.requires_grad for one in (model.table.weight, *head.linear.parameters()))
    rows = opened.pipeline.rows()
    assert len(rows["table.weight"]) == len(model.table.weight)
    assert len(rows["embed.words.table.weight"]) == len(model.embed.words.table.weight)
    known = opened.pipeline.features.numbers(["bobing", "ningo", "."])[0]
    read = model.eval().embed(source)[0, 0, -7:]
    assert torch.allclose(read, model.embed.table.weight[known].sum(0), atol=1e-6)
    export = "export", run, "--to", "onnx", "--output", tmp_path / "out"
    assert "model.features: an exported program" in refused(weft(*export))
    made = "inspect", run, "ningo .", "--only", "telling-features", "--views", tmp_path, "--format", "csv"
    assert weft(*made, code=0) and "VERB,ends=ing," in (tmp_path / "telling-features.csv").read_text()


def test_vectors_and_pieces_have_no_place_beside_features() -> None:
    for name, value in (("contextual", Path("run")), ("pieces", "both")):
        with pytest.raises(ConfigError, match=f"embedding.{name}: cannot be combined with features"):
            TagModel(features=TagFeatures(alone=False), embedding=Spelling(**{name: value}))


def test_what_was_held_out_is_given_back_with_the_penalty_that_it_chose(tmp_path: Path) -> None:
    recipe = make_sentences(tmp_path / "toy")
    answer = weft("train", recipe, "--run", tmp_path / "run", *LINEAR, "training.refit=true")
    said = [line.split("penalty ")[1] for line in answer.err.splitlines() if "is solved" in line]
    assert answer.code == 0 and len(said) == 2 and said[0].startswith(said[1]), answer.err


def test_the_recipe_that_init_writes_needs_no_end(tmp_path: Path) -> None:
    KINDS["tag"].make(tmp_path / "toy")
    recipe = tmp_path / "tag.yaml"
    weft("init", "tag", tmp_path / "toy" / "train.conllu", "--model", "linear", "-o", recipe, code=0)
    assert check_recipe(read_recipe(recipe)).settings.max_updates == 1
    assert "one sentence of so many chooses the penalty" in recipe.read_text("utf-8")
