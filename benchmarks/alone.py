"""A model's updates on made-up tokens and nothing beside them: what memory the model itself takes.

    python benchmarks/alone.py RECIPE [--updates N] [--tokens N]

builds the model of a recipe for pairs, with torch's Adam, and prints MiB of memory that is no file's: after
the imports, of numbers (weights, gradients, moments), at most. Read next: scale.py, which sets a training
beside it.
"""

import argparse
import random
import threading
import time
from pathlib import Path

import torch

from weft.config import read_recipe
from weft.run.training import check_recipe
from weft.tasks.seq2seq.encoding import collate_pairs

LENGTHS = (4, 16)  # tokens of a row; rows of a batch are as long as each other, as in a training


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=4000)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begun = held()
    model = check_recipe(read_recipe(asked.recipe)).task.model_config.build(
        asked.vocabulary, asked.vocabulary, one_vocabulary=True
    )
    optimiser = torch.optim.AdamW(model.parameters())
    most = [0]
    threading.Thread(target=_watch, args=[most], daemon=True).start()
    chance = random.Random(1)
    for _ in range(asked.updates):
        length = chance.randint(*LENGTHS)
        rows = [
            [chance.randrange(4, asked.vocabulary) for _ in range(length)]
            for _ in range(asked.tokens // (length + 1))
        ]
        loss = model.loss(collate_pairs(rows, rows))
        loss.mean.backward()
        optimiser.step()
        optimiser.zero_grad()
    numbers = 4 * 4 * sum(one.numel() for one in model.parameters())
    print(f"{begun / 2**20:.0f} {numbers / 2**20:.0f} {most[0] / 2**20:.0f}")


def _watch(most: list[int]) -> None:
    while True:
        most[0] = max(most[0], held())
        time.sleep(0.02)


def held() -> int:
    """Bytes of this process that are no file's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


if __name__ == "__main__":
    main()
