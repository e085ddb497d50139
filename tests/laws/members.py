"""Every part of every folder, built for tests: found by its file, constructed by its signature.

A new file in weft/nn/cells, scores, encoders, decoders or heads is found here and tested by every law.
Its constructor gets the arguments of the base class (in_size, size, encoder, ...) and those of SMALL
that it accepts. If a part has settings that change the equation, add a line to variants.py.

There is one test per variant: it runs all laws and its error names those that are broken. `make test` runs
the leading variants, `make test-all` every variant.
Read next: test_cells.py.
"""

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.variants import SIZE, VARIANTS
from weft import masks, rooms, tree
from weft.errors import ShapeError
from weft.nn import cells, decoders, encoders, heads, pools, scores
from weft.nn.cells.block import Block
from weft.nn.cells.cell import Cell
from weft.nn.decoders.decoder import Decoder
from weft.nn.encoders.encoder import Encoder
from weft.nn.heads.head import Head
from weft.nn.pools import Pool
from weft.nn.scores import Score

# Different primes, so that confused axes raise errors; sizes of attention heads are products of two.
ROWS, SOURCE, TARGET, READ, WRITE, CLASSES = 5, 7, 11, 3, 2, 17  # and SIZE, 13
SOURCE_LENGTHS = (7, 4, 1, 6, 2)  # always includes a row with a single real position
TARGET_LENGTHS = (11, 1, 5, 8, 3)

SMALL: dict[str, Any] = {"num_heads": 2, "inner": 19, "num_layers": 2, "dropout": 0.0, "max_length": 40}

Make = Callable[..., Any]


def found(room: Any, contract: type, **settings: Any) -> dict[str, Make]:
    """Every variant of every part in a folder, by the name used as test id."""
    name = room.__name__.rsplit(".", 1)[1]
    makes: dict[str, Make] = {}
    for part, kind in rooms.parts(room, contract).items():
        known = inspect.signature(kind).parameters
        for variant in VARIANTS.get(f"{name}.{part}", [{}]):
            given = {key: value for key, value in {**SMALL, **settings}.items() if key in known} | variant
            shown = ",".join(_shown(value) for value in variant.values())
            if f"{part}({shown})" in makes:  # the same value of another setting
                shown = ",".join(f"{key}={_shown(value)}" for key, value in variant.items())
            assert f"{part}({shown})" not in makes
            makes[f"{part}({shown})"] = partial(kind, **given)
    return makes


def _shown(value: Any) -> str:
    if isinstance(value, partial):
        return f"{_shown(value.func)}:{','.join(map(_shown, value.keywords.values()))}"
    return value.__name__.lower() if inspect.isclass(value) else str(value).replace(" ", "")


CELLS: dict[str, Make] = found(cells, Cell)
SCORES: dict[str, Make] = found(scores, Score)
ENCODERS: dict[str, Make] = found(encoders, Encoder)
DECODERS: dict[str, Make] = found(decoders, Decoder)
HEADS: dict[str, Make] = found(heads, Head, num_classes=CLASSES)
POOLS: dict[str, Make] = found(pools, Pool)


def one_of_each(members: dict[str, Make]) -> list[str]:
    """The first variant of each part, and both reset modes of the GRU, whose loops differ."""
    parts = {name.split("(")[0]: name for name in reversed(members)}
    return [name for name in members if name in parts.values() or name == "gru(before)"]


# Beside the first variant of each file, what is built in another way: two directions, a state of matrices, a
# window of the past, input feeding, several layers.
ALSO = {
    "recurrent((13,5),True)",
    "recurrent((13,),both,True)",
    "recurrent((5,13),7,summary,both,True)",
    "recurrent/mlstm(2,3,5)",
    "bag(additive)",
}


def leading(members: dict[str, Make]) -> list[str]:
    """The variants that `make test` runs through all laws."""
    first = one_of_each(members)
    return [name for name in members if name in ALSO or (name in first and "/" not in name)]


def cases(members: dict[str, Make], fast: Collection[str] | None = None) -> pytest.MarkDecorator:
    """A test for each member; those outside `fast` (by default the leading ones) are slow."""
    fast = leading(members) if fast is None else fast
    given = [
        pytest.param(make, id=name, marks=[] if name in fast else [pytest.mark.slow])
        for name, make in members.items()
    ]
    return pytest.mark.parametrize("make", given)


def others(members: dict[str, Make]) -> pytest.MarkDecorator:
    """A test for each member that is not leading."""
    rest = {name: make for name, make in members.items() if name not in leading(members)}
    return pytest.mark.parametrize("make", rest.values(), ids=rest)


