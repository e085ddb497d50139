"""What every test starts from: one thread, fixed seeds, and data from outside only by name.

Read next: test_house.py, the rules of the house; laws/, the contract suites.
"""

import atexit
import os
import random
import shutil
import tempfile
from pathlib import Path

# Before torch starts: spinning OpenMP threads cost up to ten times on a shared machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# What tests measure and tokenise does not belong in the user's own cache; pytest's workers share one.
if "WEFT_CACHE" not in os.environ:
    os.environ["WEFT_CACHE"] = tempfile.mkdtemp(prefix="weft-tests-")
    atexit.register(shutil.rmtree, os.environ["WEFT_CACHE"], ignore_errors=True)

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

# A deadline measures the machine; fixed examples make a failure the same for everybody.
settings.register_profile(
    "weft", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("weft")
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  only so that a stray use of the global generator repeats
    torch.manual_seed(1)


@pytest.fixture(scope="session")
def weft_data() -> Path:
    """The folder of public corpora that WEFT_DATA names; the test is skipped where it is not set."""
    folder = os.environ.get("WEFT_DATA")
    if not folder:
        pytest.skip("WEFT_DATA is not set: it names a folder with public corpora (mt/multi30k, ...)")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"WEFT_DATA={folder} is not a directory")
    return path
