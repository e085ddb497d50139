# ruff: noqa: F401
"""Every layer, imported when it is first used (weft/lazy.py). The cells are in `cells`.

Names without `as` can be imported as before, but are parts of others and not listed.
"""

from weft.nn import cells as cells
from weft.nn.attention import Attention as Attention
from weft.nn.attention import Heads as Heads
from weft.nn.attention import MultiHead as MultiHead
from weft.nn.attention import entmax15 as entmax15
from weft.nn.attention import sparsemax as sparsemax
from weft.nn.cells.cell import Cell as Cell
from weft.nn.cells.convolution import ShortConvolution
from weft.nn.cells.matrix import MatrixCell
from weft.nn.decoders.decoder import BagDecoder as BagDecoder
from weft.nn.decoders.decoder import Decoder as Decoder
from weft.nn.decoders.decoder import WindowDecoder as WindowDecoder
from weft.nn.decoders.hybrid import HybridDecoder as HybridDecoder
from weft.nn.decoders.pointer import PointerDecoder as PointerDecoder
from weft.nn.decoders.recurrent import Bridge as Bridge
from weft.nn.decoders.recurrent import RecurrentDecoder as RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder as TransformerDecoder
from weft.nn.distances import Alibi as Alibi
from weft.nn.distances import Distance as Distance
from weft.nn.distances import Relative as Relative
from weft.nn.distances import Rotary as Rotary
from weft.nn.drop_in import GRU as GRU
from weft.nn.drop_in import LSTM as LSTM
from weft.nn.drop_in import RNN as RNN
from weft.nn.drop_in import GRUCell as GRUCell
from weft.nn.drop_in import LSTMCell as LSTMCell
from weft.nn.drop_in import RNNCell as RNNCell
from weft.nn.drop_in_attention import MultiHeadAttention as MultiHeadAttention
from weft.nn.drop_in_attention import MultiheadAttention as MultiheadAttention
from weft.nn.drop_in_torch import as_torch as as_torch
from weft.nn.embed.contextual import Context, InContext, Mix, PiecesInContext
from weft.nn.embed.grams import GramTable
from weft.nn.embed.neighbours import Glove as Glove
from weft.nn.embed.neighbours import Neighbours as Neighbours
from weft.nn.embed.neighbours import Subwords as Subwords
from weft.nn.embed.tokens import Tokens as Tokens
from weft.nn.embed.tokens import Weighted
from weft.nn.embed.words import Characters as Characters
from weft.nn.encoders.causal import CausalEncoder as CausalEncoder
from weft.nn.encoders.encoder import BagEncoder as BagEncoder
from weft.nn.encoders.encoder import ConvolutionEncoder as ConvolutionEncoder
from weft.nn.encoders.encoder import Encoder as Encoder
from weft.nn.encoders.encoder import Memory as Memory
from weft.nn.encoders.encoder import NgramEncoder as NgramEncoder
from weft.nn.encoders.encoder import Pyramid as Pyramid
from weft.nn.encoders.filters import FilterEncoder as FilterEncoder
from weft.nn.encoders.non_local import NonLocal as NonLocal
from weft.nn.encoders.non_local import NonLocalEncoder as NonLocalEncoder
from weft.nn.encoders.recurrent import RecurrentEncoder as RecurrentEncoder
from weft.nn.encoders.self_attention import SelfAttentionEncoder as SelfAttentionEncoder
from weft.nn.encoders.strided import StridedTransformer as StridedTransformer
from weft.nn.encoders.transformer import TransformerEncoder as TransformerEncoder
from weft.nn.forecasters.forecaster import Forecaster as Forecaster
from weft.nn.forecasters.forecaster import LinearForecaster as LinearForecaster
from weft.nn.forecasters.forecaster import PairForecaster as PairForecaster
from weft.nn.forecasters.forecaster import RecurrentForecaster as RecurrentForecaster
from weft.nn.forecasters.patches import PatchForecaster as PatchForecaster
from weft.nn.forecasters.segments import SegmentForecaster as SegmentForecaster
from weft.nn.heads.adaptive import Adaptive as Adaptive
from weft.nn.heads.categorical import Categorical as Categorical
from weft.nn.heads.crf import Crf as Crf
from weft.nn.heads.head import Head as Head
from weft.nn.heads.head import Loss as Loss
from weft.nn.heads.head import Normal as Normal
from weft.nn.heads.head import Point as Point
from weft.nn.heads.head import Quantile as Quantile
from weft.nn.heads.head import RealHead
from weft.nn.heads.head import Student as Student
from weft.nn.heads.pointer import Pointer as Pointer
from weft.nn.heads.transformed import Transformed
from weft.nn.layers import GLA as GLA
from weft.nn.layers import HGRN2 as HGRN2
from weft.nn.layers import LRU as LRU
from weft.nn.layers import MLSTM as MLSTM
from weft.nn.layers import RGLRU as RGLRU
from weft.nn.layers import RWKV4 as RWKV4
from weft.nn.layers import RWKV7 as RWKV7
from weft.nn.layers import S4D as S4D
from weft.nn.layers import SLSTM as SLSTM
from weft.nn.layers import SRU as SRU
from weft.nn.layers import SSD as SSD
from weft.nn.layers import SSRU as SSRU
from weft.nn.layers import Block as Block
from weft.nn.layers import Coupled as Coupled
from weft.nn.layers import Delta as Delta
from weft.nn.layers import Elman as Elman
from weft.nn.layers import GatedDelta as GatedDelta
from weft.nn.layers import Jordan as Jordan
from weft.nn.layers import LocalAttention as LocalAttention
from weft.nn.layers import Mamba as Mamba
from weft.nn.layers import MinGRU as MinGRU
from weft.nn.layers import MinLSTM as MinLSTM
from weft.nn.layers import Orthogonal as Orthogonal
from weft.nn.layers import Peephole as Peephole
from weft.nn.layers import Projected as Projected
from weft.nn.layers import RecurrentLayer as RecurrentLayer
from weft.nn.layers import Retention as Retention
from weft.nn.layers import RWKV7Layers as RWKV7Layers
from weft.nn.layers import Stepwise as Stepwise
from weft.nn.layers import Unitary as Unitary
from weft.nn.layers import Variational as Variational
from weft.nn.layers import Zoneout as Zoneout
from weft.nn.layers import layer_of as layer_of
from weft.nn.norms import RMSNorm as RMSNorm
from weft.nn.ops import Dropout as Dropout
from weft.nn.ops import Linear as Linear
from weft.nn.pictures.convolution import ConvolutionFront as ConvolutionFront
from weft.nn.pictures.front import Front
from weft.nn.pictures.patches import Patches as Patches
from weft.nn.pictures.patches import PatchFront as PatchFront
from weft.nn.pictures.regions import RegionFront as RegionFront
from weft.nn.pools import Max as Max
from weft.nn.pools import Mean as Mean
from weft.nn.pools import Pool as Pool
from weft.nn.pools import Queries as Queries
from weft.nn.pools import Summary as Summary
from weft.nn.positions import Concatenated as Concatenated
from weft.nn.positions import Learned as Learned
from weft.nn.positions import Sinusoidal as Sinusoidal
from weft.nn.recurrent import Stack as Stack
from weft.nn.scores import Additive as Additive
from weft.nn.scores import Bilinear as Bilinear
from weft.nn.scores import Cosine as Cosine
from weft.nn.scores import Dot as Dot
from weft.nn.scores import ScaledScore as ScaledScore
from weft.nn.scores import Score as Score
from weft.nn.scores import Uniform as Uniform
from weft.nn.transformer import FeedForward as FeedForward
from weft.nn.transformer import TransformerBlock as TransformerBlock
