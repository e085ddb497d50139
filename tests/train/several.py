"""A training of the toy task in one process of several: python -m tests.train.several RUN JSON."""

import json
import sys
from pathlib import Path

import torch

from tests.train.toy import Task, quiet, settings
from weft.train.loop import train


def main() -> None:
    run, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
    run.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    dtype = torch.float64 if asked.pop("double") else torch.float32
    task = Task(size=asked.pop("size"), dropout=asked.pop("dropout"), dtype=dtype)
    outcome = train(task, run, settings(**asked), quiet(run))
    (run / "outcome.json").write_text(json.dumps([outcome.reason, outcome.update]))


if __name__ == "__main__":
    main()
