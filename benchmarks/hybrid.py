"""A hybrid beside a Transformer of equal BLEU: Weft decodes the one, CTranslate2 the other, in turns.

    pip install ctranslate2
    python benchmarks/hybrid.py train --model hybrid --data MULTI30K --out DIR --seconds 900
    python benchmarks/hybrid.py train --model transformer --data MULTI30K --out DIR --seconds 1800
    python benchmarks/hybrid.py measure --data MULTI30K --out DIR

Both are trained by Weft (the benchmark's sizes and settings), with weights kept every --every CPU seconds
and BLEU on the validation text. `measure` takes the hybrid's last weights and the first of the Transformer
that are as good on that text, writes the Transformer as a model of CTranslate2, asks whether both translate
alike, and times batches of the test text. Read next: translate.py, peers/weft.py.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from ctranslate2.specs import Activation, TransformerSpec
from safetensors.torch import load_model, save_model
from score import Scorer
from torch import nn
from workload import Workload, make

from peers.ctranslate2 import CTranslate2, name_tokens
from peers.engine import Engine, Sizes
from peers.weft import Weft

VOCABULARY, LANGUAGES, TEST = 8000, ("en", "de"), "test_2016_flickr"
LONGEST = 512  # positions that CTranslate2 is given


def work(options: argparse.Namespace, test: str) -> tuple[Workload, Scorer]:
    """The token ids, tested on this text, and who scores it."""
    npz, vocabulary, references = make(
        options.data, LANGUAGES, test, options.out, size=VOCABULARY, max_tokens=800, rows=32
    )
    found = Workload.load(npz)
    return found, Scorer(vocabulary, references, found.test_batches)


def translated(engine: Engine, load: Workload, width: int, batches: list[int]) -> list[list[int]]:
    """What an engine writes for these batches."""
    rows = []
    for number in batches:
        source, lengths, shortest, longest = load.test_batch(number, False)
        rows += engine.search(source, lengths, width, shortest, longest)
    return rows


def train(options: argparse.Namespace) -> None:
    """Train one model and keep its weights from time to time."""
    load, scorer = work(options, "val")
    engine = Weft(Sizes(VOCABULARY, options.model), "bfloat16")
    folder = options.out / options.model
    folder.mkdir(parents=True, exist_ok=True)
    spent = shown = 0.0
    number = 0
    everything = list(range(len(load.test_batches)))
    while spent < options.seconds:
        begun = time.process_time()
        loss = engine.update(load.train_batch(number))
        spent += time.process_time() - begun
        number += 1
        if spent - shown >= options.every or spent >= options.seconds:
            shown = spent
            bleu = scorer.score(translated(engine, load, 5, everything), everything)
            print(
                f"{options.model}: {spent:.0f} CPU s, {number} updates, loss {loss:.3f}, BLEU {bleu:.2f}",
                flush=True,
            )
            save_model(engine.model, str(folder / f"{spent:06.0f}.safetensors"))
            with (folder / "scores.jsonl").open("a") as lines:
                lines.write(json.dumps({"seconds": round(spent), "updates": number, "bleu": bleu}) + "\n")


def handed_over(model: nn.Module, folder: Path, dtype: str) -> CTranslate2:
    """Weft's Transformer in CTranslate2's hands."""
    folder.mkdir(parents=True, exist_ok=True)
    _spec(model).save(str(folder))
    engine = CTranslate2(Sizes(VOCABULARY, "transformer"), dtype)
    engine.open(folder)
    return engine


def _spec(model: nn.Module) -> object:
    """The model as CTranslate2 describes one; norms stand before the sublayers and after the last layer."""
    encoder, decoder = model.encoder, model.decoder
    spec = TransformerSpec.from_config(
        (len(encoder.blocks), len(decoder.blocks)), 4, pre_norm=True, activation=Activation.RELU
    )
    table = model.embed.table.weight
    for side, ours in ((spec.encoder, encoder), (spec.decoder, decoder)):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = _numbers(table)
        side.scale_embeddings = True
        side.position_encodings.encodings = ours.positions.table[:LONGEST].float().numpy()
        _norm(side.layer_norm, ours.last_norm)
        for theirs, block in zip(side.layer, ours.blocks, strict=True):
            _norm(theirs.self_attention.layer_norm, block.attention_norm)
            _linear(theirs.self_attention.linear[0], block.attention.query, block.attention.key_value)
            _linear(theirs.self_attention.linear[1], block.attention.out)
            if side is spec.decoder:
                _norm(theirs.attention.layer_norm, block.look_norm)
                _linear(theirs.attention.linear[0], block.look.query)
                _linear(theirs.attention.linear[1], block.look.key_value)
                _linear(theirs.attention.linear[2], block.look.out)
            _norm(theirs.ffn.layer_norm, block.network_norm)
            _linear(theirs.ffn.linear_0, block.network.first)
            _linear(theirs.ffn.linear_1, block.network.second)
    spec.decoder.projection.weight = _numbers(table)
    spec.decoder.projection.bias = _numbers(model.head.bias)
    name_tokens(spec, len(table))
    spec.validate()
    return spec


def _numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().float().numpy()


def _norm(theirs: object, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _numbers(ours.weight), _numbers(ours.bias)


def _linear(theirs: object, *ours: nn.Linear) -> None:
    theirs.weight = np.concatenate([_numbers(one.weight) for one in ours])
    theirs.bias = np.concatenate([_numbers(one.bias) for one in ours])


def measure(options: argparse.Namespace) -> None:
    """Take weights of equal BLEU on the validation text, then time both on the test text."""
    scores = {
        model: [json.loads(line) for line in (options.out / model / "scores.jsonl").read_text().splitlines()]
        for model in ("hybrid", "transformer")
    }
    hybrid = scores["hybrid"][-1]
    good = [one for one in scores["transformer"] if one["bleu"] >= hybrid["bleu"]] or scores["transformer"][
        -1:
    ]
    taken = {"hybrid": hybrid, "transformer": good[0]}
    for model, one in taken.items():
        print(f"{model}: {one['seconds']} CPU s, {one['updates']} updates, validation BLEU {one['bleu']:.2f}")
    load, scorer = work(options, TEST)
    engines: dict[str, Engine] = {}
    for dtype in ("float32", "bfloat16"):
        engines[f"weft hybrid {dtype}"] = _weft("hybrid", dtype, taken["hybrid"], options)
    plain = engines["weft transformer float32"] = _weft(
        "transformer", "float32", taken["transformer"], options
    )
    for dtype in ("float32", "int8"):
        folder = options.out / f"ctranslate2-{dtype}"
        engines[f"ctranslate2 transformer {dtype}"] = handed_over(plain.model, folder, dtype)
    everything = list(range(len(load.test_batches)))
    for width in (5, 1):
        outputs = {name: translated(engine, load, width, everything) for name, engine in engines.items()}
        alike = [
            one == two
            for one, two in zip(
                outputs["weft transformer float32"], outputs["ctranslate2 transformer float32"], strict=True
            )
        ]
        print(
            f"width {width}: Weft and CTranslate2 write the same for {sum(alike)} of {len(alike)} sentences"
        )
        spent: dict[str, list[float]] = {name: [] for name in engines}
        for round_ in range(options.rounds):
            batches = everything[round_ % 2 :: 2]
            for name, engine in engines.items():
                begun = time.process_time()
                rows = translated(engine, load, width, batches)
                spent[name].append(len(rows) / (time.process_time() - begun))
        for name in engines:
            ratios = [a / b for a, b in zip(spent[name], spent["ctranslate2 transformer int8"], strict=True)]
            words = sum(map(len, outputs[name])) / len(outputs[name])
            print(
                f"  {name:32} BLEU {scorer.score(outputs[name], everything):5.2f}  "
                f"{words:4.1f} tokens each  {statistics.median(spent[name]):6.1f} sentences/CPU s  "
                f"{statistics.median(ratios):.2f} x int8 ({min(ratios):.2f}-{max(ratios):.2f})"
            )
    print(scorer.signature)


def _weft(model: str, dtype: str, taken: dict, options: argparse.Namespace) -> Weft:
    engine = Weft(Sizes(VOCABULARY, model), dtype)
    kept = sorted((options.out / model).glob("*.safetensors"))
    weights = min(kept, key=lambda path: abs(int(path.stem) - taken["seconds"]))
    load_model(engine.model, str(weights))
    return engine


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["train", "measure"])
    parser.add_argument("--model", choices=["hybrid", "transformer"], default="hybrid")
    parser.add_argument("--data", type=Path, required=True, help="folder with train.en, train.de, ...")
    parser.add_argument("--out", type=Path, required=True, help="where weights are kept")
    parser.add_argument("--seconds", type=float, default=900, help="of the processor, to train for")
    parser.add_argument("--every", type=float, default=150, help="seconds after which weights are kept")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    options.out.mkdir(parents=True, exist_ok=True)
    {"train": train, "measure": measure}[options.what](options)


if __name__ == "__main__":
    main()
