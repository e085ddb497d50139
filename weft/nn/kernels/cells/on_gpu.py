"""When Triton computes a recurrent layer, and how the cells call it; Triton is imported only then.

Read next: triton/layer.py.
"""

from torch import Tensor

from weft.nn.kernels import choice
from weft.nn.kernels.cells import triton
from weft.nn.kernels.cells.form import FORMS, Norms, Recurrence
from weft.nn.kernels.linear import linear
from weft.nn.kernels.ways import Way, pick


def why_not(cell: str, x: Tensor) -> str:
    """Why Triton cannot compute a cell's layer over x; "" if it can."""
    return "it has no such cell: on a GPU cuDNN has it" if cell == "coupled" else triton.why_not(x.device)


def serves(x: Tensor) -> bool:
    """Whether Triton computes a cell of a form that no other kernel has (normalised, a sigmoid candidate).

    Otherwise the cell goes step by step.

    Raises:
        ConfigError: Triton is forced and cannot run.
    """
    asked = choice.forced("cells")
    if asked != "triton":
        asked = "auto" if asked in ("auto", "torch") and x.device.type == "cuda" else "steps"
    return pick("cells", SPECIAL, (x,), asked=asked).run()


SPECIAL = (
    Way("triton", lambda: True, lambda x: triton.why_not(x.device)),
    Way("steps", lambda: False, plain=True),
)


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
    """A layer that Triton can compute; see compiled.run."""
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
