"""The shared key-value cache: a step costs W entries, and older states stay valid."""

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from tests.laws.members import DECODERS, ROWS, WRITE, close, normal
from tests.laws.pairs import pair
from tests.laws.test_decoders import READER
from weft import tree
from weft.nn.decoders.transformer import TransformerState
from weft.search.beam import beam_search

MAKE = next(make for name, make in DECODERS.items() if name.startswith("transformer"))


def test_a_state_is_not_changed_by_what_comes_after_it() -> None:
    """Two continuations of one state, in their shared buffer, equal those of copies."""
    it, other = pair(MAKE, READER), pair(MAKE, READER)
    x, words = normal(ROWS, 3, WRITE), [normal(ROWS, 1, WRITE, seed=n) for n in (5, 6, 7)]
    state = it.decoder(x, it.start())[1]
    want = [other.decoder(torch.cat([x, word], 1), other.start())[0][:, -1:] for word in words]
    with torch.no_grad():
        _, buffered = it.decoder(x[:, 2:], it.decoder(x[:, :2], it.start())[1])
        for begin in (state, buffered):
            for word, right in zip(words, want, strict=True):
                close(it.decoder(word, begin)[0], right)
            branches = [it.decoder(word, begin)[1] for word in words]
            for branch, word in zip(branches, words, strict=True):
                y = it.decoder(words[0], branch)[0]
                whole = torch.cat([x, word, words[0]], 1)
                close(y, other.decoder(whole, other.start())[0][:, -1:])


def test_a_cache_in_a_buffer_equals_one_that_is_copied() -> None:
    """With gradients each step copies, without them it writes into the buffer: the same numbers."""
    it = pair(MAKE, READER)
    states, width = [it.start(), it.start()], 3
    for time in range(23):
        word = normal(ROWS * (width if time > 1 else 1), 1, WRITE, seed=time)
        y, states[0] = it.decoder(word, states[0])
        with torch.no_grad():
            z, states[1] = it.decoder(word, states[1])
        close(z, y)
        if time == 1:
            states = [tree.fan(state, width) for state in states]
        elif time > 1:
            generator = torch.Generator().manual_seed(time)
            chosen = torch.randint(0, width, (ROWS, width), generator=generator)
            rows = (chosen + torch.arange(ROWS)[:, None] * width).flatten()
            states = [tree.reorder(state, rows) for state in states]
    close(states[0], states[1])


def test_a_search_step_moves_paths_and_no_keys() -> None:
    """The bytes that belong to hypotheses are 8 per position, for any width and number of layers."""
    it = pair(MAKE, READER)
    seen: list[TransformerState] = []

    def step(token: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        y, state = it.decoder(normal(17, WRITE)[token][:, None], state)
        seen.append(state)
        return (y[:, 0] @ normal(it.decoder.size, 17, seed=3)).log_softmax(1), state

    width, steps = 5, 29
    begin = torch.zeros(ROWS, dtype=torch.int64)
    beam_search(step, it.start(), begin, eos=3, banned=(3,), max_length=steps, width=width)
    buffers = set()
    for time, state in enumerate(seen[1:], 2):
        assert state.path is not None and state.path.shape == (ROWS * width, time)
        assert state.cache.entries == 1 + width * (time - 1)
        buffers.add(state.cache.layers[0].data_ptr())
        own = list(tree.leaves(state._replace(cache=None, source=None)))
        assert sum(leaf.numel() * leaf.element_size() for leaf in own) == 8 * ROWS * width * time
    assert len(buffers) <= 4  # doubled when full, so the copying costs linear time in total


def test_the_products_of_a_step_do_not_grow_with_what_was_written() -> None:
    """Without the attention itself, n steps take n times as long as one: nothing is computed again."""
    it = pair(MAKE, READER)
    words, begin = normal(17, WRITE), it.start()

    def products(steps: int) -> int:
        state, token = begin, torch.arange(ROWS)
        with torch.no_grad(), FlopCounterMode(display=False) as counted:
            for _ in range(steps):
                _, state = it.decoder(words[token][:, None], state)
        counts = counted.get_flop_counts()["Global"]
        return sum(int(n) for name, n in counts.items() if "addmm" in str(name) or str(name) == "aten.mm")

    assert products(1) > 0
    assert [products(n) for n in (2, 7, 29)] == [n * products(1) for n in (2, 7, 29)]
