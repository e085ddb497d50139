"""Whether Triton computes a recurrent layer, and how cells call it; Triton is imported only when it runs.

Read next: ../triton/layer.py.
"""

from torch import Tensor

from weft.nn.kernels import choice, triton
from weft.nn.kernels.cells.form import FORMS, LayerInput, Norms, Recurrence, Result
from weft.nn.kernels.choice import Way, pick
from weft.nn.kernels.linear import linear


def why_not(cell: str, x: Tensor) -> str:
    """Why Triton cannot compute a cell's layer over x; "" if it can."""
    if cell == "coupled":
        return "Triton has no kernel for this cell; on a GPU cuDNN computes it"
    return triton.why_not(x.device)


def serves(x: Tensor) -> bool:
    """Whether Triton computes a form that no other kernel supports (layer-normalised, sigmoid candidate).

    Otherwise the cell runs step by step.
    """
    asked = choice.forced("cells")
    if asked != "triton":
        asked = "auto" if asked in ("auto", "torch") and x.device.type == "cuda" else "steps"
    return pick("cells", SPECIAL, (x,), asked=asked).run()


SPECIAL = (
    Way("triton", lambda: True, lambda x: triton.why_not(x.device)),
    Way("steps", lambda: False, plain=True),
)


def run(cell: str, given: LayerInput) -> Result:
    """Compute a layer with Triton."""
    x, h, c, weight_x, weight_h, bias, extra, mask = given
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
    """Import Triton's kernels and call `run` of ../triton/layer.py."""
    from weft.nn.kernels.triton.layer import run as kernel

    return kernel(form, z, h, c, weight_h, extra, norms, mask)
