"""The former place of the cells of drop_in.py, which whole models written by torch.save name."""

from weft.nn.drop_in import GRUCell as GRUCell
from weft.nn.drop_in import LSTMCell as LSTMCell
from weft.nn.drop_in import RNNCell as RNNCell
