"""A mistake in a layer's inputs is one sentence of ours, not torch's: shape, dtype, device, mask, state.

A new part is found and tested at once. Tensors on torch's device "meta" stand for those of another device.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.laws.members import (
    CELLS,
    CLASSES,
    DECODERS,
    ENCODERS,
    HEADS,
    POOLS,
    READ,
    SCORES,
    SIZE,
    WRITE,
    Make,
    one_of_each,
)
from weft import nn as layers
from weft.errors import ShapeError, WeftError
from weft.nn import Attention, Memory, MultiHead, RecurrentEncoder, Stack, TransformerBlock
from weft.tree import tree_map

ROWS, STEPS = 3, 5
Mistakes = Iterator[tuple[str, Callable[[], Any]]]


def wrong(size: int) -> dict[str, Any]:
    """Inputs that should be [rows, steps, size] of float32 on the CPU."""
    x = torch.randn(ROWS, STEPS, size)
    return {
        "other features": torch.randn(ROWS, STEPS, size + 1),
        "one axis": x[0, 0],
        "four axes": x[..., None],
        "whole numbers": x.long(),
        "another device": x.to("meta"),
        "a list": x.tolist(),
        "an array": np.zeros(x.shape, np.float32),
    }


def wrong_masks() -> dict[str, Any]:
    mask = torch.ones(ROWS, STEPS, dtype=torch.bool)
    return {
        "a float mask": mask.float(),
        "a longer mask": torch.ones(ROWS, STEPS + 1, dtype=torch.bool),
        "a mask of more rows": torch.ones(ROWS + 1, STEPS, dtype=torch.bool),
        "a mask of three axes": mask[..., None],
        "a mask on another device": mask.to("meta"),
        "a mask as a list": mask.tolist(),
    }


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(ROWS, STEPS, READ), torch.ones(ROWS, STEPS, dtype=torch.bool)


def of_cell(make: Make) -> Mistakes:
    cell, (x, _) = make(READ, SIZE).eval(), inputs()
    state = cell.start(x)
    for name, bad in wrong(READ).items():
        yield name, lambda bad=bad: cell(bad, state)
    for name, bad in wrong_masks().items():
        yield name, lambda bad=bad: cell(x, state, bad)
    h = torch.zeros(1, ROWS, SIZE)
    states = {
        "no state": None,
        "a tensor as state": h,
        "torch's state": (h, h),
        "a state of more rows": cell.start(torch.zeros(ROWS + 1, STEPS, READ)),
        "a state on another device": tree_map(lambda leaf: leaf.to("meta"), state),
    }
    for name, bad in states.items():
        yield name, lambda bad=bad: cell(x, bad)
    yield "a step of three axes", lambda: cell.step(x, state)
    yield "a step of other features", lambda: cell.step(torch.zeros(ROWS, READ + 1), state)
    yield "a step on another device", lambda: cell.step(torch.zeros(ROWS, READ, device="meta"), state)
    yield "a size of text", lambda: make(READ, "5")


def of_encoder(make: Make) -> Mistakes:
    encoder, (x, mask) = make(READ).eval(), inputs()
    for name, bad in wrong(READ).items():
        yield name, lambda bad=bad: encoder(bad, mask)
    for name, bad in wrong_masks().items():
        yield name, lambda bad=bad: encoder(x, bad)


def of_decoder(make: Make) -> Mistakes:
    encoder, (x, mask) = RecurrentEncoder(READ, sizes=(SIZE,)), inputs()
    memory = encoder(x, mask)
    decoder = make(WRITE, encoder).eval()
    state, y = decoder.start(memory, ROWS), torch.randn(ROWS, STEPS, WRITE)
    for name, bad in wrong(WRITE).items():
        yield name, lambda bad=bad: decoder(bad, state)
    for name, bad in wrong_masks().items():
        if name != "a float mask":  # some take it for 0 and 1
            yield name, lambda bad=bad: decoder(y, state, bad)
    yield "no state", lambda: decoder(y, None)
    yield "a tensor as state", lambda: decoder(y, torch.zeros(1, ROWS, SIZE))
    yield "other rows", lambda: decoder(torch.randn(ROWS + 1, STEPS, WRITE), state)
    yield "a tensor as memory", lambda: decoder.start(x, ROWS)
    wide = Memory(torch.zeros(ROWS, STEPS, SIZE + 1), mask, torch.zeros(ROWS, SIZE + 1), memory.carry)
    yield "a wider memory", lambda: decoder.start(wide, ROWS)


def of_head(make: Make) -> Mistakes:
    head, (h, mask) = make(READ).eval(), inputs()
    target = torch.zeros(ROWS, STEPS, dtype=torch.long)
    if head.copies:
        return
    for name, bad in wrong(READ).items():
        yield name, lambda bad=bad: head.loss(bad, target, mask)
    for name, bad in wrong_masks().items():
        yield name, lambda bad=bad: head.loss(h, target, bad)
    yield "a shorter target", lambda: head.loss(h, target[:, :2], mask)
    yield "a target on another device", lambda: head.loss(h, target.to("meta"), mask)


def of_pool(make: Make) -> Mistakes:
    pool, x = make(READ), inputs()[0]
    for name, bad in wrong_masks().items():
        yield name, lambda bad=bad: pool(Memory(x, bad, x[:, 0]))
    yield "a tensor", lambda: pool(x)


def of_score(make: Make) -> Mistakes:
    score, (x, mask) = make(READ, READ), inputs()
    attention, memory = Attention(score, READ), Memory(x, mask, x[:, 0])
    source = attention.prepare(memory)
    for name, bad in wrong(READ).items():
        yield f"a memory with {name}", lambda bad=bad: attention.prepare(Memory(bad, mask, x[:, 0]))
        if make.func is not layers.Uniform:  # type: ignore[attr-defined]  # it does not read the query
            yield f"a query with {name}", lambda bad=bad: attention(bad, source)
    for name, bad in wrong_masks().items():
        yield name, lambda bad=bad: attention(x, attention.prepare(Memory(x, bad, x[:, 0])))
    yield "a tensor as memory", lambda: attention.prepare(x)
    yield "a tensor as source", lambda: attention(x, x)


def unexplained(mistakes: Mistakes) -> list[str]:
    """Mistakes that raise an error of another kind, or that pass although a number must come out wrong."""
    found = []
    for name, call in mistakes:
        try:
            call()
        except WeftError as error:
            assert len(str(error)) < 400, error
        except Exception as error:  # noqa: BLE001  whatever torch raises
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found


FAMILIES: dict[str, tuple[Callable[[Make], Mistakes], dict[str, Make]]] = {
    "cell": (of_cell, CELLS),
    "encoder": (of_encoder, ENCODERS),
    "decoder": (of_decoder, DECODERS),
    "head": (of_head, HEADS),
    "pool": (of_pool, POOLS),
    "score": (of_score, SCORES),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_mistake_is_a_sentence_of_ours(family: str) -> None:
    mistakes, members = FAMILIES[family]
    found = {name: unexplained(mistakes(members[name])) for name in one_of_each(members) if "/" not in name}
    assert {name: errors for name, errors in found.items() if errors} == {}


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_mistakes_with_drop_ins_are_sentences(kind: str) -> None:
    cell = kind.endswith("Cell")
    module = getattr(layers, kind)(READ, SIZE, **{} if cell else {"batch_first": True})
    x = torch.randn(ROWS, READ) if cell else torch.randn(ROWS, STEPS, READ)
    h = torch.zeros(ROWS, SIZE) if cell else torch.zeros(1, ROWS, SIZE)
    pair = kind.startswith("LSTM")
    inputs = (x.to("meta"), x.double(), x.tolist(), x.numpy(), x[..., 1:])
    states = (h.to("meta"), h.double(), h.long(), h[..., 1:], h[0], h[None])
    for bad in inputs:
        with pytest.raises(WeftError, match=f"{kind}: "):
            module(bad)
    for state in states:
        with pytest.raises(WeftError, match=f"{kind}: "):
            module(x, (state, state) if pair else state)
    with pytest.raises(ShapeError, match=r"got an int|got 1"):
        module(x, 3)


def test_torchs_state_of_a_stack_is_refused_with_its_conversion() -> None:
    stack, x = Stack(READ, (SIZE, SIZE), cell=layers.cells.LSTM), torch.randn(2, STEPS, READ)
    h, c = torch.randn(2, 2, SIZE), torch.randn(2, 2, SIZE)  # as many rows as layers
    with pytest.raises(ShapeError, match=r"a state for each of 2 layers, .* by tuple\(zip\(h, c\)\)"):
        stack(x, (h, c))
    with pytest.raises(ShapeError, match=r"tuple\(zip\(h\)\)"):
        stack(x, h)
    y, finals = stack(x, tuple(zip(h, c, strict=True)))
    assert torch.equal(y[:, -1], finals[-1][0][0])


def test_multi_head_attention_of_ours_says_what_torchs_takes() -> None:
    x = torch.randn(ROWS, STEPS, 6)
    with pytest.raises(ShapeError, match=r"got a tensor \[3, 5, 6\]; MultiheadAttention takes"):
        MultiHead(6, 2)(x, x, x, None)
    with pytest.raises(ShapeError, match=r"TransformerBlock: expected x of shape \[rows, steps, 6\]"):
        TransformerBlock(6, 2, 7).encode(x[..., 1:], None)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (torch.tensor([[11]]), "expected tokens from 0 to 10, got 11"),
        (torch.tensor([[-1]]), "got -1"),
        (torch.zeros(1, 1), r"tokens\.long\(\)"),
        ([[1]], "got a list"),
    ],
)
def test_tokens_beyond_the_table_are_named(tokens: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        layers.Tokens(11, 6)(tokens)


def test_an_error_that_is_no_mistake_in_the_inputs_stays_as_it_is() -> None:
    class Broken(layers.Encoder):
        def __init__(self) -> None:
            super().__init__()
            self.in_size = self.size = READ

        def forward(self, x: Tensor, mask: Tensor) -> Memory:
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match=r"^out of memory$"):
        Broken()(*inputs())
    with pytest.raises(ShapeError, match=r"Broken: expected x of shape \[rows, steps, 3\], got \[3, 5, 4\]"):
        Broken()(torch.zeros(ROWS, STEPS, READ + 1), inputs()[1])


def test_a_crf_names_a_class_that_does_not_exist() -> None:
    head, (h, mask) = layers.Crf(READ, CLASSES), inputs()
    with pytest.raises(ShapeError, match="Crf: expected target from 0 to 16, got 17"):
        head.loss(h, torch.full((ROWS, STEPS), CLASSES), mask)
