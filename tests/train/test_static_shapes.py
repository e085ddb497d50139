"""Every task through static shapes: the same numbers as the plain path, and nothing asks a GPU for a value.

A GPU is not needed: the stand-in of tests/gpu.py has no values to give.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.gpu import GPU, Asked, gpu, rehearsed
from tests.slow import leading
from weft.masks import static_shapes
from weft.tasks.forecast.model import ForecastNetwork

RECIPES = [
    "caption/shapes-gru",
    "classify/mr-bayes",
    "classify/sst2-bag",
    "classify/trec-contextual",
    "classify/trec-letters",
    "draw/shapes-transformer",
    "elmo/help-elmo",
    "embeddings/help-skipgram",
    "embeddings/wikitext2-glove",
    "forecast/waves-default",
    "forecast/waves-segments",
    "images/moving-local",
    "language/help-gpt",
    "language/ptb-lstm",
    "masked/help-bert",
    "memory/adding-lstm",
    "memory/copying-orthogonal",
    "multilingual/help-four",
    "speech/digits-pyramid",
    "summarise/descriptions-pointer",
    "tag/ewt-bilstm",
    "tag/ewt-contextual",
    "tag/ewt-vectors",
    "translate/help-demo",
    "translate/help-transformer",
    "translate/multi30k-student",
]
"""At least one recipe of each task, and of each head and embedding."""

FAST = {
    "classify/trec-letters",
    "embeddings/wikitext2-glove",
    "forecast/waves-default",
    "language/ptb-lstm",
    "summarise/descriptions-pointer",
    "tag/ewt-bilstm",
    "translate/help-transformer",
}
GIVEN = [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in RECIPES]

COUNTED = {
    "embeddings/wikitext2-subwords": "_unique2",  # the n-grams of the distinct words of a batch
    "language/ptb-lstm": "index",  # the words of each group; where shapes are static, all of them
}
"""Recipes whose plain path asks a GPU, and for what."""


def wide(part: Any) -> Any:
    """A batch in float64."""
    if isinstance(part, Tensor):
        return part.double() if part.is_floating_point() else part
    if not hasattr(part, "_fields"):
        return part
    return type(part)(*map(wide, part))


def results(model: Any, batch: Any) -> list[Any]:
    model.zero_grad()
    loss = model.loss(batch)
    loss.total.backward()
    return [loss.total, loss.count, *(p.grad for p in model.parameters())]


@pytest.mark.parametrize("recipe", GIVEN)
def test_static_shapes_and_masked_rows_change_no_number(recipe: str) -> None:
    model, batch = rehearsed(recipe)
    narrow = isinstance(model, ForecastNetwork)  # its base is in float32
    model, batch = (model.eval(), batch) if narrow else (model.double().eval(), wide(batch))
    plain = results(model, batch)
    filled = batch.filled() if hasattr(batch, "filled") else batch
    assert filled.target_tokens == batch.target_tokens
    with static_shapes():
        found = results(model, filled)
    torch.testing.assert_close(found, plain, rtol=1e-5 if narrow else 1e-9, atol=1e-6 if narrow else 1e-10)


def passes(model: Any, batch: Any) -> None:
    loss = model.loss(batch)
    torch.autograd.grad(loss.total, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
    assert loss.total.device == loss.count.device == GPU


@pytest.mark.parametrize("recipe", [name for name in GIVEN if name.values[0] not in COUNTED])
def test_a_pass_asks_a_gpu_for_no_value(recipe: str) -> None:
    model, batch = rehearsed(recipe)
    with gpu():
        passes(model.train().to(GPU), batch.to(GPU))


@pytest.mark.parametrize("recipe", leading(GIVEN, 3))
def test_a_recorded_pass_copies_nothing_to_the_gpu(recipe: str) -> None:
    model, batch = rehearsed(recipe)
    with gpu() as operations:
        model.train().to(GPU)
        there = (batch.filled() if hasattr(batch, "filled") else batch).to(GPU)
        with static_shapes():
            operations.recording = True
            passes(model, there)


@pytest.mark.parametrize("recipe", COUNTED)
def test_what_the_plain_path_must_count(recipe: str) -> None:
    model, batch = rehearsed(recipe)
    with gpu(), pytest.raises(Asked, match=COUNTED[recipe]):
        passes(model.train().to(GPU), batch.to(GPU))


def test_word_vectors_from_ngrams_are_not_recorded() -> None:
    model, batch = rehearsed("embeddings/wikitext2-subwords")
    with static_shapes(), pytest.raises(NotImplementedError, match="distinct words"):
        model.loss(batch)


def asks(x: Tensor) -> Any:
    return x[x > 0]


@pytest.mark.parametrize(
    "wrong",
    [
        asks,
        lambda x: x.sum().item(),
        lambda x: bool(x.any()),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: x + torch.ones(3),
        lambda x: torch.rand(3, device=x.device, generator=torch.Generator()),
    ],
)
def test_the_stand_in_finds_what_a_gpu_would_wait_for(wrong: Any) -> None:
    with gpu(), pytest.raises((Asked, RuntimeError)):
        wrong(torch.ones(3, device=GPU))


@pytest.mark.parametrize(
    "wrong", [lambda x: x.new_tensor([1.0]), lambda x: torch.tensor(1.0, device=x.device)]
)
def test_the_stand_in_finds_copies_into_a_recorded_graph(wrong: Any) -> None:
    with gpu() as operations:
        x = torch.ones(3, device=GPU)
        wrong(x)
        operations.recording = True
        with pytest.raises(Asked):
            wrong(x)
