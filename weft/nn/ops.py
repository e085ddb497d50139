"""The operations that layers call; kernels/ knows how each is computed, by its one table of rules.

Every operation is a function of tensors with a plain twin in torch that is always right:

- products: `linear`, `Linear`; steps of a loop that share their weights: `repeating`
- recurrent layers: `run_layer`; without a matrix: `light`, `recur`, `selective`; with a matrix per head:
  `Decayed`, `Corrected`, `Replaced`
- attention: `attention`, `attention_weights`; additive: `additive`, `look`
- losses and outputs: `cross_entropy`, `log_probabilities`, `word2vec`; `dropout`, `Dropout`
- searches in compiled code: `decoding`, one step of Transformer layers; `Ends` and what is between them, many

Read next: kernels/choice.py; kernels/linear.py, an operation.
"""

from weft.nn.kernels import decoding as decoding
from weft.nn.kernels import equations as equations
from weft.nn.kernels.attention import additive as additive
from weft.nn.kernels.attention import attention as attention
from weft.nn.kernels.attention import attention_weights as attention_weights
from weft.nn.kernels.attention import look as look
from weft.nn.kernels.cells.compiled import PLAIN_ROWS as PLAIN_ROWS
from weft.nn.kernels.cells.compiled import one_step as one_step
from weft.nn.kernels.cells.layer import HOLD as HOLD
from weft.nn.kernels.cells.layer import hold_last as hold_last
from weft.nn.kernels.cells.layer import run_layer as run_layer
from weft.nn.kernels.cells.layer import shown_last as shown_last
from weft.nn.kernels.cells.layer import torch_lstm as torch_lstm
from weft.nn.kernels.choice import forced as forced
from weft.nn.kernels.choice import skips_padding as skips_padding
from weft.nn.kernels.decoding import log_probabilities as log_probabilities
from weft.nn.kernels.decoding import multiply_as as multiply_as
from weft.nn.kernels.decoding import use_int8 as use_int8
from weft.nn.kernels.dropout import Dropout as Dropout
from weft.nn.kernels.dropout import dropout as dropout
from weft.nn.kernels.equations import ELMAN_CELLS as ELMAN_CELLS
from weft.nn.kernels.equations import Gates as Gates
from weft.nn.kernels.equations import LayerInput as LayerInput
from weft.nn.kernels.light import light as light
from weft.nn.kernels.light import log_odds as log_odds
from weft.nn.kernels.light import recur as recur
from weft.nn.kernels.light import selective as selective
from weft.nn.kernels.light import selective_step as selective_step
from weft.nn.kernels.linear import Linear as Linear
from weft.nn.kernels.linear import linear as linear
from weft.nn.kernels.linear import opened as opened
from weft.nn.kernels.linear import repeating as repeating
from weft.nn.kernels.losses import IGNORED as IGNORED
from weft.nn.kernels.losses import Places as Places
from weft.nn.kernels.losses import cross_entropy as cross_entropy
from weft.nn.kernels.losses import word2vec as word2vec
from weft.nn.kernels.matrix import Corrected as Corrected
from weft.nn.kernels.matrix import Decayed as Decayed
from weft.nn.kernels.matrix import MatrixRecurrence as MatrixRecurrence
from weft.nn.kernels.matrix import Replaced as Replaced
from weft.nn.kernels.matrix import widened as widened
from weft.nn.kernels.search_step import Comparison as Comparison
from weft.nn.kernels.search_step import Ends as Ends
from weft.nn.kernels.search_step import Layers as Layers
from weft.nn.kernels.search_step import Looking as Looking
from weft.nn.kernels.search_step import Network as Network
from weft.nn.kernels.search_step import Output as Output
from weft.nn.kernels.search_step import PastSteps as PastSteps
from weft.nn.kernels.search_step import Vectors as Vectors
from weft.nn.kernels.search_step import recurrent as recurrent
from weft.nn.kernels.search_step import transformer as transformer
from weft.nn.kernels.twin import stepped as stepped
