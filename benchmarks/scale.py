"""What docs/appendix/scale.md says of a machine: stores, processes, saving, memory, each beside its twin.

    python benchmarks/scale.py store|processes|saving|recomputing|memory [--rounds N]

Every figure is a ratio of ways measured in turns, because a machine is seldom quiet: medians by wall-clock
seconds and by CPU seconds (of a process and its children) are printed, and the median ratio.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from weft.data.corpora import corpus as embedded
from weft.data.parallel import ParallelText
from weft.text.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[1]
RECIPE = """\
task: translate
data:
  source: en
  target: es
  corpus: libreoffice-help
  vocabulary: {size: 4000}
  batch_tokens: 2048
  validate_rows: 1
model:
  encoder: ENCODER
  decoder: DECODER
  embedding: {size: 256}
training:
  accumulate: 2
  max_updates: 40
  save_every: 100000
  log_every: 10
  precision: float32
  device: cpu
  tensorboard: false
  monitors: false
"""
PARTS = {
    "transformer": ["{use: transformer, size: 256, num_layers: 3}"] * 2,
    "lstm": ["{use: recurrent, sizes: [256], bidirectional: true}", "{use: recurrent, sizes: [512]}"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted(MEASURES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--models", default=",".join(PARTS))
    parser.add_argument("--pairs", type=int, default=1_000_000, help="of a generated corpus")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_CACHE"] = folder
        MEASURES[asked.what](Path(folder), asked)


def store(folder: Path, asked: argparse.Namespace) -> None:
    """Pairs a second of a store that is built by one process and by two, with a trained BPE of 8,000."""
    text, vocabulary = (
        corpus(folder / "text", asked.pairs),
        vocabulary_of(folder / "text", folder / "bpe.json"),
    )

    def build(processes: int) -> None:
        from weft.data.store import TokenStore
        from weft.tasks.seq2seq.batch_search import SourceReader
        from weft.tasks.seq2seq.encoding import encode_pairs
        from weft.text.loading import load_vocabulary

        found = load_vocabulary(vocabulary)  # with an empty memory of words
        encode = partial(encode_pairs, SourceReader(found, cut=None, copies=False), found)
        shutil.rmtree(folder / "store", ignore_errors=True)
        TokenStore.build(folder / "store", text, encode, max_length=128, key="k", processes=processes)

    _in_turns(
        asked.rounds, {f"{n} processes": lambda n=n: build(n) for n in (1, 2)}, 2 * asked.pairs, "lines"
    )


def processes(folder: Path, asked: argparse.Namespace) -> None:
    """Tokens a second of two processes on two cores, and of one on one, with the same batches.

    On a machine that others use the second ratio tells more: tokens by the CPU seconds of the first process,
    which is what free cores would give without the waiting for each other.
    """
    for name in asked.models.split(","):
        print(f"{name}:")
        rates: dict[str, list[dict[str, float]]] = {"1": [], "2": [], "2 sharded": []}
        for _ in range(asked.rounds):
            for way, found in rates.items():
                more = ["training.sharding=full"] if "sharded" in way else []
                more += [f"training.max_updates={asked.updates}", "training.log_every=4"]
                found.append(_train(folder, name, more, processes=int(way[0])))
        for way, found in rates.items():
            pairs = list(zip(rates["1"], found, strict=True))
            wall, cpu = (
                statistics.median(two[key] / one[key] for one, two in pairs)
                for key in ("tokens_per_second", "tokens_per_cpu_second")
            )
            rate = statistics.median(one["tokens_per_second"] for one in found)
            print(f"  {way:10} {rate:9,.0f} tokens/s: {wall:.2f} of one process, by CPU seconds {cpu:.2f}")


def saving(folder: Path, asked: argparse.Namespace) -> None:
    """What a checkpoint every 5 updates costs: at once, and beside training."""
    ways = {
        "none": [],
        "at once": ["training.save_every=5", "training.save_in_background=false"],
        "background": ["training.save_every=5"],
    }
    _trainings(folder, ways, asked.rounds, asked.models.split(","))


def recomputing(folder: Path, asked: argparse.Namespace) -> None:
    """Bytes that a batch of 64 rows of 100 tokens holds for its gradients, and the time of both."""
    import torch

    from weft.config import read_recipe
    from weft.nn.randomness import recomputing as checkpointed
    from weft.run.training import check_recipe
    from weft.tasks.seq2seq.encoding import collate_pairs

    torch.set_num_threads(1)
    chance = random.Random(1)
    rows = [[chance.randrange(4, 4000) for _ in range(100)] for _ in range(32)]
    batch = collate_pairs(rows, rows)
    decoders = {"lookback": "{use: recurrent, sizes: [512], input_feeding: true}"}
    for name, wide in (("transformer", 6), ("lstm", 3), ("lookback", 1)):
        parts = PARTS.get(name, [PARTS["lstm"][0], decoders.get(name, "")])
        path = _recipe(folder, name, [part.replace("num_layers: 3", f"num_layers: {wide}") for part in parts])
        model = check_recipe(read_recipe(path)).task.model_config.build(4000, 4000, one_vocabulary=True)
        kept: dict[str, int] = {}

        def learn(wanted: bool, model: Any = model, kept: dict[str, int] = kept) -> None:
            held: dict[int, int] = {}

            def keep(tensor: Any) -> Any:
                storage = tensor.untyped_storage()
                held[storage.data_ptr()] = storage.nbytes()
                return tensor

            with torch.autograd.graph.saved_tensors_hooks(keep, lambda one: one), checkpointed(wanted):
                loss = model.loss(batch).total
            for parameter in model.parameters():
                held.pop(parameter.untyped_storage().data_ptr(), None)
            kept["recomputed" if wanted else "plain"] = sum(held.values())
            loss.backward()

        print(f"{name}:")
        ways = {"plain": lambda learn=learn: learn(False), "recomputed": lambda learn=learn: learn(True)}
        _in_turns(asked.rounds, ways, 3200, "tokens")
        print("  " + ", ".join(f"{way} holds {size / 2**20:.0f} MiB" for way, size in kept.items()))


def memory(folder: Path, asked: argparse.Namespace) -> None:
    """Host memory of a training on a small corpus and on a large one, beside that of its model alone."""
    command = [sys.executable, str(ROOT / "benchmarks" / "alone.py"), str(_recipe(folder, "transformer"))]
    said = subprocess.run(
        [*command, "--updates", str(asked.updates)], check=True, capture_output=True, text=True,
        env=dict(os.environ) | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip
    begun, numbers, alone = map(int, said.split())
    print(
        f"the model alone: {alone:,} MiB, of that {begun:,} when all is imported and {numbers:,} of weights, "
        "gradients and moments",
        flush=True,
    )
    for pairs in (30_000, asked.pairs):
        corpus(folder / f"text{pairs}", pairs)
        more = [
            "data.corpus=null",
            f"data.train={folder}/text{pairs}/text",
            f"data.valid={folder}/text30000/few",
            "data.vocabulary.size=4000",
            f"training.max_updates={asked.updates}",
        ]
        for language, text in (("en", "one\ntwo\n"), ("es", "uno\ndos\n")):
            (folder / "text30000" / f"few.{language}").write_text(text)
        begun = time.perf_counter()
        found = _train(folder, "transformer", more, processes=1, watched=True)
        all_, training, mapped = (found[key] / 2**20 for key in ("anonymous", "training", "file"))
        print(f"{pairs:,} pairs: {asked.updates} updates in {time.perf_counter() - begun:.0f} s", flush=True)
        print(
            f"  at most {all_:,.0f} MiB, while training {training:,.0f}, {training - alone:,.0f} beyond the "
            f"model; and {mapped:,.0f} mapped",
            flush=True,
        )


def corpus(folder: Path, pairs: int) -> ParallelText:
    """Lines of three to nine words of the embedded corpus; after a million pairs the same again."""
    if not folder.exists():
        folder.mkdir()
        chance = random.Random(1)
        sides = [
            [side.split() for side in pair[1:]] for pair in embedded("libreoffice-help", "en", "es", "train")
        ]
        lines: tuple[list[str], list[str]] = [], []
        for _ in range(min(pairs, 10**6)):
            words, length = chance.choice(sides), chance.randint(3, 9)
            at = chance.randrange(max(1, len(words[0]) - length))
            lines[0].append(" ".join(words[0][at : at + length]) + "\n")
            lines[1].append(" ".join(words[1][at : at + length] or words[1][:length]) + "\n")
        for language, side in zip(("en", "es"), lines, strict=True):
            with open(folder / f"text.{language}", "w") as file:
                for begun in range(0, pairs, 10**6):
                    file.writelines(side[: pairs - begun])
    return ParallelText(str(folder / "text"), "en", "es")


def vocabulary_of(folder: Path, path: Path) -> Path:
    """A BPE of 8,000 pieces, learnt from the first lines of such a corpus, as a file."""
    text = islice(ParallelText(str(folder / "text"), "en", "es"), 200_000)
    Vocabulary.train((side for pair in text for side in pair[1:]), kind="bpe", size=8000).save(path)
    return path


MEASURES = {one.__name__: one for one in (store, processes, saving, recomputing, memory)}


def _in_turns(rounds: int, ways: dict[str, Callable[[], None]], count: int, unit: str) -> None:
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), _cpu()
            way()
            seconds[name].append((time.perf_counter() - wall, _cpu() - cpu))
    first = next(iter(ways))
    for name, found in seconds.items():
        wall, cpu = (statistics.median(one[place] for one in found) for place in (0, 1))
        pairs = zip(seconds[first], found, strict=True)
        ratios = [(one[0] / two[0], one[1] / two[1]) for one, two in pairs]
        by = " and ".join(f"{statistics.median(ratio[place] for ratio in ratios):.2f}" for place in (0, 1))
        rates = f"{count / wall:11,.0f} {unit} a second, {count / cpu:11,.0f} a CPU second"
        print(f"  {name:12} {rates}; {by} times {first}", flush=True)


def _cpu() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _recipe(folder: Path, name: str, parts: list[str] | None = None) -> Path:
    path, (encoder, decoder) = folder / f"{name}.yaml", parts or PARTS[name]
    path.write_text(RECIPE.replace("ENCODER", encoder).replace("DECODER", decoder))
    return path


def _train(
    folder: Path, name: str, more: list[str], *, processes: int, watched: bool = False
) -> dict[str, float]:
    """The last line of progress; CPU seconds of the whole; what it said of its checkpoints; its memory."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    command = [sys.executable, "-m", "weft", "train", str(_recipe(folder, name)), *more, "--run", str(run)]
    env = dict(os.environ) | {"OMP_NUM_THREADS": str(processes), "PYTHONPATH": str(ROOT)}
    cpu, wall = _cpu(), time.perf_counter()
    held = {"anonymous": 0, "file": 0, "training": 0}
    with subprocess.Popen(
        [*command, "--processes", str(processes)], env=env, cwd=ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        while watched and child.poll() is None:
            for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
                for key, label in (("anonymous", "RssAnon"), ("file", "RssFile")):
                    if line.startswith(label):
                        now = 1024 * int(line.split()[1])
                        held[key] = max(held[key], now)
                        if key == "anonymous" and (run / "metrics.jsonl").exists():
                            held["training"] = max(held["training"], now)
            time.sleep(0.05)
        said = child.communicate()[1]
    assert child.returncode == 0, said
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, float] = {"cpu": _cpu() - cpu, "wall": time.perf_counter() - wall, **held}
    for key in ("tokens_per_second", "tokens_per_cpu_second"):
        rates = [line[key] for line in lines if key in line]
        found[key] = statistics.median(rates[1:])  # the first ones choose kernels
    waited = re.search(r"waited ([\d.]+) s \(([\d.]+) %", said)
    found["waited"], found["share"] = (float(waited[1]), float(waited[2])) if waited else (0.0, 0.0)
    return found


def _trainings(folder: Path, ways: dict[str, list[str]], rounds: int, models: list[str]) -> None:
    for name in models:
        print(f"{name}:")
        found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, more in ways.items():
                found[way].append(_train(folder, name, more, processes=1))
        first = found[next(iter(ways))]
        for way, many in found.items():
            ratio = statistics.median(two["cpu"] / one["cpu"] for one, two in zip(first, many, strict=True))
            waited = statistics.median(one["waited"] for one in many)
            share = statistics.median(one["share"] for one in many)
            print(f"  {way:10} waited {waited:.2f} s ({share:.2f} %), {ratio:.3f} of the CPU seconds")


if __name__ == "__main__":
    main()
