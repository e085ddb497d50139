"""The laws of an encoder, for every file of weft/nn/encoders, and for recurrent ones with every cell."""

import inspect

import torch
from safetensors.torch import load, save
from torch import Tensor

from tests.laws.members import (
    ENCODERS,
    READ,
    ROWS,
    SOURCE,
    SOURCE_LENGTHS,
    Make,
    cases,
    close,
    gradcheck,
    keeps,
    near,
    normal,
    others,
    ready,
    source,
)
from weft import probe, tree
from weft.nn.cells.stepwise import Stepwise
from weft.nn.encoders.encoder import Encoder, Memory
from weft.testing.values import every_parameter_reached, more_than_noise

every_encoder = cases(ENCODERS)


def encoder_of(make: Make, seed: int = 3) -> Encoder:
    return ready(lambda: make(READ), seed=seed)


def both_ways(make: Make) -> bool | None:
    """Whether it is bidirectional; None if it has no such setting or its steps are independent."""
    if stepwise(make):
        return None
    if "bidirectional" not in inspect.signature(make).parameters:
        return None
    return bool(make.keywords.get("bidirectional", False))


def stepwise(make: Make) -> bool:
    return getattr(make.keywords.get("cell"), "func", None) is Stepwise


def its_memory_has_the_sizes_it_promises(make: Make) -> None:
    encoder = encoder_of(make)
    memory = encoder(*source())
    assert memory.states.shape == (ROWS, -(-SOURCE // encoder.stride), encoder.size)
    assert memory.summary.shape == (ROWS, encoder.size)
    assert torch.equal(memory.mask, source()[1][:, :: encoder.stride])
    assert (memory.carry is None) == (encoder.carry_sizes == ())
    if memory.carry is not None:
        sizes = tuple(
            tuple(tuple(leaf.shape[1] for leaf in tree.leaves(state)) for state in layer)
            for layer in memory.carry
        )
        assert sizes == encoder.carry_sizes


def law_2_more_padding_changes_nothing(make: Make) -> None:
    encoder = encoder_of(make)
    x, mask = source()
    memory = encoder(x, mask)
    longer = torch.cat([x, torch.full((ROWS, 4, READ), -50.0, dtype=x.dtype)], 1)
    more = encoder(longer, torch.cat([mask, torch.zeros(ROWS, 4, dtype=torch.bool)], 1))
    close(more.states[:, : memory.mask.shape[1]][memory.mask], memory.states[memory.mask])
    close((more.summary, more.carry), (memory.summary, memory.carry))


def law_2_a_row_alone_equals_the_row_in_a_batch(make: Make) -> None:
    encoder = encoder_of(make)
    x, mask = source()
    memory = encoder(x, mask)
    for row, length in enumerate(SOURCE_LENGTHS):
        alone = encoder(x[row : row + 1, :length], mask[row : row + 1, :length])
        close(alone.states, memory.states[row : row + 1, : -(-length // encoder.stride)])
        there = tree.take((memory.summary, memory.carry), torch.tensor([row]))
        close((alone.summary, alone.carry), there)


def law_4_chosen_rows(make: Make) -> None:
    encoder = encoder_of(make)
    x, mask = source()
    rows = torch.tensor([4, 1, 1, 0, 3, 3, 2])
    close(encoder(x[rows], mask[rows])[2:], tree.take(encoder(x, mask)[2:], rows))


def law_5_gradcheck_and_gradients_reach_every_parameter(make: Make) -> None:
    encoder = encoder_of(make)
    x, mask = source()
    # At least two positions in memory: attention over one has no gradient. And a row of one real step.
    rows, steps = ([1, 2], 4) if encoder.stride == 1 else ([0, 2], SOURCE)
    assert steps > encoder.stride
    x, mask = x[rows, :steps], mask[rows, :steps]

    def outputs(x: Tensor) -> tuple[Tensor, ...]:
        memory = encoder(x, mask)
        return memory.states * memory.mask[..., None], *tree.leaves((memory.summary, memory.carry))

    gradcheck(encoder, outputs, x)
    every_parameter_reached(encoder, outputs(x.requires_grad_()))
    gradient = torch.autograd.grad(outputs(x)[0].sum(), x)[0]
    assert not gradient[~mask].any(), "padding has an influence"


def law_9_what_each_position_sees(make: Make) -> None:
    encoder = encoder_of(make)
    x = normal(ROWS, SOURCE, READ)
    mask = torch.ones(ROWS, SOURCE, dtype=torch.bool)
    other = x.clone()
    other[:, 4:] += 1
    if both_ways(make) is False:
        same = 4 // encoder.stride
        assert torch.equal(encoder(x, mask).states[:, :same], encoder(other, mask).states[:, :same])
    elif stepwise(make):
        y, z = encoder(x, mask).states, encoder(other, mask).states
        assert torch.equal(y[:, :4], z[:, :4])
        assert more_than_noise(y[:, 4:] - z[:, 4:], 1.0).any(-1).all()
    elif both_ways(make):
        first, changed = encoder(x, mask).states[:, 0], encoder(other, mask).states[:, 0]
        assert more_than_noise(first - changed, 1.0).any(-1).all()


def law_9_the_backward_half_reads_the_last_real_input_at_position_0(make: Make) -> None:
    x, mask = source()
    x.requires_grad_()
    reach = torch.zeros(mask.shape)
    concatenated = both_ways(make) and make.keywords.get("join", "concatenate") == "concatenate"
    for seed in (3, 4, 5):  # a ReLU may be inactive for one draw
        encoder = encoder_of(make, seed)
        first = encoder(x, mask).states[:, 0]
        backward = first[:, encoder.size // 2 :] if concatenated else first
        reach = reach + torch.autograd.grad(backward.sum(), x)[0].abs().sum(-1)  # [B, S]
    if both_ways(make) is False:
        assert not reach[:, encoder.stride :].any()
    elif both_ways(make):
        assert more_than_noise(reach[mask], reach.max()).all()
        assert not reach[~mask].any()


def law_10_saved_and_loaded_gives_the_same(make: Make) -> None:
    encoder, other = encoder_of(make), encoder_of(make, seed=4)
    other.load_state_dict(load(save(encoder.state_dict())))
    close(other(*source()), encoder(*source()), 0.0)


def a_probe_changes_nothing(make: Make) -> None:
    encoder = encoder_of(make)
    x, mask = source()
    with probe.probe():
        seen: Memory = encoder(x, mask)
    plain = encoder(x, mask)
    close((seen.states[seen.mask], *seen[2:]), (plain.states[plain.mask], *plain[2:]))


@every_encoder
def test_bfloat16_autocast_stays_near_float32(make: Make) -> None:
    encoder = ready(lambda: make(READ), torch.float32)
    x, mask = source(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        memory = encoder(x, mask)
    # bfloat16: relative error 1/256 per operation, dozens in a row; a norm enlarges that of a small sum
    near(memory.states[memory.mask].float(), encoder(x, mask).states[memory.mask], 0.15)
    every_parameter_reached(encoder, memory.states[memory.mask].float())


LAWS = [
    its_memory_has_the_sizes_it_promises,
    law_2_more_padding_changes_nothing,
    law_2_a_row_alone_equals_the_row_in_a_batch,
    law_4_chosen_rows,
    law_5_gradcheck_and_gradients_reach_every_parameter,
    law_9_what_each_position_sees,
    law_9_the_backward_half_reads_the_last_real_input_at_position_0,
    law_10_saved_and_loaded_gives_the_same,
    a_probe_changes_nothing,
]


@every_encoder
def test_an_encoder_keeps_the_laws(make: Make) -> None:
    keeps(LAWS, make)


@others({name: make for name, make in ENCODERS.items() if "/" not in name})
def test_settings_change_nothing_of_padding_and_of_what_is_seen(make: Make) -> None:
    keeps(
        [
            its_memory_has_the_sizes_it_promises,
            law_2_a_row_alone_equals_the_row_in_a_batch,
            law_9_what_each_position_sees,
        ],
        make,
    )


@cases(ENCODERS)
def test_a_run_keeps_each_weight_once(make: Make) -> None:
    """A second name for a part would be missing in every run that was saved before."""
    encoder = make(3)
    own = {*dict(encoder.named_parameters()), *dict(encoder.named_buffers())}
    assert set(encoder.state_dict()) <= own
