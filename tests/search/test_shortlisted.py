"""Searches of a few tokens: unchanged where all are kept, and in compiled code as step by step."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.nn.ways import COMPILED
from tests.search.models import EOS, LONGEST, SOS, SOURCES, WORDS, found, generator, same, sources
from tests.slow import leading
from weft import native
from weft.errors import ConfigError
from weft.models import Generator
from weft.nn.kernels import choice
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.sampling import sample
from weft.tasks.seq2seq.batch_search import ShortlistModel, places, rounded

KINDS = ["transformer", "hybrid", "recurrent"]
KEPT = torch.tensor([0, 1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31])
SEARCHES: dict[str, Any] = {
    "greedy": greedy_search,
    "beam": partial(beam_search, width=4, nbest=3),
    "sampled": lambda *given, **how: sample(
        *given, count=2, generator=torch.Generator().manual_seed(3), **how
    ),
}


@torch.no_grad()
def short(model: Generator, kept: Tensor, search: str, **how: Any) -> Hypotheses:
    """What a search for some tokens finds."""
    first = torch.full((SOURCES,), SOS)
    few, state = ShortlistModel(model, kept), model.start(*sources())
    result = SEARCHES[search](few.step, state, first, eos=EOS, max_length=LONGEST, **how)
    return result._replace(tokens=kept[result.tokens])


class Few(Generator):
    """The twin: log-probabilities of all tokens, renormalised over the kept ones."""

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]:
        logp, state = super().step(token, state)
        out = torch.ones(WORDS, dtype=torch.bool)
        out[KEPT] = False
        return logp.double().masked_fill(out, -torch.inf).log_softmax(1).to(logp.dtype), state


@pytest.mark.parametrize("way", [*leading(COMPILED), "torch"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_shortlist_of_every_token_changes_nothing(kind: str, search: str, way: Any) -> None:
    model = generator(kind)
    how = {"beam": {"width": 4, "nbest": 3}, "greedy": {}}.get(search)
    with choice.use(fused=way):
        mine = short(model, torch.arange(WORDS), search)
        drawn = {"search": "sample", "count": 2, "generator": torch.Generator().manual_seed(3)}
        true = found(model, plain=False, **({"search": search} | how if how is not None else drawn))
    same(mine, true, 0.0)


@pytest.mark.parametrize("way", [*leading(COMPILED), "torch"])
@pytest.mark.parametrize("search", ["greedy", "beam"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_kept_tokens_are_written_as_if_the_others_were_impossible(
    kind: str,
    search: str,
    way: Any,
    counted: list[bool],
) -> None:
    model = generator(kind)
    with choice.use(fused=way):
        mine = short(model, KEPT, search, banned=(4,))
        true = model
        true.__class__ = Few
        how = {"width": 4, "nbest": 3} if search == "beam" else {}
        same(mine, found(true, plain=True, search=search, banned=(int(KEPT[4]),), **how))
    assert set(mine.tokens.flatten().tolist()) <= {*KEPT.tolist()} - {int(KEPT[4])}
    assert counted == [True] * (way != "torch")


@pytest.mark.parametrize("kind", KINDS)
def test_two_shortlists_after_each_other_do_not_mix(kind: str) -> None:
    model = generator(kind)
    other = torch.tensor([0, 1, 2, 3, 4, 6, 8, 9, 10, 12, 14, 15, 16])
    first = short(model, KEPT, "beam")
    for kept in (other, KEPT, torch.arange(WORDS)):
        mine = short(model, kept, "beam")
        assert set(mine.tokens.flatten().tolist()) <= set(kept.tolist())
    same(short(model, KEPT, "beam"), first, 0.0)


@pytest.mark.skipif(not native.narrow(), reason="no products in bfloat16 here")
@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_in_every_precision_a_shortlist_of_every_token_changes_nothing(
    kind: str,
    precision: Any,
    counted: list[bool],
) -> None:
    model = rounded(generator(kind), precision)
    for search, how in (("greedy", {}), ("beam", {"width": 4, "nbest": 3})):
        mine = short(model, torch.arange(WORDS), search)
        same(mine, found(model, plain=False, search=search, **how), 0.0)
    assert counted == [True] * 4


def test_an_output_layer_without_rows_and_a_step_of_its_own_are_refused() -> None:
    model = generator()
    model.__class__ = Few
    with pytest.raises(ConfigError, match="shortlist: not supported by this output layer"):
        ShortlistModel(model, KEPT)


def test_tokens_that_are_not_kept_have_no_place() -> None:
    assert places(np.array([2, 3, 7, 11]), [11, 12, 2, 4, 0, 7]) == [3, 0, 2]
    assert places(np.array([2, 3]), []) == []
