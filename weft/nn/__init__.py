"""Neural network modules: they work on tensors and know nothing of files, text or recipes.

cells/ has one recurrent cell per file, scores.py all attention scores. recurrent.py runs cells over
time, attention.py is attention, encoders/ and decoders/ combine them, and heads/ predict.

RNN, LSTM, GRU and their cells are drop-in replacements for torch.nn's: change `from torch.nn import LSTM` to
`from weft.nn import LSTM`. Read next: drop_in.py.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.nn.drop_in import GRU, LSTM, RNN
    from weft.nn.drop_in_cells import GRUCell, LSTMCell, RNNCell
    from weft.nn.drop_in_torch import as_torch

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell", "as_torch"]


def __getattr__(name: str) -> Any:
    # Imported on demand, so that importing one module of this package does not load the others.
    if name in ("GRU", "LSTM", "RNN"):
        from weft.nn import drop_in

        return getattr(drop_in, name)
    if name in ("GRUCell", "LSTMCell", "RNNCell"):
        from weft.nn import drop_in_cells

        return getattr(drop_in_cells, name)
    if name == "as_torch":
        from weft.nn.drop_in_torch import as_torch

        return as_torch
    raise AttributeError(f"module 'weft.nn' has no attribute {name!r}")
