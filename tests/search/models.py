"""Random models of every kind, and searches with them by compiled code or step by step."""

from typing import Any

import torch
from torch import Tensor, nn

from weft.models import Generator
from weft.nn.cells.gru import GRU
from weft.nn.cells.ssru import SSRU
from weft.nn.decoders.hybrid import HybridDecoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.scores import Bilinear, Dot, ScaledScore
from weft.search.beam import beam_search
from weft.search.greedy import greedy_search
from weft.search.hypotheses import Hypotheses
from weft.search.sampling import sample

WORDS, SOS, EOS, SOURCES, LONGEST = 37, 1, 2, 7, 13
RECURRENT: dict[str, dict[str, Any]] = {
    "lstm": {"sizes": (23, 29)},
    "gru": {"cell": GRU, "sizes": (31,), "score": Dot, "key_size": 31, "input_feeding": True},
    "ssru": {"cell": SSRU, "sizes": (24, 24), "score": ScaledScore, "residual": True},
    "fed": {"sizes": (29,), "input_feeding": True, "readout_activation": "none"},
    "input": {"cell": GRU, "sizes": (23, 29), "enters": "input"},
    "both": {"sizes": (17,), "enters": "both", "input_feeding": True, "score": Bilinear, "readout": 0},
    "both, ssru": {"cell": SSRU, "sizes": (29,), "enters": "both", "value_size": 13},
    "never": {"sizes": (29,), "enters": "never"},
}
CHARACTERS = {"transformer": (0.2, 2.0), "hybrid": (0.4, 0.0), "recurrent": (0.4, 0.5)}
"""By the decoder's kind, the spread of the output layer's weights and the bias of the end: with these
the texts of a random model end after 1 to 13 tokens, and differ."""


def generator(kind: str = "transformer", *, looks: bool = True, **form: Any) -> Generator:
    """A random model."""
    torch.manual_seed(5)
    encoder = TransformerEncoder(20, size=24, num_heads=2, num_layers=1) if looks else None
    sizes = form if kind == "recurrent" else {"size": 48, "num_heads": 4, "num_layers": 2} | form
    make = {"transformer": TransformerDecoder, "hybrid": HybridDecoder, "recurrent": RecurrentDecoder}[kind]
    decoder = make(20, encoder, **sizes)
    words = Tokens(WORDS, 20), Tokens(WORDS, 20)
    model = Generator(
        words[0], decoder, Categorical(decoder.size, WORDS), encoder=encoder, source_embed=words[1]
    )
    spread, end = CHARACTERS[kind]
    torch.manual_seed(5)
    for name, parameter in model.named_parameters():
        if "norm" not in name or not name.endswith("weight"):
            nn.init.normal_(parameter, std=0.3 if parameter.dim() > 1 else 0.1)
    for table in words:
        nn.init.normal_(table.table.weight)
    nn.init.normal_(model.head.weight, std=spread)
    model.head.bias.data[EOS] += end
    return model.eval()


def sources(seed: int = 2) -> tuple[Tensor, Tensor]:
    ids = torch.randint(4, WORDS, (SOURCES, 6), generator=torch.Generator().manual_seed(seed))
    mask = torch.ones(SOURCES, 6, dtype=torch.bool)
    mask[1, 4:], mask[3, 1:] = False, False
    return ids, mask


@torch.no_grad()
def found(model: Generator, *, plain: bool, search: str = "beam", rules: Any = (), **how: Any) -> Hypotheses:
    """By compiled code, or step by step: a function that only calls the step has no whole one."""
    how = {"max_length": LONGEST} | how
    state = model.start(*sources())
    step = (lambda token, state: model.step(token, state)) if plain else model.step
    first = torch.full((SOURCES,), SOS)
    return {"beam": beam_search, "greedy": greedy_search, "sample": sample}[search](
        step, state, first, eos=EOS, rules=rules, **how
    )


def same(mine: Hypotheses, true: Hypotheses, tolerance: float = 2e-5) -> None:
    assert torch.equal(mine.tokens, true.tokens)
    assert torch.equal(mine.lengths, true.lengths)
    assert mine.tokens.dtype == mine.lengths.dtype == torch.int64
    there = true.score > -torch.inf
    assert torch.equal(mine.score > -torch.inf, there)
    for one, other in ((mine.logp, true.logp), (mine.score, true.score)):
        assert one.dtype == torch.float64
        assert bool(((one - other)[there].abs() <= tolerance * other[there].abs().clamp(min=1)).all())
