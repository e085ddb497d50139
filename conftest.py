"""What holds for every test and every example in a docstring: where Triton's kernels can run.

Without a GPU they run in Triton's interpreter, which must be asked for before they are imported; without
the package they are left out: tests/nn/test_triton_kernel.py is skipped and says how to get it.
"""

import importlib.util
import os

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

TRITON = ["weft/nn/kernels/*/triton/[!_]*.py", "weft/nn/kernels/light/triton.py"]
MADE = ["tests/importing/kits/*/make.py"]  # make the files of tests, with toolkits that are not installed
collect_ignore_glob = MADE + ([] if importlib.util.find_spec("triton") else TRITON)
