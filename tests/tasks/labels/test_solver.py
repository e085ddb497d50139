"""A linear model that is solved: the minimum, its penalty, and the run that it makes without an update."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.commands.labelled import LINEAR, make_sentences, make_texts
from tests.commands.shell import refused, weft
from weft.tasks.classify.model import Bag, LabelModel
from weft.tasks.labels.solver import PENALTIES, Design, solve

ITEMS, TEXTS, CLASSES = 13, 47, 3
SOLVED = [
    "model.bag={ngrams: 2, letters: [2, 4], weight: tfidf, solve: true}",
    "training.metric=loss",
]


def made(seed: int, texts: int = TEXTS) -> tuple[np.ndarray, Design]:
    """Random weights of items, with a class that a linear model can learn in part."""
    chance = np.random.default_rng(seed)
    dense = chance.random((texts, ITEMS)) * (chance.random((texts, ITEMS)) < 0.4)
    dense[:, 0] = 0  # padding
    truth = np.random.default_rng(0).normal(size=(ITEMS, CLASSES))
    target = (dense @ truth + chance.normal(size=(texts, CLASSES)) / 2).argmax(1)
    numbers = [np.flatnonzero(row).tolist() for row in dense]
    weights = [row[columns] for row, columns in zip(dense, numbers, strict=True)]
    return dense, Design.of(numbers, weights, torch.from_numpy(target), ITEMS)


def model_of(**settings: Any) -> Any:
    return LabelModel(bag=Bag(solve=True), **settings).build(ITEMS, CLASSES)


@pytest.mark.parametrize("penalty", [0.05, 3.0])
def test_it_stands_at_the_minimum_of_the_loss_and_the_penalty(penalty: float) -> None:
    dense, design = made(1)
    model = model_of()
    solve(model, design, design, penalty)
    weight, bias = (one.detach().double() for one in (model.embed.weight, model.head.bias))
    logits = torch.from_numpy(dense) @ weight + bias
    slope = logits.softmax(1) - torch.nn.functional.one_hot(design.target, CLASSES)
    assert (torch.from_numpy(dense).T @ slope + penalty * weight).abs().max() < TEXTS * 1e-4
    assert slope.sum(0).abs().max() < TEXTS * 1e-4  # the bias has no penalty


def test_it_equals_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    dense, design = made(2)
    model = model_of()
    solve(model, design, design, 0.5)
    theirs = linear_model.LogisticRegression(C=2.0, tol=1e-10, max_iter=5000).fit(
        dense, design.target.numpy()
    )
    ours = (torch.from_numpy(dense) @ model.embed.weight.double() + model.head.bias.double()).log_softmax(1)
    assert np.abs(ours.detach().numpy() - theirs.predict_log_proba(dense)).max() < 1e-3


def test_the_penalty_is_the_one_with_the_lowest_validation_loss() -> None:
    train, valid = made(3)[1], made(4, 211)[1]
    model = model_of()
    found = solve(model, train, valid)
    assert found.penalty == min(found.tried, key=found.tried.__getitem__)
    assert PENALTIES[0] in found.tried and min(found.tried) < found.penalty < max(found.tried)
    again = model_of()
    solve(again, train, valid, found.penalty)
    logits = [
        torch.from_numpy(made(4, 211)[0]).float() @ one.embed.weight + one.head.bias for one in (model, again)
    ]
    assert torch.allclose(*logits, atol=5e-3)  # from different beginnings to one minimum


def test_naive_bayes_ratios_scale_the_items() -> None:
    dense, design = made(5)
    model = LabelModel(bag=Bag(solve=True, naive_bayes=True)).build(ITEMS, CLASSES)
    ratios = torch.linspace(0.5, 2, ITEMS)[:, None].expand(ITEMS, CLASSES).contiguous()
    model.embed.get_buffer("ratios").copy_(ratios)
    solve(model, design, design, 1.0)
    scaled = torch.from_numpy(dense) @ (model.embed.weight * ratios).double() + model.head.bias.double()
    slope = scaled.softmax(1) - torch.nn.functional.one_hot(design.target, CLASSES)
    gradient = (torch.from_numpy(dense).T @ slope) * ratios + model.embed.weight.double()
    assert gradient.abs().max() < TEXTS * 1e-4


def test_vectors_of_items_are_features_whose_weights_each_item_takes_over() -> None:
    dense, design = made(6)
    places, vectors = np.array([2, 3, 5, 11]), np.random.default_rng(7).normal(size=(4, 5))
    means = dense[:, places] @ vectors
    scaled = means / np.sqrt(np.square(means).sum(1).mean())
    rows, weights = [list(range(ITEMS + 5))] * TEXTS, list(np.hstack([dense, scaled]))
    plain = LabelModel(bag=Bag(solve=True)).build(ITEMS + 5, CLASSES)
    solve(plain, *[Design.of(rows, weights, design.target, ITEMS + 5)] * 2, 0.7)
    model, given = model_of(), (torch.from_numpy(places), torch.from_numpy(vectors).float())
    found = solve(model, design._replace(vectors=given), design, 0.7)
    want = torch.from_numpy(np.hstack([dense, scaled])).float() @ plain.embed.weight + plain.head.bias
    got = torch.from_numpy(dense).float() @ model.embed.weight + model.head.bias
    assert torch.allclose(got, want, atol=5e-3)  # two searches for one minimum
    loss = torch.nn.functional.cross_entropy(got, design.target)
    assert found.loss == pytest.approx(loss.item(), abs=1e-5)  # which reads no vectors
    alone = model_of()
    solve(alone, design, design, 0.7)
    assert (alone.embed.weight - model.embed.weight).abs().max() > 0.1


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_run_is_made_without_an_update_and_twice_the_same(task: str, tmp_path: Path) -> None:
    make, changes = {"classify": (make_texts, SOLVED), "tag": (make_sentences, LINEAR)}[task]
    recipe, runs = make(tmp_path / "toy"), [tmp_path / "one", tmp_path / "two"]
    for run in runs:
        answer = weft("train", recipe, "--run", run, *changes, code=0)
    assert "solved without updates" in answer.out and "best of" in answer.err
    models = [(run / "model.safetensors").read_bytes() for run in runs]
    assert models[0] == models[1]
    assert "accuracy 1" in weft("evaluate", runs[0]).out
    assert weft("train", recipe, "--run", runs[0], *changes).code == 0  # again: nothing is left to do
    assert (runs[0] / "model.safetensors").read_bytes() == models[0]


def test_a_penalty_without_a_solver_is_refused(tmp_path: Path) -> None:
    recipe = make_texts(tmp_path / "toy")
    said = refused(weft("train", recipe, "--run", tmp_path / "run", "model.bag={penalty: 1.0}"))
    assert "penalty: requires solve: true" in said
