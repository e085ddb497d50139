"""When the Triton kernels serve, and how the cells reach them: nothing of Triton is imported before.

Read next: triton/layer.py.
"""

from torch import Tensor

from weft.errors import ConfigError
from weft.nn.kernels import choice
from weft.nn.kernels.cells import triton
from weft.nn.kernels.cells.form import FORMS, Norms, Recurrence
from weft.nn.kernels.linear import linear


def why_not(cell: str, x: Tensor) -> str:
    """Why Triton cannot compute a cell's layer over x; "" if it can."""
    if cell == "coupled":
        return "no such kernel: on a GPU cuDNN serves"
    if choice.traced():
        return "it cannot be traced"
    return triton.why_not(x.device)


def serves(x: Tensor) -> bool:
    """Whether a cell of a form that no other kernel knows (normalised, a sigmoid candidate) goes to Triton.

    Raises:
        ConfigError: Triton is forced and cannot run.
    """
    if choice.forced("cells") == "triton":
        if reason := triton.why_not(x.device):
            raise ConfigError(f"cells: cannot use triton: {reason}; force torch instead")
        return not choice.traced()
    automatic = x.device.type == "cuda" and choice.forced("cells") in ("auto", "torch")
    return automatic and not choice.traced() and not triton.why_not(x.device)


def run(
    cell: str,
    x: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_x: Tensor,
    weight_h: Tensor,
    bias: Tensor,
    extra: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A layer; see compiled.run.

    Raises:
        ConfigError: Triton cannot compute it.
    """
    if reason := why_not(cell, x):
        raise ConfigError(f"{cell}: cannot use triton: {reason}; force torch instead")
    form, inside = FORMS[cell], cell == "elman_modrelu"
    z = linear(x, weight_x, None if inside else bias)
    return layer(form, z, h, c, weight_h, bias if inside else extra, None, mask)


def layer(
    form: Recurrence,
    z: Tensor,
    h: Tensor,
    c: Tensor | None,
    weight_h: Tensor,
    extra: Tensor | None = None,
    norms: Norms | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """See triton/layer.py's `run`."""
    from weft.nn.kernels.cells.triton.layer import run as kernel

    return kernel(form, z, h, c, weight_h, extra, norms, mask)
