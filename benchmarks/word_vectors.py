"""How many words word2vec reads a CPU second, beside gensim: an epoch each in turns, one thread.

    python -m venv ENV && ENV/bin/pip install gensim==4.4.0
    python benchmarks/word_vectors.py --data WIKITEXT2 --gensim ENV/bin/python

reads train.txt.gz in the folder and trains with the settings of recipes/embeddings/wikitext2-cbow.yaml and
-skipgram.yaml (window 5, 5 noise words, 100 numbers), gensim with its defaults. A ratio is Weft's speed by
gensim's within a round; printed are the medians, lowest and highest. Reading the text and counting words are
left out on both sides. Read next: shares.py, whose updates these are.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from shares import Update

from weft import native
from weft.nn.kernels import choice

RECIPES = Path(__file__).resolve().parents[1] / "recipes" / "embeddings"
OBJECTIVES = ("cbow", "skipgram")
GENSIM = """
import gzip, sys, time
from gensim.models import Word2Vec
text = gzip.open(sys.argv[1], "rt", encoding="utf-8").read().lower()
lines = [line.split() for line in text.split("\\n")]
model = Word2Vec(vector_size=100, window=5, min_count=5, negative=5, workers=1, seed=1, sg=int(sys.argv[2]))
model.build_vocab(lines)
begun = time.process_time()
model.train(lines, total_examples=model.corpus_count, epochs=1)
print(sum(map(len, lines)) / (time.process_time() - begun))
"""


def theirs(python: str, data: Path, objective: str) -> float:
    """gensim's words a CPU second in an epoch."""
    command = [python, "-c", GENSIM, data / "train.txt.gz", str(int(objective == "skipgram"))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(update: Update) -> float:
    """Weft's words a CPU second in an epoch."""
    begun, words = time.process_time(), 0
    for _ in update.plan:
        words += update(lambda _: nullcontext())
    return words / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of train.txt.gz")
    parser.add_argument("--gensim", required=True, help="a Python that has gensim")
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument("--set", nargs="*", default=[], help="changes of the recipe, such as data.noise=64")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    processor = choice.processor()["model name"]
    print(f"torch {torch.__version__}, {processor}, compiled code: {native.loaded('neighbours').reason}")
    for objective in options.objectives:
        recipe = str(RECIPES / f"wikitext2-{objective}.yaml")
        with tempfile.TemporaryDirectory() as folder:
            update = Update(recipe, [f"data.folder={options.data}", *options.set], Path(folder))
            rounds = [
                (ours(update), theirs(options.gensim, options.data, objective)) for _ in range(options.rounds)
            ]
        mine, other = (statistics.median(each) for each in zip(*rounds, strict=True))
        ratios = sorted(a / b for a, b in rounds)
        print(
            f"{objective:8} Weft {mine:9,.0f} words a CPU second, gensim {other:9,.0f}, "
            f"{statistics.median(ratios):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
