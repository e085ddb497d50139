"""Check that torch can compile on this machine, before a training with `training.compile` starts.

torch.compile generates C++ for a CPU and Triton for a GPU, so it needs a compiler where the training runs.
The binaries are cached next to the token stores, not in a directory of /tmp with a predictable name. The
compiled graphs, which torch would store as pickles, are not cached.
Read next: ../nn/devices.py.
"""

import os
import shlex
import shutil

import torch

from weft.errors import ConfigError
from weft.store.cache import cache_directory
from weft.wording import plural


def check_compiler(device: torch.device) -> None:
    """Compile one small function, to fail early if that does not work."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_directory() / "compiled"))
    os.environ.setdefault(
        "TORCHINDUCTOR_COMPILE_THREADS", "1"
    )  # otherwise torch leaves worker processes behind
    if device.type == "cpu":
        command = shlex.split(os.environ.get("CXX") or "g++")
        # Without a compiler, cached binaries would work until the first new shape.
        if shutil.which(command[0]) is None:
            raise ConfigError(
                f"training.compile: cannot find the C++ compiler {command[0]}; install g++, "
                "name another with CXX, or set training.compile: false"
            )
    # Do not assume that two sizes which are equal once are always equal.
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
            "training.compile: code compiled by torch gives wrong gradients here; set training.compile: false"
        )


def sentence(blocks: int) -> str:
    """A sentence about a model with this number of blocks that can be compiled."""
    if not blocks:
        return "training.compile: this model has no Transformer block, so nothing is compiled"
    return f"training.compile: {plural(blocks, 'block')} of the model will be compiled at first use"


def seconds_spent() -> float:
    """Seconds that torch has compiled in this process; 0 where this version of torch does not say."""
    from torch._dynamo import utils

    known: dict[str, float] = getattr(utils, "calculate_time_spent", dict)()
    return known.get("total_wall_time", 0.0)


def _trial(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(2 * x)
