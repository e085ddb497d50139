"""Fuzz the readers for so many minutes: python -m tests.fuzz MINUTES [NAME ...]

Each finding is minimised, printed, and saved in tests/fuzz/seeds/NAME; tests/fuzz/test_readers.py reads
it from then on. Time and number of files per reader are printed at the end. Read next: harm.py.
"""

import hashlib
import random
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.harm import Slow, harm, tried
from tests.fuzz.readers import READERS, Reader

SEEDS = Path(__file__).with_name("seeds")
ROUND = 300  # examples per reader and round
SHRINK_SECONDS = 10
MEMORY = 2**30
"""Bytes of address space beyond what the readers take to be imported."""


def rounds(minutes: float, names: list[str]) -> int:
    """Fuzz; returns the number of findings."""
    end = time.monotonic() + 60 * minutes
    chance = random.Random()
    spent: dict[str, list[float]] = {name: [0.0, 0] for name in names}
    found: set[tuple[str, str]] = set()
    while time.monotonic() < end:
        for name in names:
            begun = time.monotonic()
            if begun >= end:
                break
            trouble = fuzzed(name, chance, spent[name])
            spent[name][0] += time.monotonic() - begun
            if trouble is not None and (name, trouble[0]) not in found:
                found.add((name, trouble[0]))
                print(f"{name}: {trouble[0]}\n  kept as {kept(name, trouble[1])}\n{trouble[2]}", flush=True)
    for name, (seconds, examples) in spent.items():
        print(f"{name}: {examples:,} files in {seconds:.0f} s")
    total = sum(examples for _, examples in spent.values())
    print(f"{minutes:g} minutes, {total:,} files, {len(found)} findings")
    return len(found)


def fuzzed(name: str, chance: random.Random, spent: list[float]) -> tuple[str, bytes, str] | None:
    """One round of one reader: the failure, a small file that causes it, and where it happened."""
    reader = READERS[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        reader.beside(folder)
        for _ in range(ROUND):
            data = harm(reader.seeds, chance.randint)
            spent[1] += 1
            trouble = tripped(reader, folder, data)
            if trouble is None:
                continue
            size, soon = len(data) // 2, time.monotonic() + SHRINK_SECONDS
            while size and time.monotonic() < soon:  # minimise as long as the failure stays the same
                for at in range(0, len(data), size):
                    less = data[:at] + data[at + size :]
                    again = tripped(reader, folder, less)
                    if again is not None and again[0] == trouble[0]:
                        data = less
                        break
                else:
                    size //= 2
            return trouble[0], data, trouble[1]
    return None


def tripped(reader: Reader, folder: Path, data: bytes) -> tuple[str, str] | None:
    """A reader's unexpected exception, and its last stack frame."""
    try:
        tried(reader, folder, data)
        return None
    except (Exception, Slow) as error:  # noqa: BLE001
        frames = traceback.extract_tb(error.__traceback__)
        where = next((f for f in reversed(frames) if "/weft/" in f.filename), frames[-1])
        title = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
        return title, "".join(traceback.format_exception(error)[-4:])[-1200:]


def kept(name: str, data: bytes) -> Path:
    """Write a seed."""
    path = SEEDS / name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path.relative_to(SEEDS.parents[2])


if __name__ == "__main__":
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    sys.exit(bool(rounds(float(sys.argv[1]), sys.argv[2:] or list(READERS))))
