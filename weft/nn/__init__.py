"""Neural network modules: they work on tensors and know nothing of files, text or recipes.

cells/ has one recurrent cell per file, scores.py all attention scores. recurrent.py runs cells over
time, attention.py is attention, encoders/ and decoders/ combine them, and heads/ predict. `dir(weft.nn)`
lists every layer and cell.

RNN, LSTM, GRU, their cells and MultiheadAttention are drop-in replacements for torch.nn's: change
`from torch.nn import LSTM` to `from weft.nn import LSTM`. The cells LSTM and GRU, which stacks are made of,
are in `weft.nn.cells`. Read next: drop_in.py.
"""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
