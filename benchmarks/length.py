"""What a sentence costs as it grows: CPU seconds a sentence against its length, with the key-value cache.

    python benchmarks/length.py --plot docs/cost-by-length.png

Weights are as good as random and every output is made to have the length asked for. Greedy search and beam 5
of the benchmark's Transformer (4 + 4 layers, width 128), and of an RNN beside them. Each length is searched
`--rounds` times in turns, and the least is taken: what others do on the machine only adds to it.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from peers.engine import Sizes
from peers.weft import Weft

SOURCE = 24
WAYS = (("transformer", 5), ("transformer", 1), ("rnn", 5))


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sentences", type=int, default=4)
    add("--vocabulary", type=int, default=4000)
    add("--lengths", type=int, nargs="+", default=[32, 64, 128, 192, 256, 320, 384, 448, 512])
    add("--rounds", type=int, default=3)
    add("--plot", type=Path, help="where the picture goes (.png or .svg)")
    options = parser.parse_args()
    lengths: list[int] = options.lengths
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    source = random.integers(4, options.vocabulary, (options.sentences, SOURCE))
    sizes = np.full(options.sentences, SOURCE)
    engines = {name: Weft(Sizes(options.vocabulary, name, longest=1024), "float32") for name, _ in WAYS[1:]}
    found: dict[tuple[str, int, int], float] = {}
    for _ in range(options.rounds):
        for name, width in WAYS:
            for length in lengths:
                begun = time.process_time()
                engines[name].search(source, sizes, width, length, length)
                spent = (time.process_time() - begun) / options.sentences
                found[name, width, length] = min(spent, found.get((name, width, length), spent))
    for name, width in WAYS:
        costs = [found[name, width, length] for length in lengths]
        slope, start = np.polyfit(lengths, costs, 1)
        apart = max(abs(cost / (start + slope * n) - 1) for n, cost in zip(lengths, costs, strict=True))
        row = ", ".join(f"{n}: {cost:.3f}" for n, cost in zip(lengths, costs, strict=True))
        print(f"{name}, beam {width}: {row}")
        print(f"  a straight line, {1e3 * slope:.2f} ms a token, is at most {apart:.0%} off")
    if options.plot:
        draw(found, options.plot)


def draw(found: dict[tuple[str, int, int], float], path: Path) -> None:
    """CPU seconds a sentence over its length, a line a way."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    lengths = sorted({length for _, _, length in found})
    for name, width in WAYS:
        costs = [found[name, width, length] for length in lengths]
        axes.plot(lengths, costs, marker="o", label=f"{name}, beam {width}")
    axes.set(xlabel="tokens written", ylabel="CPU seconds a sentence", xlim=(0, None), ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
