"""What a training leaves, and whether two of them left the same, to the bit."""

import json
from pathlib import Path
from typing import Any

TIMED = {"tokens_per_second", "tokens_per_cpu_second", "seconds", "cpu_seconds", "seconds_left"}


def left(run: Path, updates: int) -> dict[str, Any]:
    """All that a training of so many updates leaves, but for the times and what monitors measured in them."""
    last = run / "checkpoints" / f"step-{updates:08}"
    found: dict[str, Any] = {
        path.name: path.read_bytes() for path in [*run.glob("*.safetensors"), *run.glob("tokenizer*.json")]
    }
    found |= {f"last {path.name}": path.read_bytes() for path in last.glob("*.safetensors")}
    found["checkpoints.json"] = (run / "checkpoints.json").read_bytes()
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    found["metrics.jsonl"] = [
        {k: v for k, v in line.items() if k not in TIMED} for line in lines if line["event"] != "monitor"
    ]
    return found


def agree_to_the_bit(mine: Path, other: Path, updates: int) -> None:
    """Fail where two runs of the same updates differ."""
    ours, whole = left(mine, updates), left(other, updates)
    assert [name for name in whole if ours.get(name) != whole[name]] == []
    assert len(whole["metrics.jsonl"]) >= updates and any("last optimiser" in name for name in whole)
