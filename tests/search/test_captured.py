"""Searches by captured steps, run without graphs on the CPU, find what other searches find.

A CUDA graph needs steps that ask for no value and whose tensors are all on the card; `OnlyOn` tests that.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.search import models
from tests.slow import leading
from weft.models import Generator
from weft.nn.cells.gru import GRU
from weft.nn.cells.lstm import LSTM
from weft.nn.cells.rwkv7 import RWKV7
from weft.nn.decoders.decoder import WindowDecoder
from weft.nn.decoders.hybrid import HybridDecoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.search import candidates, captured, programs
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.offered import Narrowing
from weft.search.programs import Chooser, Constants
from weft.search.sampling import sample
from weft.search.step import SamplingRule, SearchRequest, least_length, no_repeat, prefix
from weft.tree import fan, leaves, tree_map

V, EOS = 71, 3
same = partial(models.same, tolerance=1e-4)
NARROW = Narrowing(temperature=0.8, top_k=5, top_p=0.9, min_p=0.05, typical_p=0.9)


def transformer(**more: Any) -> Generator:
    embed = Tokens(V, 16)
    encoder = TransformerEncoder(16, size=16, num_layers=1, num_heads=2, dropout=0.0)
    decoder = TransformerDecoder(16, encoder, size=16, num_layers=2, num_heads=2, **more)
    return Generator(embed, decoder, Categorical(decoder.size, V), encoder=encoder)


def recurrent(cell: Any = GRU, **more: Any) -> Generator:
    embed = Tokens(V, 16)
    encoder = RecurrentEncoder(16, sizes=(8,), cell=cell)
    decoder = RecurrentDecoder(16, encoder, sizes=(16,), cell=cell, **more)
    return Generator(embed, decoder, Categorical(decoder.size, V), encoder=encoder)


def tied() -> Generator:
    embed = Tokens(V, 16)
    encoder = TransformerEncoder(16, size=16, num_layers=1, num_heads=2, dropout=0.0)
    decoder = TransformerDecoder(16, encoder, size=16, num_layers=1, num_heads=2)
    head = Categorical(decoder.size, V, tied=embed.table)
    return Generator(embed, decoder, head, encoder=encoder)


def other(kind: Any, **more: Any) -> Generator:
    encoder = TransformerEncoder(16, size=16, num_layers=1, num_heads=2, dropout=0.0)
    decoder = kind(16, encoder, **more)
    return Generator(Tokens(V, 16), decoder, Categorical(decoder.size, V), encoder=encoder)


def language(decoder: Any) -> Generator:
    return Generator(Tokens(V, 16), decoder, Categorical(decoder.size, V), prompt="read")


MODELS: dict[str, Callable[[], Generator]] = {
    "transformer": transformer,
    "rotary": lambda: transformer(positions="rotary"),
    "alibi": lambda: transformer(positions="alibi"),
    "relative": lambda: transformer(positions="relative", norm="after"),
    "learned": lambda: transformer(positions="learned", max_length=64),
    "gru, attention": recurrent,
    "lstm, input feeding": lambda: recurrent(LSTM, input_feeding=True, enters="both"),
    "hybrid": lambda: other(HybridDecoder, size=16, num_layers=2, num_heads=2),
    "window": lambda: other(WindowDecoder, length=3, size=16),
    "transformer language model": lambda: language(TransformerDecoder(16, size=16, num_heads=2)),
    "lstm language model": lambda: language(RecurrentDecoder(16, sizes=(16,), cell=LSTM)),
    "tied": tied,
    "rwkv7 language model": lambda: language(RecurrentDecoder(16, sizes=(16,), cell=RWKV7)),
}


def made(name: str) -> Generator:
    torch.manual_seed(2)
    model = MODELS[name]().eval()
    with torch.no_grad():  # texts of different lengths, neither all short nor all cut
        for weight in model.parameters():
            weight.mul_(2.0)
        for bias in (one for one in model.head.parameters() if one.dim() == 1):
            bias[EOS] = -1.0 if "gru" in name else 2.0
    return model


def sources(count: int, longest: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(count)
    tokens = torch.randint(4, V, (count, longest), generator=generator)
    lengths = torch.randint(1, longest + 1, (count,), generator=generator)
    lengths[0] = longest
    return tokens, torch.arange(longest) < lengths[:, None]


@contextmanager
def by_captured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Searches run by captured steps; which of them did."""
    served, inner = [], captured.captured_search

    def counted(*given: Any) -> Hypotheses | None:
        found = inner(*given)
        served.append(found is not None)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(captured, "captured_search", counted)
        yield served


