"""Transformer decoders of every form, and a search by them, for the tests of compiled search steps."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.laws.members import normal
from weft import native
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.kernels import choice
from weft.tree import fan, keep_sources, reorder

SOURCES, BEAM, FEATURES = 3, 4, 20
WIDE_HEAD = 100
FORMS: dict[str, dict[str, Any]] = {
    "before": {},
    "after": {"norm": "after"},
    "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "silu": {"activation": "silu"},
    "swiglu": {"activation": "swiglu"},
    "rms": {"norm_kind": "rms", "norm_epsilon": 1e-3},
    "no bias": {"bias": False},
    "learned positions": {"positions": "learned"},
    "odd sizes": {"size": 42, "num_heads": 3, "inner": 50},
    "wide": {"size": 2 * WIDE_HEAD, "num_heads": 2, "inner": 333},
}


def decoder(dtype: torch.dtype = torch.float32, *, looks: bool = True, **form: Any) -> nn.ModuleDict:
    torch.manual_seed(3)
    size = {"size": 48, "num_heads": 4, "num_layers": 2} | form
    encoder = TransformerEncoder(FEATURES, size=24, num_heads=2, num_layers=1)
    found = nn.ModuleDict({"encoder": encoder})
    found["decoder"] = TransformerDecoder(FEATURES, encoder if looks else None, **size)
    for parameter in found.parameters():
        nn.init.normal_(parameter, std=0.3)
    return found.to(dtype).eval()


@torch.no_grad()
def searched(model: nn.ModuleDict, way: str, *, looks: bool = True, steps: int = 9) -> list[Tensor]:
    """The outputs of a search: one hypothesis, then a beam whose places change, then fewer sources."""
    encoder, write = model["encoder"], model["decoder"]
    dtype = next(model.parameters()).dtype
    chance = torch.Generator().manual_seed(7)
    mask = torch.ones(SOURCES, 6, dtype=torch.bool)
    mask[1, 4:] = False
    memory = encoder(normal(SOURCES, 6, FEATURES, dtype=dtype), mask) if looks else None
    with choice.use(fused=way):  # type: ignore[arg-type]
        state = write.start(memory, SOURCES)
        y, state = write(normal(SOURCES, 1, FEATURES, seed=1, dtype=dtype), state)
        found, state = [y], fan(state, BEAM)
        for time in range(steps):
            y, state = write(normal(SOURCES * BEAM, 1, FEATURES, seed=2 + time, dtype=dtype), state)
            found.append(y)
            places = torch.randint(0, BEAM, (SOURCES, BEAM), generator=chance)
            state = reorder(state, (places + BEAM * torch.arange(SOURCES)[:, None]).flatten())
        state = keep_sources(state, torch.tensor([0, 2]), BEAM)
        y, state = write(normal(2 * BEAM, 1, FEATURES, seed=99, dtype=dtype), state)
    return [*found, y]


def calls_of(model: nn.ModuleDict, looks: bool, way: str = "native") -> int:
    """How often a search calls the compiled step."""
    real, library, count = native.loaded, native.loaded("decoding"), 0

    class Counted:
        def __getattr__(self, name: str) -> Any:
            function = getattr(library.library, name)

            def counted(job: Any, start: Any) -> None:
                nonlocal count
                count += not job._obj.whole  # an encoder's call is no step
                function(job, start)

            return counted if name == "weft_decode" else function

    counted = library._replace(library=Counted())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            native, "loaded", lambda source="cells": counted if source == "decoding" else real(source)
        )
        searched(model, way, looks=looks)
    return count
