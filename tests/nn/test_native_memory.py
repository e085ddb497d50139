"""Freed memory is kept for the next tensor, so that it is not cleared again."""

import json
import subprocess
import sys

import pytest

FAULTS = """
import json, resource, sys
import torch
from weft.native.library import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.zeros(2, 2_000_000).add_(1)  # 16 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

there = keep_freed()
faults()
print(json.dumps([there, faults()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such setting")
def test_a_kept_block_is_not_mapped_again() -> None:
    there, faults = json.loads(
        subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout
    )
    if not there:
        pytest.skip("this C library has no such setting")
    assert faults < 4_000  # pages of 4 KB in one such tensor; twenty new ones would have 80,000
