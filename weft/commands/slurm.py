"""Processes that Slurm's srun has started: their rank, number and address from its variables.

Read next: launch.py, several processes without Slurm; deploy/slurm.sh, the job.
"""

import os
import re
from collections.abc import MutableMapping

from weft.errors import ConfigError

FIRST_PORT, PORTS = 20_000, 20_000


def join(processes: int | None, environment: MutableMapping[str, str] = os.environ) -> bool:
    """Make this process one of those that srun has started; whether it is one.

    The variables of torchrun are set from those of Slurm, unless they are set already. Without `--processes`,
    or with one process, each process of srun trains on its own.

    Args:
        processes: `--processes`.
        environment: the variables.

    Raises:
        ConfigError: srun has started another number of processes.
    """
    count = int(environment.get("SLURM_STEP_NUM_TASKS") or 1)
    if count == 1 or processes is None or "WORLD_SIZE" in environment:
        return False
    if processes != count:
        raise ConfigError(
            f"--processes {processes}: srun has started {count}; pass --processes {count}, or start one with "
            "srun --ntasks=1"
        )
    environment["RANK"], environment["WORLD_SIZE"] = environment["SLURM_PROCID"], str(count)
    environment["LOCAL_RANK"] = environment.get("SLURM_LOCALID", "0")
    environment.setdefault("MASTER_ADDR", first_host(environment.get("SLURM_STEP_NODELIST", "127.0.0.1")))
    step = int(environment.get("SLURM_STEP_ID") or 0)
    number = 31 * int(environment.get("SLURM_JOB_ID") or 0) + step  # another job's step has another port
    environment.setdefault("MASTER_PORT", str(FIRST_PORT + number % PORTS))
    return True


def first_host(nodes: str) -> str:
    """The first host of a list as Slurm writes it.

    Example:
        >>> first_host("node[03-05,9],login"), first_host("a,b"), first_host("gpu[1-2]-ib")
        ('node03', 'a', 'gpu1-ib')
    """
    found = re.match(r"([^,\[]*)(?:\[(\w+)[^\]]*\])?([^,\[]*)", nodes)
    return "".join(part or "" for part in found.groups()) if found else nodes