def keeps(laws: list[Callable[..., None]], *given: Any) -> None:
    """Run the laws one after the other; the error names all that are broken, its cause is the first."""
    broken: dict[str, Exception] = {}
    for law in laws:
        torch.manual_seed(1)  # as before every test: no law depends on those before it
        try:
            law(*given)
        except Exception as error:  # noqa: BLE001  a part that is wrong may raise anything
            broken[law.__name__] = error
    if broken:
        raise AssertionError(f"broken: {', '.join(broken)}") from next(iter(broken.values()))


def _with_cells_and_scores() -> None:
    recurrent_encoder = rooms.find(encoders, Encoder, "recurrent")
    recurrent_decoder = rooms.find(decoders, Decoder, "recurrent")
    for name in one_of_each(CELLS):
        cell = CELLS[name]
        ENCODERS[f"recurrent/{name}"] = partial(
            recurrent_encoder, sizes=(SIZE, 5), cell=cell, bidirectional=True
        )
        # the output of Mamba grows with the fifth power of its input, that of RWKV-7 with the third: they
        # explode when they are fed back
        fed = partial(Block, cell=cell) if name.startswith(("mamba", "rwkv7")) else cell
        DECODERS[f"recurrent/{name}"] = partial(
            recurrent_decoder, sizes=(3, SIZE), cell=fed, enters="both", input_feeding=True
        )
    for name, score in SCORES.items():
        keys = {"key_size": SIZE} if needs_equal_sizes(score) else {}
        DECODERS[f"recurrent/{name}"] = partial(recurrent_decoder, sizes=(SIZE,), score=score, **keys)


def needs_equal_sizes(score: Make) -> bool:
    """Whether this score requires queries and keys of the same size."""
    try:
        score(SIZE, READ)
    except ShapeError:
        return True
    return False


_with_cells_and_scores()


def ready(make: Callable[[], nn.Module], dtype: torch.dtype = torch.float64, seed: int = 3) -> Any:
    """A member in evaluation mode with random parameters: none remains zero or one."""
    module = make().to(dtype).eval()
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data.copy_(0.4 * drawn)
    return module


def normal(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers from N(0, 1), always the same for a seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def source(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """x [B, S, D] with large values as padding, and its mask."""
    mask = masks.from_lengths(torch.tensor(SOURCE_LENGTHS), SOURCE)
    return loud(normal(ROWS, SOURCE, READ, dtype=dtype), mask), mask


def target() -> tuple[Tensor, Tensor]:
    """x [B, T, D] with large values as padding, and its mask."""
    mask = masks.from_lengths(torch.tensor(TARGET_LENGTHS), TARGET)
    return loud(normal(ROWS, TARGET, WRITE, seed=2), mask), mask


def loud(x: Tensor, mask: Tensor) -> Tensor:
    """Set padding to 50, among values around 1, so that using it changes results."""
    return x.masked_fill(~mask[..., None], 50.0)


def close(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    """Assert that two trees of tensors are equal up to the tolerance."""
    gots, wants = list(tree.leaves(got)), list(tree.leaves(want))
    assert len(gots) == len(wants) > 0
    for one, other in zip(gots, wants, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


class _Run(nn.Module):
    def __init__(self, module: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.module = module
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def gradcheck(module: nn.Module, function: Callable[..., Any], *inputs: Tensor) -> None:
    """Law 5: derivatives of `function`, which calls `module`, by its inputs and by all parameters.

    Projected on random directions (fast mode), so that a check needs a few calls instead of thousands.
    """
    run = _Run(module, function)
    names, sizes = [], []
    for name, parameter in run.named_parameters():
        names.append(name)
        sizes.append(parameter.shape)
    flat = torch.cat([torch.zeros(0, dtype=torch.float64), *(p.detach().flatten() for p in run.parameters())])

    def outputs(flat: Tensor, *inputs: Tensor) -> Any:
        parts = flat.split([size.numel() for size in sizes])
        given = {name: part.view(size) for name, part, size in zip(names, parts, sizes, strict=True)}
        return torch.func.functional_call(run, given, inputs)

    wanted = [leaf.detach().clone().requires_grad_() for leaf in (flat, *inputs) if leaf.numel()]
    if not names:
        assert torch.autograd.gradcheck(function, wanted, fast_mode=True)
    else:
        assert torch.autograd.gradcheck(outputs, wanted, fast_mode=True)


def near(got: Tensor, want: Tensor, share: float) -> None:
    """Assert that the error's norm is at most this fraction of the norm of the expected value."""
    assert float((got - want).detach().norm()) <= share * float(want.detach().norm())
