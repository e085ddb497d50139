"""The laws of a decoder, for every file of weft/nn/decoders, with and without a memory."""

from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from tests.laws.members import (
    DECODERS,
    ENCODERS,
    ROWS,
    SOURCE,
    TARGET,
    WRITE,
    Make,
    cases,
    close,
    gradcheck,
    keeps,
    near,
    normal,
    others,
    source,
    target,
)
from tests.laws.pairs import (
    beams_share_a_source,
    chosen_rows_equal_rows,
    masked_prefix_equals_prefix,
    one_call_equals_steps,
    pair,
    some,
)
from weft import probe, tree
from weft.nn.cells.stepwise import Stepwise
from weft.nn.decoders.decoder import Decoder
from weft.testing.values import every_parameter_reached, more_than_noise

READER = ENCODERS["recurrent((13,5),True)"]  # two directions, two layers of different sizes

every_decoder = cases(DECODERS)
with_and_without = pytest.mark.parametrize("reader", [READER, None], ids=["memory", "alone"])


def first(y: Any) -> Tensor:
    """The features [B, T, D] of a decoder's output, which is a tree if it copies."""
    return next(tree.leaves(y))


def unread(decoder: Decoder) -> tuple[str, ...]:
    """Parts that get no gradient: a bridge into cells whose steps read no state."""
    return ("bridge",) if any(isinstance(part, Stepwise) for part in decoder.modules()) else ()


def law_1_one_call_equals_steps_also_in_pieces(make: Make, reader: Make | None) -> None:
    one_call_equals_steps(pair(make, reader), normal(ROWS, TARGET, WRITE), [3, 4, 9])