def both(
    model: Generator,
    monkeypatch: pytest.MonkeyPatch,
    search: Callable[..., Hypotheses],
    sources_given: int = 5,
    rules: Any = (),
    **more: Any,
) -> tuple[Hypotheses, Hypotheses]:
    def run(*, recorded: bool) -> Hypotheses:
        with torch.no_grad():
            state, first = model.start(*sources(sources_given)), torch.full((sources_given,), 2)
            given: dict[str, Any] = {"eos": EOS, "banned": (0, 1, 2), "rules": rules, "recorded": recorded}
            return search(model.step, state, first, **given, **more)

    want = run(recorded=False)
    with by_captured(monkeypatch) as served:
        found = run(recorded=True)
    assert served == [True]
    return found, want


def drawn(*given: Any, **more: Any) -> Hypotheses:
    return sample(*given, generator=torch.Generator().manual_seed(7), **more)


@pytest.mark.parametrize("name", leading(MODELS))
def test_a_captured_search_finds_what_the_plain_one_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(name)
    limits = torch.tensor([41, 1, 7, 12, 40])  # beyond the first 32 positions; ragged; one ends at once
    same(*both(model, monkeypatch, greedy_search, max_length=limits))
    same(*both(model, monkeypatch, beam_search, max_length=limits, width=3, nbest=3))
    same(*both(model, monkeypatch, drawn, max_length=limits, count=2, temperature=0.8, top_k=9, top_p=0.9))
    same(*both(model, monkeypatch, drawn, max_length=limits, count=2, min_p=0.1, typical_p=0.8))


