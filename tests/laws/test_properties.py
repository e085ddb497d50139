"""Laws on random sizes, drawn by Hypothesis; those of searches are in test_search.py.

Read next: test_decoders.py, the same laws on fixed sizes for every decoder.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.test_update import fresh, step
from tests.train.toy import Batch, Task
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.train.position import BatchGroup
from weft.train.processes import Processes

SIZE = 6
POSITIONS = "sinusoidal", "learned", "rotary", "alibi", "relative"


def decoders(positions: str, seed: int) -> list[torch.nn.Module]:
    torch.manual_seed(seed)
    transformer = TransformerDecoder(
        SIZE,
        None,
        size=SIZE,
        num_layers=2,
        num_heads=1,
        inner=7,
        positions=positions,
        max_length=24,  # type: ignore[arg-type]
    )
    return [transformer.double().eval(), RecurrentDecoder(SIZE, None, sizes=(5, 7)).double().eval()]


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3),
    length=st.integers(1, 9),
    data=st.data(),
    positions=st.sampled_from(POSITIONS),
    seed=st.integers(0, 99),
)
def test_what_comes_later_changes_nothing_and_steps_are_the_whole(
    rows: int, length: int, data: st.DataObject, positions: str, seed: int
) -> None:
    at = data.draw(st.integers(0, length - 1))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, length - 1)), max_size=3)))
    for decoder in decoders(positions, seed):
        x = torch.randn(rows, length, SIZE, dtype=torch.float64)
        whole, _ = decoder(x, decoder.start(None, rows))
        other = x.clone()
        other[:, at + 1 :] += 100.0
        changed, _ = decoder(other, decoder.start(None, rows))
        assert torch.equal(changed[:, : at + 1], whole[:, : at + 1])
        state, pieces = decoder.start(None, rows), []
        for begin, end in zip([0, *cuts], [*cuts, length], strict=True):
            if begin < end:
                y, state = decoder(x[:, begin:end], state)
                pieces.append(y)
        torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=0, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(0, 26), min_size=1, max_size=9, unique=True),
    data=st.data(),
    loss=st.sampled_from(["per_token", "per_sequence"]),
    processes=st.integers(1, 4),
)
def test_an_update_does_not_depend_on_batches_padding_or_processes(
    rows: list[int], data: st.DataObject, loss: str, processes: int
) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=4)) | {len(rows)})
    parts = [np.array(rows[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
    _, whole = step([np.array(rows)], fresh(), loss=loss)
    _, cut = step(parts, fresh(), loss=loss)
    _, dealt = step(dealt_out(parts, processes), fresh(), loss=loss)
    for one, two, three in zip(whole, cut, dealt, strict=True):
        torch.testing.assert_close(two, one, rtol=0, atol=1e-12)
        torch.testing.assert_close(three, one, rtol=0, atol=1e-12)


def dealt_out(parts: list[np.ndarray], processes: int) -> list[np.ndarray]:
    """The batches of all processes together, each process taking its own."""
    found = []
    for rank in range(processes):
        one = Processes(torch.device("cpu"))
        one.rank, one.count = rank, processes
        found += [share.numbers for share in one.part(BatchGroup(0, 0, parts, len(parts), 1, 0), len(parts))]
    return [numbers for numbers in found if len(numbers)]


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(0, 26), min_size=1, max_size=5), more=st.integers(1, 7), seed=st.integers(0, 99)
)
def test_a_loss_does_not_depend_on_the_padding(rows: list[int], more: int, seed: int) -> None:
    batch = Task().batch(np.array(rows))
    noise = torch.randint(0, 5, (len(rows), more), generator=torch.Generator().manual_seed(seed))
    tokens = torch.cat([batch.tokens, noise], 1)
    mask = torch.cat([batch.mask, torch.zeros_like(noise, dtype=torch.bool)], 1)
    model = fresh()
    total, count = model.loss(Batch(batch.numbers, tokens, mask))
    expected, expected_count = model.loss(batch)
    assert count.item() == expected_count.item()
    assert total.item() == pytest.approx(expected.item(), abs=1e-12)