def law_3_masked_prefix_equals_prefix(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    for cuts in ([], [3, 4, 9]):
        masked_prefix_equals_prefix(it, *target(), cuts)


def law_3_a_row_that_has_not_begun_starts_later(make: Make, reader: Make | None) -> None:
    x, mask = target()
    mask[3] = False
    masked_prefix_equals_prefix(pair(make, reader), x, mask, [])


def law_4_chosen_rows_of_a_step(make: Make, reader: Make | None) -> None:
    chosen_rows_equal_rows(pair(make, reader), *target())


def beams_that_share_a_source_equal_copies(make: Make, reader: Make | None) -> None:
    beams_share_a_source(pair(make, reader), *target())


def a_fanned_state_copies_nothing_of_the_source(make: Make, reader: Make | None) -> None:
    state = pair(make, reader).start()
    for before, after in zip(tree.leaves(state), tree.leaves(tree.fan(state, 3)), strict=True):
        of_source = before.dim() > 2 and SOURCE in before.shape  # [B, S, D], [B, H, S, K]
        if before.numel() and (of_source or before.dtype == torch.bool):
            assert after is before, "mark what belongs to the source with per_source = True"


def law_5_gradcheck_and_gradients_reach_every_parameter(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    x, mask = target()
    x, mask = x[1:3, :3], mask[1:3, :3]
    read, read_mask = (each[2:4] for each in source())

    def outputs(x: Tensor, *read: Tensor) -> tuple[Tensor, ...]:
        memory = None if it.encoder is None else it.encoder(*read, read_mask)
        y, state = it.decoder(x, it.decoder.start(memory, 2), mask)
        z, _ = it.decoder(x[:, 1:2], state)  # and one more step, from the state
        real = tree.tree_map(lambda leaf: leaf * mask[..., None], y)
        return tuple(tree.leaves((real, z)))

    given = (x,) if it.encoder is None else (x, read)
    gradcheck(it.decoder, outputs, *given)
    every_parameter_reached(it.decoder, outputs(*given), except_for=unread(it.decoder))


def law_9_what_comes_later_leaves_what_was_written_bit_equal(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    x, mask = target()
    other = x.clone()
    other[:, 4:] = normal(ROWS, TARGET - 4, WRITE, seed=8)
    for given in (None, mask):
        y, z = it.decoder(x, it.start(), given)[0], it.decoder(other, it.start(), given)[0]
        seen = torch.ones(ROWS, 4, dtype=torch.bool) if given is None else mask[:, :4]
        for one, two in zip(tree.leaves(y), tree.leaves(z), strict=True):
            assert torch.equal(one[:, :4][seen], two[:, :4][seen])
        assert more_than_noise(first(y)[0, 4:] - first(z)[0, 4:], 1.0).any(-1).all()


def law_9_every_earlier_input_is_seen(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    x = normal(ROWS, TARGET, WRITE).requires_grad_()
    y = first(it.decoder(x, it.start())[0])
    weights = normal(*y[:, 6].shape, seed=4)
    reach = torch.autograd.grad((y[:, 6] * weights).sum(), x)[0].abs().sum(-1)  # [B, T]
    begin = it.decoder.skips if it.decoder.reach is None else max(0, 7 - it.decoder.reach)
    assert (reach[:, begin:7] > 0).any(0).all()  # in some row: a ReLU may be inactive in others
    assert not reach[:, 7:].any() and not reach[:, :begin].any()


def law_10_saved_and_loaded_gives_the_same(make: Make, reader: Make | None) -> None:
    it, other = pair(make, reader), pair(make, reader, seed=4)
    other.decoder.load_state_dict(load(save(it.decoder.state_dict())))
    x, mask = target()
    begin = other.decoder.start(it.memory(), ROWS)
    close(other.decoder(x, begin, mask), it.decoder(x, it.start(), mask), 0.0)


def a_probe_changes_nothing(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    x, mask = target()
    with probe.probe():
        plain, masked = it.decoder(x, it.start())[0], it.decoder(x, it.start(), mask)[0]
    close(plain, it.decoder(x, it.start())[0])
    close(some(masked, mask), some(it.decoder(x, it.start(), mask)[0], mask))


def nothing_is_remembered_between_calls(make: Make, reader: Make | None) -> None:
    it = pair(make, reader)
    x, _ = target()
    before = it.decoder(x, it.start())[0]
    it.decoder(x.flip(1), it.start())
    close(it.decoder(x, it.start())[0], before, 0.0)


@every_decoder
@with_and_without
def test_bfloat16_autocast_stays_near_float32(make: Make, reader: Make | None) -> None:
    it = pair(make, reader, dtype=torch.float32)
    x, read = normal(ROWS, TARGET, WRITE).float(), source(torch.float32)

    def written() -> Tensor:
        memory = None if it.encoder is None else it.encoder(*read)
        y = it.decoder(x, it.decoder.start(memory, ROWS))[0]
        return torch.cat([leaf.float().flatten() for leaf in tree.leaves(y)])

    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = written()
    exact = written()
    every_parameter_reached(it.decoder, rounded, except_for=unread(it.decoder))
    with torch.no_grad():  # feedback through a cell without bounds may amplify any rounding
        for parameter in it.decoder.parameters():
            parameter.copy_(parameter.bfloat16())
        spread = float((written() - exact).norm() / exact.norm())
    # bfloat16: relative error 1/256 per operation, dozens in a row; a norm enlarges that of a small sum
    near(rounded, exact, max(0.2, 3 * spread))


LAWS = [
    law_1_one_call_equals_steps_also_in_pieces,
    law_3_masked_prefix_equals_prefix,
    law_3_a_row_that_has_not_begun_starts_later,
    law_4_chosen_rows_of_a_step,
    beams_that_share_a_source_equal_copies,
    a_fanned_state_copies_nothing_of_the_source,
    law_5_gradcheck_and_gradients_reach_every_parameter,
    law_9_what_comes_later_leaves_what_was_written_bit_equal,
    law_9_every_earlier_input_is_seen,
    law_10_saved_and_loaded_gives_the_same,
    a_probe_changes_nothing,
    nothing_is_remembered_between_calls,
]


@every_decoder
@with_and_without
def test_a_decoder_keeps_the_laws(make: Make, reader: Make | None) -> None:
    keeps(LAWS, make, reader)


@others({name: make for name, make in DECODERS.items() if "/" not in name})
def test_settings_change_nothing_of_what_is_seen(make: Make) -> None:  # other laws: test_grid.py
    keeps(
        [law_9_what_comes_later_leaves_what_was_written_bit_equal, law_9_every_earlier_input_is_seen],
        make,
        READER,
    )