@pytest.mark.parametrize("name", ["transformer", "gru, attention"])
@pytest.mark.parametrize("stop", ["best", "full", "worst", "never"])
def test_sources_leave_as_they_are_done(name: str, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = torch.tensor([3, 9, 17, 33, 66, 2, 2, 2, 5])
    found = both(
        made(name), monkeypatch, beam_search, 9, max_length=limits.clamp(max=40), width=2, nbest=2, stop=stop
    )
    same(*found)
    assert len(set(found[0].lengths[:, 0].tolist())) > 3


@pytest.mark.parametrize("search", [greedy_search, beam_search, drawn])
def test_rules_hold(search: Callable[..., Hypotheses], monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [prefix([9, 8], free=1), least_length(5, EOS), no_repeat(2)]
    more = {"width": 4, "nbest": 2, "length_penalty": 0.6} if search is beam_search else {}
    found, want = both(made("transformer"), monkeypatch, search, rules=rules, max_length=37, **more)
    same(found, want)
    assert found.tokens[:, 0, :2].tolist() == [[9, 8]] * 5
    assert int(found.lengths.min()) >= 6


def test_programs_are_used_again_and_forget_the_search_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made("transformer")
    for count in (3, 4, 3):  # both in the program of four sources
        same(*both(model, monkeypatch, beam_search, count, max_length=20, width=2))
    kept = programs.programs_of(model)._kept
    assert len({key[2][0][0][0] for key in kept}) < 4 and len(kept) <= 3
    with torch.no_grad():
        next(model.parameters()).add_(0.1)  # an optimiser's step is seen
    same(*both(model, monkeypatch, beam_search, 3, max_length=20, width=2))


def test_searches_may_alternate_between_inference_mode_and_no_grad(monkeypatch: pytest.MonkeyPatch) -> None:
    model, more = made("transformer"), {"max_length": 12, "rules": [no_repeat(2)], "width": 2}
    found, want = both(model, monkeypatch, beam_search, **more)
    with torch.inference_mode():
        same(*both(model, monkeypatch, beam_search, **more))
        twin, _ = both(model, monkeypatch, beam_search, max_length=13, rules=[no_repeat(2)], width=2)
    same(found, want)
    same(*both(model, monkeypatch, beam_search, **more))
    assert twin.tokens.shape[0] == 5


def test_a_sampler_draws_as_often_as_the_plain_loop() -> None:
    after = []
    model = made("gru, attention")
    for recorded in (False, True):
        chance = torch.Generator().manual_seed(3)
        how: dict[str, Any] = {"max_length": 30, "generator": chance, "recorded": recorded}
        with torch.no_grad():
            sample(model.step, model.start(*sources(4)), torch.full((4,), 2), eos=EOS, **how)
        after.append(chance.get_state())
    assert torch.equal(*after)


def test_faults_are_those_of_the_plain_loop() -> None:
    model = made("transformer")
    with torch.no_grad():
        model.embed.table.weight[5:].fill_(torch.nan)
    for search, more in ((greedy_search, {}), (beam_search, {"width": 2}), (drawn, {})):
        with torch.no_grad(), pytest.raises(ValueError, match="NaN"):
            state = model.start(torch.full((2, 3), 4), torch.ones(2, 3, dtype=torch.bool))
            search(model.step, state, torch.full((2,), 2), eos=EOS, max_length=20, recorded=True, **more)


def test_what_has_no_fixed_state_is_left_to_the_plain_loop() -> None:
    grown = lambda token, state: (torch.zeros(len(token), V).log_softmax(1), state)  # noqa: E731
    asked = SearchRequest(torch.tensor([2]), torch.tensor([4]), EOS, ())
    assert captured.captured_search(grown, None, asked) is None
    model = made("learned")
    with torch.no_grad():
        state = model.start(*sources(1))
        asked = asked._replace(limits=torch.tensor([90]))  # more than its 64 positions
        assert captured.captured_search(model.step, state, asked) is None


class OnlyOn(TorchDispatchMode):
    """No operation asks for a value, makes a tensor from Python's numbers, or touches another device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    asks = ("_local_scalar_dense", "is_nonzero", "nonzero", "equal", "item", "lift_fresh", "unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.asks, name
        found = func(*args, **(kwargs or {}))
        for each in (*args, *(found if isinstance(found, tuple) else (found,))):
            if isinstance(each, Tensor):
                assert each.device.type == self.device, f"{name}: {each.device}"
        return found


@pytest.mark.parametrize("name", leading(MODELS, 3))
@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_a_step_asks_for_no_value_and_stays_on_its_device(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "_compiled", lambda _: False)
    model, width = made(name), 1 if kind == "greedy" else 3
    tokens, mask = sources(2)
    limits = torch.tensor([9, 9])
    draw = SamplingRule(NARROW, torch.Generator()) if kind == "sample" else None
    norm = torch.ones(10, dtype=torch.float64) if kind == "beam" else None
    asked = SearchRequest(torch.full((2,), 2), limits, EOS, (0, 1), width, norm=norm, draw=draw)
    chooser = Chooser(asked, 32)
    with torch.no_grad():
        state = fan(model.start(tokens, mask), width)
        logp, state = model.step(torch.full((2 * width,), 2), state)
        state, _ = model.fixed(state, width, 8)
        board, constants = chooser.board(), chooser.constants(V)
        time, uniform = torch.ones(1, dtype=torch.int64), torch.zeros(2, width, dtype=torch.float64)
        if kind == "beam":
            board, _ = chooser.choose(board, logp[::width], time, None, constants)
        program = programs.Program(chooser, state, board, constants)
        program.load(state, board, constants, 2)
        assert program.fits(model.step)
        device = "cpu" if "rwkv7" in name else "meta"  # autocast knows no meta device
        model.to(device)
        state, board, constants, time, uniform = (
            tree_map(lambda leaf: leaf.to(device), tree) for tree in (state, board, constants, time, uniform)
        )
        program = programs.Program(chooser, state, board, Constants(*constants))
        program.time, program.uniform = time, uniform
        program.load(state, board, constants, 2)
        with OnlyOn(device):
            program._read(model.step)
            program._choose()
        assert programs.signature(program._next) == programs.signature(state)
        assert all(leaf.device.type == device for leaf in leaves(program.state))


class Graph:
    """Replays a function, as a CUDA graph does; or does nothing."""

    def __init__(self, replay: Callable[[], None]) -> None:
        self.replay = replay


@pytest.mark.parametrize("stale", [False, True])
def test_a_recorded_step_is_compared_with_the_step_itself(
    stale: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(self: programs.Program, step: Any, pool: Any) -> None:
        self._graphs = [Graph(lambda: None if stale else self._read(step)), Graph(self._choose)]

    model = made("transformer")
    monkeypatch.setattr(programs.Program, "record", record)
    same(*both(model, monkeypatch, beam_search, max_length=20, width=2))  # read by the step itself
    if not stale:
        return same(*both(model, monkeypatch, beam_search, max_length=20, width=2))  # replayed
    asked = SearchRequest(torch.full((5,), 2), torch.full((5,), 20), EOS, ())
    with torch.no_grad():
        assert captured.captured_search(model.step, model.start(*sources(5)), asked) is not None
        with pytest.warns(UserWarning, match="differed from the step itself"):
            assert captured.captured_search(model.step, model.start(*sources(5, 8)), asked) is None
    return None


def test_a_model_that_cannot_be_recorded_is_searched_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: programs.Program, step: Any, pool: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(programs.Program, "record", fails)
    model, asked = made("transformer"), SearchRequest(torch.full((2,), 2), torch.tensor([9, 9]), EOS, ())
    with torch.no_grad():
        first = captured.captured_search(model.step, model.start(*sources(2)), asked)
        assert first is not None  # not recorded before its shapes come again
        with pytest.warns(UserWarning, match="step by step on this GPU: operation not permitted"):
            assert captured.captured_search(model.step, model.start(*sources(2)), asked) is None
        assert captured.captured_search(model.step, model.start(*sources(2)), asked) is None


def test_a_step_keeps_no_cast_that_ends_with_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inner, kept = made("gru, attention"), Generator.step, []

    def step(self: Generator, token: Tensor, state: Any) -> Any:
        kept.append(torch.is_autocast_cache_enabled())
        return inner(self, token, state)

    monkeypatch.setattr(Generator, "step", step)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        state = model.start(*sources(3))
        greedy_search(model.step, state, torch.full((3,), 2), eos=EOS, max_length=5, recorded=True)
        assert torch.is_autocast_cache_enabled()
    assert kept[0] and len(kept) > 2 and not any(kept[1:])  # the first step is not recorded


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: no graph was recorded")
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_graphs_are_recorded_and_find_what_the_plain_loop_finds(name: str) -> None:
    model = made(name).cuda()
    tokens, mask = (part.cuda() for part in sources(5))
    first = torch.full((5,), 2, device="cuda")

    def run(search: Callable[..., Hypotheses], **more: Any) -> Hypotheses:
        with torch.inference_mode():
            state = model.start(tokens, mask)
            found = search(model.step, state, first, eos=EOS, max_length=40, banned=(0, 1, 2), **more)
        return Hypotheses(*(part.cpu() for part in found))

    for search, more in ((greedy_search, {}), (beam_search, {"width": 3, "nbest": 3})):
        want = run(search, **more)
        for _ in range(3):  # the shapes come again, are recorded, and are replayed
            same(run(search, recorded=True, **more), want)
    kept = programs.programs_of(model)._kept
    assert any(program is not None and program._graphs for program in kept.values())
