"""Every encoder with every decoder, as one generator: the laws hold for all combinations.

`make test` combines the kinds of decoders with the kinds of memories, every other kind of encoder with two
decoders, every other decoder with one encoder, each kind of layer with itself; `make test-all` all of them.
"""

from itertools import product

import pytest
import torch

from tests.laws.members import (
    CELLS,
    DECODERS,
    ENCODERS,
    READ,
    ROWS,
    TARGET,
    WRITE,
    Make,
    keeps,
    normal,
    one_of_each,
    target,
)
from tests.laws.pairs import (
    Pair,
    beams_share_a_source,
    masked_prefix_equals_prefix,
    one_call_equals_steps,
    pair,
)
from weft import tree
from weft.testing.values import more_than_noise


def kinds(members: dict[str, Make]) -> list[str]:
    """The first variant of each file."""
    return [name for name in one_of_each(members) if "/" not in name]


READERS, WRITERS = set(kinds(ENCODERS)), set(kinds(DECODERS))
FIRST_READER, FIRST_WRITER = "recurrent((13,))", "recurrent((13,),late,False)"
assert {FIRST_READER} <= READERS and {FIRST_WRITER} <= WRITERS
READERS.add("recurrent((13,5),True)")  # two directions: the bridge reads both
RARE = {f"recurrent/{cell}" for cell in CELLS if cell.partition("(")[0] not in ("elman", "lstm", "gru")}


def worth_a_test(reads: str, writes: str) -> bool:
    """Every encoder kind with every decoder, every decoder kind with every encoder, every cell with itself.

    A rare cell is combined with itself and the first recurrent one; its state is a tuple of tensors as well.
    """
    if writes.startswith("pointer") and ENCODERS[reads](READ).stride != 1:
        return False  # rejected: there would be no position left to copy from
    rare = {reads, writes} & RARE
    if rare and reads != writes:
        return {reads, writes} - rare <= {FIRST_READER, FIRST_WRITER} and len(rare) == 1
    return reads in READERS or writes in WRITERS or reads == writes


# Memories of other shapes: no carry, one or two directions, shorter than the source.
LEADING_READERS = {"bag()", FIRST_READER, "recurrent((13,5),True)", "strided(6)", "transformer(6)"}
assert LEADING_READERS <= READERS


def leading(reads: str, writes: str) -> bool:
    """Whether `make test` has this pair."""
    if writes in WRITERS:
        return reads in LEADING_READERS or (reads in READERS and writes in (FIRST_WRITER, "transformer(6)"))
    if reads == writes:
        return reads not in RARE
    return reads == FIRST_READER and writes not in ENCODERS


PAIRS = [names for names in product(ENCODERS, DECODERS) if worth_a_test(*names)]


@torch.no_grad()
def the_laws_of_a_decoder(it: Pair) -> None:
    x, mask = target()
    one_call_equals_steps(it, normal(ROWS, TARGET, WRITE)[:, :4], [2])
    masked_prefix_equals_prefix(it, x[:, :4], mask[:, :4], [2])
    beams_share_a_source(it, x[:, :3], mask[:, :3])


def law_5_the_source_learns_wherever_it_is_read(it: Pair) -> None:
    y, _ = it.decoder(normal(ROWS, 2, WRITE), it.start())
    torch.stack([(leaf * normal(*leaf.shape, seed=4)).sum() for leaf in tree.leaves(y)]).sum().backward()
    gradients = [p.grad for module in it if module for p in module.parameters() if p.grad is not None]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    largest = max(float(gradient.abs().max()) for gradient in gradients)
    reached = [
        p.grad is not None and bool(more_than_noise(p.grad, largest).any()) for p in it.encoder.parameters()
    ]
    assert any(reached) or not reached  # a bag of plain embeddings has no parameters


@pytest.mark.parametrize(
    ("reads", "writes"),
    [
        pytest.param(*names, id=" > ".join(names), marks=[] if leading(*names) else [pytest.mark.slow])
        for names in PAIRS
    ],
)
def test_the_laws_hold(reads: str, writes: str) -> None:
    keeps(
        [the_laws_of_a_decoder, law_5_the_source_learns_wherever_it_is_read],
        pair(DECODERS[writes], ENCODERS[reads]),
    )
