"""The operations that layers call; kernels/ knows how each is computed, by its one table of rules.

Every operation is a function of tensors with a plain twin in torch that is always right:

- products: `linear`, `Linear`, `depthwise`; steps of a loop that share their weights: `repeating`
- recurrent layers: `lstm`, `gru`, `elman`, `coupled`, `peephole`; without a matrix: `light`, `recur`,
  `selective`; with a matrix per head: `Decayed`, `Corrected`, `Replaced`
- attention: `attention`, `attention_weights`; additive: `additive`, `look`
- losses and outputs: `cross_entropy`, `log_probabilities`, `word2vec`; `dropout`, `Dropout`
- searches in compiled code: `decoding`, one step of Transformer layers; `Ends` and what is between them, many

Read next: kernels/choice.py; kernels/linear.py, an operation.
"""

from weft.nn.kernels import decoding, equations
from weft.nn.kernels.additive import additive, look
from weft.nn.kernels.attention import attention, attention_weights
from weft.nn.kernels.cells.compiled import PLAIN_ROWS, one_step
from weft.nn.kernels.cells.form import Gates, Norms, Recurrence
from weft.nn.kernels.cells.layer import (
    coupled,
    elman,
    gru,
    lstm,
    peephole,
    skips_padding,
    triton_asked,
    triton_layer,
)
from weft.nn.kernels.cells.operations import HOLD, hold_last, shown_last, torch_lstm
from weft.nn.kernels.choice import forced
from weft.nn.kernels.cross_entropy import IGNORED, cross_entropy
from weft.nn.kernels.decoding import log_probabilities, multiply_as, use_int8
from weft.nn.kernels.depthwise import depthwise
from weft.nn.kernels.dropout import Dropout, dropout
from weft.nn.kernels.exported import stepped
from weft.nn.kernels.light import light, log_odds, recur
from weft.nn.kernels.linear import Linear, linear, opened, repeating
from weft.nn.kernels.matrix import Corrected, Decayed, MatrixRecurrence, Replaced, widened
from weft.nn.kernels.neighbours import Places, word2vec
from weft.nn.kernels.search_step import (
    Comparison,
    Ends,
    Layers,
    Looking,
    Network,
    Output,
    PastSteps,
    Vectors,
    recurrent,
    transformer,
)
from weft.nn.kernels.selective import selective, selective_step

__all__ = [
    "HOLD",
    "IGNORED",
    "PLAIN_ROWS",
    "Comparison",
    "Corrected",
    "Decayed",
    "Dropout",
    "Ends",
    "Gates",
    "Layers",
    "Linear",
    "Looking",
    "MatrixRecurrence",
    "Network",
    "Norms",
    "Output",
    "PastSteps",
    "Places",
    "Recurrence",
    "Replaced",
    "Vectors",
    "additive",
    "attention",
    "attention_weights",
    "coupled",
    "cross_entropy",
    "decoding",
    "depthwise",
    "dropout",
    "elman",
    "equations",
    "forced",
    "gru",
    "hold_last",
    "light",
    "linear",
    "log_odds",
    "log_probabilities",
    "look",
    "lstm",
    "multiply_as",
    "one_step",
    "opened",
    "peephole",
    "recur",
    "recurrent",
    "repeating",
    "selective",
    "selective_step",
    "shown_last",
    "skips_padding",
    "stepped",
    "torch_lstm",
    "transformer",
    "triton_asked",
    "triton_layer",
    "use_int8",
    "widened",
    "word2vec",
]
