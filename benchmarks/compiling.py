"""Whether `training.compile` makes the training of a Transformer faster here, in turns with the written code.

    python benchmarks/compiling.py [--rounds N] [--sizes 256x3,512x6] [--threads N]

One model trains on the same batches by turns, an update with the blocks as they are written and one with what
torch.compile makes of them; batches are of many lengths, as in training. Printed for float32 and bfloat16
autocast: seconds until everything is compiled, median CPU seconds an update of both, and their median ratio.
"""

import argparse
import random
import statistics
import tempfile
import time
from functools import partial
from typing import Any

WORDS, TOKENS, BATCHES = 4000, 2048, 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="256x3,512x6", help="width x layers of encoder and of decoder")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precisions", default="float32,bfloat16")
    asked = parser.parse_args()
    import os

    import torch

    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_CACHE"] = folder
        torch.set_num_threads(asked.threads)
        for size in asked.sizes.split(","):
            for precision in asked.precisions.split(","):
                width, layers = map(int, size.split("x"))
                _measured(width, layers, precision == "bfloat16", asked)


def _measured(width: int, layers: int, bfloat16: bool, asked: argparse.Namespace) -> None:
    import torch

    from weft.nn import devices
    from weft.nn.devices import compile_regions, plainly
    from weft.train.position import settle
    from weft.train.ready import check_compiler

    device = torch.device("cpu")
    check_compiler(device)
    torch._dynamo.reset()
    model = _model(width, layers, asked.dropout)
    regions = compile_regions(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = _batches(random.Random(1))

    def update(number: int) -> None:
        settle(number, device)
        with devices.autocast(bfloat16, device):
            loss = model.loss(batches[number]).mean
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    def written(number: int) -> None:
        with plainly():
            update(number)

    begun = time.perf_counter()
    for number in range(BATCHES):
        update(number)
        written(number)
    ready = time.perf_counter() - begun
    seconds: dict[str, list[float]] = {"written": [], "compiled": []}
    for _ in range(asked.rounds):
        for number in range(BATCHES):
            for name, way in (("written", written), ("compiled", update)):
                start = time.process_time()
                way(number)
                seconds[name].append(time.process_time() - start)
    ratio = statistics.median(a / b for a, b in zip(*seconds.values(), strict=True))
    one, other = (statistics.median(found) for found in seconds.values())
    print(
        f"{width} wide, {layers} + {layers} layers, {'bfloat16' if bfloat16 else 'float32'}, dropout "
        f"{asked.dropout:g}, {asked.threads} threads: {regions} blocks ready after {ready:.0f} s; an update "
        f"of {TOKENS:,} tokens {one:.3f} s written, {other:.3f} s compiled: {ratio:.3f} times as fast "
        f"({len(seconds['written'])} updates each)",
        flush=True,
    )


def _model(width: int, layers: int, dropout: float) -> Any:
    import torch

    from weft.nn import TransformerDecoder, TransformerEncoder
    from weft.tasks.seq2seq.sections import Embedding, PairModel

    torch.manual_seed(1)
    how: dict[str, Any] = {"size": width, "num_layers": layers, "num_heads": width // 64, "dropout": dropout}
    parts = PairModel(
        encoder=partial(TransformerEncoder, **how),
        decoder=partial(TransformerDecoder, **how),
        embedding=Embedding(size=width, dropout=dropout),
    )
    return parts.build(WORDS, WORDS, one_vocabulary=True).train()


def _batches(chance: random.Random) -> list[Any]:
    """Of 5 to 60 tokens a side, rows of a batch alike in length."""
    from weft.tasks.seq2seq.encoding import collate_pairs

    made = []
    for number in range(BATCHES):
        length = 8 + 9 * number
        sides = [
            [
                [chance.randrange(4, WORDS) for _ in range(chance.randint(length - 3, length + 3))]
                for _ in range(TOKENS // length)
            ]
            for _ in range(2)
        ]
        made.append(collate_pairs(*sides))
    return made


if __name__ == "__main__":
    main()
