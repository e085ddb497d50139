"""Keep the memory of freed tensors, which the C library otherwise returns to the system.

Word vectors get new gradients of whole tables in every update. glibc maps such large blocks each time, and
clearing their pages takes longer than computing the gradients. Read next: library.py.
"""

import ctypes
import sys

TRIM, MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
LARGEST = 32 << 20  # bytes; glibc accepts no larger threshold for mapped blocks


def keep_freed() -> bool:
    """Let this process keep the memory of freed tensors of up to 32 MB for the next; False without glibc."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MAP, LARGEST) and mallopt(TRIM, (1 << 31) - 1))
