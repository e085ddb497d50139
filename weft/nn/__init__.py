"""Neural network modules: they work on tensors and know nothing of files, text or recipes.

cells/ has one recurrent cell per file, scores.py all attention scores. recurrent.py runs cells over
time, attention.py is attention, encoders/ and decoders/ combine them, and heads/ predict. `dir(weft.nn)`
lists every layer.

RNN, LSTM, GRU, their cells and MultiheadAttention are drop-in replacements for torch.nn's: change
`from torch.nn import LSTM` to `from weft.nn import LSTM`. Every other recurrence is a layer of torch's shape,
`SRU(8, 4)(x)`, made of the cell of that name in `weft.nn.cells`. Read next: drop_in.py, layers.py.
"""

from weft import lazy

__getattr__, __dir__ = lazy.attach(__name__)
