"""Law 7 for whole searches: compiled code finds the tokens and scores of the plain loops."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.nn.decoders import FORMS
from tests.nn.ways import COMPILED
from tests.search.models import EOS, LONGEST, RECURRENT, SOS, SOURCES, WORDS, found, generator, same, sources
from tests.slow import leading
from weft import native
from weft.errors import ConfigError, ShapeError
from weft.models import Generator
from weft.nn.cells.elman import Elman
from weft.nn.cells.gru import GRU
from weft.nn.kernels import choice
from weft.probe import probe
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.step import least_length, prefix
from weft.tasks.language.decoding import StepReader
from weft.tasks.seq2seq.batch_search import rounded

pytestmark = pytest.mark.skipif(
    native.loaded("searching").library is None, reason=native.loaded("searching").reason
)
compiled_ways = pytest.mark.parametrize("way", leading(COMPILED))

SETTINGS: dict[str, dict[str, Any]] = {
    "one": {"width": 1},
    "five": {"width": 5},
    "best": {"width": 4, "nbest": 4, "length_penalty": 0.0},
    "gnmt": {"width": 3, "nbest": 2, "normalisation": "gnmt", "length_penalty": 0.7},
    "patient": {"width": 3, "patience": 2.0, "stop": "worst"},
    "worst": {"width": 2, "stop": "worst", "length_penalty": 1.5},
    "full": {"width": 2, "stop": "full", "length_penalty": 1.5},
    "never": {"width": 2, "stop": "never", "nbest": 2},
    "banned": {"width": 3, "banned": (5, 11, 3)},
    "one step": {"width": 3, "nbest": 3, "max_length": 1},
    "limits": {"width": 3, "nbest": 2, "max_length": torch.tensor([1, 13, 2, 5, 8, 3, 9])},
}


@compiled_ways
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", ["transformer", "hybrid"])
def test_a_beam_by_compiled_code_is_the_plain_one(
    setting: str, kind: str, way: str, counted: list[bool]
) -> None:
    model = generator(kind)
    with choice.use(fused=way):  # type: ignore[arg-type]
        mine = found(model, plain=False, **SETTINGS[setting])
    with choice.use(fused="torch"):
        true = found(model, plain=True, **SETTINGS[setting])
    same(mine, true)
    assert counted == [True]
    if "max_length" not in SETTINGS[setting]:
        assert len(set(mine.lengths.flatten().tolist())) > 2  # sources end at different times


@compiled_ways
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("looks", [True, False], ids=["looks", "alone"])
def test_every_form_of_decoder_writes_what_it_writes_step_by_step(
    form: str, looks: bool, way: str, counted: list[bool]
) -> None:
    model = generator(looks=looks, **FORMS[form])
    with choice.use(fused=way):  # type: ignore[arg-type]
        mine = found(model, plain=False, width=4)
        one = found(model, plain=False, search="greedy", banned=(7,))
    with choice.use(fused="torch"):
        same(mine, found(model, plain=True, width=4))
        same(one, found(model, plain=True, search="greedy", banned=(7,)))


@compiled_ways
@pytest.mark.parametrize("form", RECURRENT)
def test_every_recurrent_decoder_writes_what_it_writes_step_by_step(
    form: str, way: str, counted: list[bool]
) -> None:
    model = generator("recurrent", **RECURRENT[form])
    with choice.use(fused=way):  # type: ignore[arg-type]
        mine = found(model, plain=False, width=4, nbest=2)
        one = found(model, plain=False, search="greedy", banned=(7,))
    with choice.use(fused="torch"):
        same(mine, found(model, plain=True, width=4, nbest=2))
        same(one, found(model, plain=True, search="greedy", banned=(7,)))
    assert counted == [True] * 2


@pytest.mark.parametrize(
    "form", [{"cell": Elman}, {"cell": partial(GRU, reset="before")}, {"weights": "sparsemax"}], ids=str
)
def test_other_recurrent_decoders_are_called_step_by_step(form: dict[str, Any], counted: list[bool]) -> None:
    found(generator("recurrent", sizes=(17,), **form), plain=False, width=2)
    assert counted == []


@compiled_ways
def test_of_equal_hypotheses_both_take_the_same(way: str, counted: list[bool]) -> None:
    model = generator()
    with torch.no_grad():  # every word but the end has a twin of equal probability and meaning
        for part in (model.head.weight, model.head.bias, model.embed.table.weight):
            part[5::2] = part[4:-1:2]
    how = {"width": 4, "nbest": 4}
    with choice.use(fused=way):  # type: ignore[arg-type]
        mine, true = found(model, plain=False, **how), found(model, plain=True, **how)
    same(twins_as_one(mine), twins_as_one(true))
    if torch.equal(mine.score, true.score):
        # not on AVX2, where how a row is rounded depends on its place in the batch, which breaks the ties
        assert torch.equal(mine.tokens, true.tokens) and len(set(mine.score[0].tolist())) < 4
    assert counted == [True]


def twins_as_one(hypotheses: Hypotheses) -> Hypotheses:
    """With the even one of the twins 4 and 5, 6 and 7, and so on."""
    tokens = hypotheses.tokens
    return hypotheses._replace(tokens=torch.where(tokens < 4, tokens, tokens // 2 * 2))


@pytest.mark.parametrize("search", ["beam", "greedy"])
def test_a_prefix_and_a_least_length_are_kept(search: str, counted: list[bool]) -> None:
    model = generator()
    rules = [prefix([9, 30, 4], free=1), least_length(6, EOS)]
    how = {"search": search, "rules": rules} | ({"width": 3, "nbest": 2} if search == "beam" else {})
    mine = found(model, plain=False, **how)
    same(mine, found(model, plain=True, **how))
    assert counted == [True]
    assert mine.tokens[:, :, :3].unique(dim=0).tolist() == [[[9, 30, 4]] * (2 if search == "beam" else 1)]
    assert int(mine.lengths.min()) > 6


def test_what_compiled_code_does_not_serve_is_left_to_the_plain_loop(counted: list[bool]) -> None:
    model = generator()
    found(model, plain=False, width=3, rules=[lambda logp, written: logp])
    found(generator(positions="rotary"), plain=False, width=3)
    found(generator(positions="learned", max_length=5), plain=False, width=2, max_length=5)
    with probe():
        found(model, plain=False, width=3)
    with choice.use(fused="torch"):
        found(model, plain=False, width=3)
    found(model.double(), plain=False, width=3)
    assert counted == [True]  # five learned positions suffice for five tokens


def test_broken_weights_are_told_as_by_the_plain_loop() -> None:
    model = generator()
    with torch.no_grad():
        model.head.bias[4] = torch.nan
    sampled = {"search": "sample", "generator": torch.Generator()}
    for how in ({"search": "greedy"}, {"width": 2}, sampled):
        with pytest.raises(ConfigError, match="step 1, row 0: a log-probability is NaN"):
            found(model, plain=False, **how)
    for how in ({"search": "greedy"}, sampled):
        with pytest.raises(ConfigError, match="every token has probability zero"):
            found(generator(), plain=False, banned=tuple(range(WORDS)), **how)
    with pytest.raises(ConfigError, match="banned token"):
        found(generator(), plain=False, width=2, banned=(WORDS,))


def test_two_threads_find_what_one_finds() -> None:
    model, before = generator(), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = found(model, plain=False, width=3)
        torch.set_num_threads(2)
        two = found(model, plain=False, width=3)
    finally:
        torch.set_num_threads(before)
    same(two, one)


def test_long_texts_outgrow_the_first_cache() -> None:
    model = generator(num_layers=1)
    model.head.bias.data[EOS] = -20.0
    how = {"width": 3, "nbest": 2, "max_length": 101}
    mine = found(model, plain=False, **how)
    same(mine, found(model, plain=True, **how), 1e-4)  # a sum of 101 terms
    assert int(mine.lengths.min()) > 64


def test_a_search_can_be_stopped_between_steps() -> None:
    class Stopped(Exception):
        pass

    calls: list[int] = []

    def stop() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise Stopped

    model = generator()
    model.between_steps = stop
    model.head.bias.data[EOS] = -20.0
    with pytest.raises(Stopped):
        found(model, plain=False, width=3, max_length=300)


@torch.no_grad()
def test_a_model_with_a_step_of_its_own_is_asked_for_each(counted: list[bool]) -> None:
    class Own(Generator):
        def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
            logp, state = super().step(token, state)
            return logp.roll(1, 1), state

    model = generator()
    before = found(model, plain=False, width=3)
    model.__class__ = Own
    assert not torch.equal(found(model, plain=False, width=3).tokens[0, 0, :1], before.tokens[0, 0, :1])
    assert counted == [True]


def test_an_untouched_state_can_be_searched_twice() -> None:
    model = generator()
    with torch.no_grad():
        state, first = model.start(*sources()), torch.full((SOURCES,), SOS)
        one = beam_search(model.step, state, first, eos=EOS, max_length=LONGEST, width=3)
        again = beam_search(model.step, state, first, eos=EOS, max_length=LONGEST, width=3)
    same(again, one, 0.0)


@torch.no_grad()
def logp_of(model: Generator, tokens: Tensor) -> Tensor:
    """The sum of log-probabilities of tokens [B, T] up to the end, step by step."""
    state, token = model.start(*sources()), torch.full((SOURCES,), SOS)
    total, going = torch.zeros(SOURCES, dtype=torch.float64), torch.ones(SOURCES, dtype=torch.bool)
    for written in tokens.unbind(1):
        logp, state = model.step(token, state)
        total += logp.gather(1, written[:, None])[:, 0].double() * going
        token, going = written, going & (written != EOS)
    return total


@pytest.mark.parametrize(
    "precision",
    [
        pytest.param("bfloat16", marks=pytest.mark.skipif(not native.narrow(), reason="no bfloat16 here")),
        pytest.param("int8", marks=pytest.mark.skipif(not native.int8(), reason="no int8 here")),
    ],
)
@pytest.mark.parametrize("kind", ["transformer", "hybrid", "recurrent"])
def test_a_search_in_lower_precision_gives_the_model_s_probabilities(
    kind: str, precision: Any, counted: list[bool]
) -> None:
    model = generator(kind)
    lower = rounded(model, precision)
    for how in ({"width": 3}, {"search": "greedy"}):
        mine = found(lower, plain=False, **how)
        error = (mine.logp[:, 0] - logp_of(model, mine.tokens[:, 0])).abs() / mine.lengths[:, 0]
        theirs = (logp_of(lower, mine.tokens[:, 0]) - logp_of(model, mine.tokens[:, 0])).abs() / mine.lengths[
            :, 0
        ]
        # as far as the plain steps are, or less
        assert float(error.mean()) < 0.05 + 1.5 * float(theirs.mean())
    assert counted == [True] * 2


def test_a_language_model_continues_what_it_has_read(counted: list[bool]) -> None:
    model = generator(looks=False)
    model.prompt = "read"
    ids = sources()[0]
    with torch.no_grad():
        state = model.start(ids, torch.ones_like(ids, dtype=torch.bool))
        first, how = torch.full((SOURCES,), SOS), {"eos": EOS, "max_length": LONGEST, "width": 3}
        mine = beam_search(model.step, state, first, **how)
        same(mine, beam_search(lambda token, state: model.step(token, state), state, first, **how))
    assert counted == []  # its prompt has a mask


def test_a_text_is_continued_by_compiled_code_while_its_window_is_not_full(counted: list[bool]) -> None:
    model, texts = generator(looks=False), sources()[0].tolist()
    how = {"eos": EOS, "max_length": LONGEST, "width": 3}
    for window, served in ((None, True), (5 + LONGEST, True), (4 + LONGEST, False)):
        reader = StepReader(model, window)
        with torch.no_grad():
            state, first = reader.start(texts)  # of six tokens, of which five are read
            mine = beam_search(reader.step, state, first, **how)
            same(mine, beam_search(lambda token, state: reader.step(token, state), state, first, **how))  # noqa: B023
        assert bool(counted) == served
        counted.clear()


def test_a_first_token_that_is_none_is_left_to_the_plain_loop_and_its_error(counted: list[bool]) -> None:
    model = generator()
    for token in (-1, WORDS, 10**12):
        with pytest.raises(ShapeError):
            greedy_search(
                model.step, model.start(*sources()), torch.full((SOURCES,), token), eos=EOS, max_length=3
            )
    assert counted == []
