"""Check that torch can compile on this machine, before `training.compile` starts any work.

torch.compile writes C++ for a CPU and Triton for a GPU, so it needs a compiler where the training runs. What
it builds is kept beside the token stores, not in a directory of /tmp with a predictable name; the compiled
graphs themselves, which torch would store as pickles, are not kept.
Read next: ../nn/regions.py.
"""

import os
import shlex
import shutil

import torch

from weft.cache import cache_directory
from weft.errors import ConfigError


def check(device: torch.device) -> None:
    """Compile one small function, so that a training that cannot is not begun.

    Args:
        device: of the training.

    Raises:
        ConfigError: there is no compiler, or it does not serve.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_directory() / "compiled"))
    os.environ.setdefault(
        "TORCHINDUCTOR_COMPILE_THREADS", "1"
    )  # else torch leaves processes of its own behind
    if device.type == "cpu":
        command = shlex.split(os.environ.get("CXX") or "g++")
        # What was compiled before would serve without one, for as long as nothing new comes.
        if shutil.which(command[0]) is None:
            raise ConfigError(
                f"training.compile: cannot find the C++ compiler {command[0]}; install g++, "
                "name another with CXX, or set training.compile: false"
            )
    # Two sizes that happen to be equal once are not equal for ever.
    torch.fx.experimental._config.use_duck_shape = False  # type: ignore[attr-defined]
    x = torch.ones(3, device=device, requires_grad=True)
    try:
        compiled = torch.compile(_trial, options={"fx_graph_cache": False})
        compiled(x).sum().backward()
    except Exception as error:
        said = (str(error).strip() or repr(error)).splitlines()[0][:120]
        raise ConfigError(
            f"training.compile: torch cannot compile here ({said}); install g++ and Python's "
            "headers (Triton for a GPU), or set training.compile: false"
        ) from error
    if x.grad is None or not torch.allclose(x.grad, 2 * torch.cos(2 * x.detach())):
        raise ConfigError(
            "training.compile: what torch compiles here gives wrong gradients; set training.compile: false"
        )


def sentence(blocks: int) -> str:
    """What becomes of a model with so many blocks that can be compiled."""
    if not blocks:
        return "training.compile: this model has no Transformer block, so nothing of it is compiled"
    return f"training.compile: {blocks} blocks of the model are compiled when they are first used"


def _trial(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(2 * x)
