"""Whether torch is exporting the code that runs. Read next: nn/kernels/exported.py, what runs then."""

import torch


def exporting() -> bool:
    """Whether torch exports this code, so the graph must hold for inputs of other sizes and values.

    Always False with PyTorch 2.6, which cannot be asked. PyTorch 2.11 says yes in torch.compile too.
    """
    asked = getattr(torch.compiler, "is_exporting", None)
    return asked is not None and not torch.compiler.is_dynamo_compiling() and bool(asked())
