"""The settings of parts that change their equations, so that every law covers them; see members.py."""

from functools import partial
from typing import Any

from weft.nn.attention import Heads
from weft.nn.cells.coupled import Coupled
from weft.nn.cells.gru import GRU
from weft.nn.cells.s4d import S4D
from weft.nn.cells.variational import Variational
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.scores import Dot

SIZE = 13  # features of a cell's output, a prime unlike the sizes in members.py

MATRIX = {"num_heads": 2, "key_size": 3, "value_size": 5}  # no norm of one number, whatever the size

TRANSFORMER: list[dict[str, Any]] = [
    {"size": 6},
    {"size": 14, "norm": "after", "activation": "gelu"},
    {"size": 10, "activation": "swiglu", "positions": "learned"},
    {"size": 12, "positions": "rotary", "norm_kind": "rms", "bias": False},
    {"size": 6, "positions": "alibi", "norm": "after", "activation": "silu", "entry_norm": True},
    {"size": 10, "positions": "relative", "activation": "gelu_tanh"},
    {"size": 6, "positions": "concatenated", "position_base": 100.0},
    {"size": 12, "num_heads": 6, "positions": "rotary", "heads": Heads(key_value=3, size=4, norm=True)},
    {"size": 10, "num_heads": 3, "positions": "relative", "heads": Heads(size=4), "activation": "geglu"}
    | {"norm_kind": "rms", "bias": False},
]
WINDOWS = {"window": 2, "global_every": 2, "window_base": 100.0, "entry_norm": True, "first_norm": False}
ENCODER = {"size": 12, "positions": "rotary", "activation": "geglu_exact", **WINDOWS}

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "cells.retention": [MATRIX],
    "cells.gla": [MATRIX],
    "cells.hgrn2": [MATRIX, MATRIX | {"lower_bound": 0.3}],
    "cells.mlstm": [MATRIX, MATRIX | {"cap": 2.0}],
    "cells.delta": [MATRIX, MATRIX | {"convolution": 0, "negative": True}],
    "cells.gated_delta": [MATRIX, MATRIX | {"negative": True}],
    "cells.ssd": [MATRIX],
    "cells.rwkv7": [MATRIX, {"num_heads": 1, "key_size": 3, "value_size": 2, "first_values": True}],
    "cells.rwkv7_layers": [MATRIX | {"network": 11, "rank": 3}],
    "cells.stepwise": [{}, {"hidden": 5, "activation": "maxout", "output": "softmax"}],
    "cells.elman": [{"activation": name} for name in ("tanh", "relu", "maxout", "elu", "modrelu")],
    "cells.jordan": [{}, {"hidden": 5, "activation": "leaky_relu", "output": "maxout"}],
    "cells.lstm": [
        *({}, {"candidate": "sigmoid"}, {"normalised": True}, {"forget_gate": False}),
        *({"input_gate": False}, {"forget_gate": False, "input_gate": False}),
    ],
    "cells.peephole": [
        {"form": "diagonal"},
        {"form": "full"},
        {"form": "full", "gates": ("output", "forget"), "normalised": True},
        {"form": "diagonal", "gates": ("input",), "candidate": "sigmoid"},
    ],
    "cells.coupled": [{}, {"candidate": "sigmoid"}, {"normalised": True}],
    "cells.gru": [
        {"reset": "after"},
        {"reset": "before"},
        {"reset": "after", "candidate": "sigmoid"},
        {"reset": "after", "normalised": True},
        {"reset": "before", "normalised": True},
    ],
    "cells.sru": [{}, {"peephole": True}],
    "cells.block": [
        {},
        {"cell": GRU, "convolution": 2, "gate": "input", "gate_activation": "silu", "network": 5},
        {"cell": partial(S4D, num_states=2), "inner": 7, "convolution": 3, "gate": "output", "norm": "layer"},
    ],
    "cells.local_attention": [
        {"num_heads": 1, "window": window} for window in (9, 3)
    ],  # more heads: tests/oracles/test_blocks.py
    "cells.mamba": [{"inner": 11, "num_states": 3, "rank": 2}],
    "cells.slstm": [
        {"num_heads": 1},
        {"num_heads": 1, "forget": "exponential"},
        {"num_heads": 1, "norm": True, "convolution": 3},
    ],
    "cells.rglru": [{"num_heads": 1}],
    "cells.s4d": [{"num_states": 3}, {"num_states": 2, "rule": "bilinear"}],
    "cells.lru": [{}, {"num_states": 5}],
    "cells.projected": [{"inner": 17}, {"inner": 19, "cell": GRU}],
    "cells.zoneout": [{"rate": 0.2}, {"cell": partial(Variational, cell=Coupled), "rate": 0.3}],
    "cells.variational": [{"rate": 0.2}, {"cell": GRU, "rate": 0.5, "input_rate": 0.3}],
    "scores.cosine": [{}, {"scale": 3.0}],
    "encoders.recurrent": [
        {"sizes": (SIZE,)},
        {"sizes": (SIZE, 5), "bidirectional": True},
        {"sizes": (5, SIZE), "bidirectional": True, "join": "mean"},
        {"sizes": (5, 3), "bidirectional": True, "join": "learned"},
    ],
    "encoders.pyramid": [
        {"sizes": (SIZE, 5), "bidirectional": True},
        {"sizes": (5, 3, SIZE), "factors": (1, 2, 1), "bidirectional": False},
        {"sizes": (3, SIZE), "factors": (2, 1), "cell": GRU, "bidirectional": True},
    ],
    "encoders.strided": [{"size": 6}, {"size": 12, "num_convolutions": 1, "positions": "rotary"}],
    "encoders.filters": [{"widths": (3,), "features": 5}, {"widths": (2, 5), "features": 3}],
    "encoders.transformer": [*TRANSFORMER, ENCODER],
    "encoders.bag": [{}, {"size": SIZE, "reduce": "sum"}],
    "encoders.ngram": [{}, {"length": 4, "size": SIZE}, {"length": 1}],
    "encoders.convolution": [{"size": 6}, {"size": 10, "kernel": 5, "positions": "learned"}],
    "encoders.self_attention": [{}, {"num_layers": 2, "residual": True}],
    "encoders.non_local": [
        {"size": 6},
        {"size": 6, "pairwise": "gaussian", "scaled": True},
        {"size": 6, "pairwise": "dot"},
        {"size": 6, "pairwise": "concatenation"},
    ],
    "decoders.bag": [
        {"weights": weights} for weights in ("sum", "mean", "position", "idf", "dot", "additive")
    ],
    "decoders.window": [
        {"size": SIZE},
        {"size": SIZE, "length": 3, "enters": "never", "direct": True},
        {"size": SIZE, "length": 1},
    ],
    "decoders.recurrent": [
        {"sizes": (SIZE,), "enters": enters, "input_feeding": feeding}
        for enters in ("late", "input", "both", "never")
        for feeding in (False, True)
    ]
    + [
        {"sizes": (SIZE, 5), "key_size": 11, "value_size": 3, "readout": 0},
        {"sizes": (5, SIZE), "readout": 7, "bridge": "summary", "enters": "both", "input_feeding": True},
        {"sizes": (5, 3, SIZE), "bridge": "nothing"},
        {"sizes": (SIZE,), "key_size": 11, "shared": True, "weights": "sparsemax"},
        {"sizes": (SIZE,), "enters": "both", "weights": "entmax"},
    ],
    "decoders.pointer": [
        {"decoder": partial(RecurrentDecoder, sizes=(SIZE,), enters="never")},
        {"decoder": partial(RecurrentDecoder, sizes=(3, 5), cell=GRU), "coverage": None, "readout": 7},
        {"decoder": partial(RecurrentDecoder, sizes=(SIZE,), enters="both"), "score": Dot, "key_size": SIZE}
        | {"shared": True, "weights": "sparsemax", "coverage": 0.3},
    ],
    "decoders.transformer": [
        *TRANSFORMER,
        {"size": 10, "num_heads": 2, "heads": Heads(key_value=1), "positions": "alibi", "norm": "parallel"},
        {"size": 7, "num_heads": 1, "positions": "rotary", "heads": Heads(rotary=4, bias=True)}
        | {"norm": "parallel", "bias": False},
    ],
    "pools.queries": [{}, {"num_queries": 3}, {"num_queries": 2, "key_size": 11, "value_size": 7}],
    "heads.transformed": [{"norm_epsilon": 1e-3}],
    "heads.categorical": [{}, {"smoothing": 0.1}],
    "heads.adaptive": [{"cutoffs": (3, 7)}, {"cutoffs": (5,), "bias": False}],
    "heads.pointer": [{}, {"smoothing": 0.1}],
}
