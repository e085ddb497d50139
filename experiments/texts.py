"""What each cell makes of language: language models and translators, with equal parameters and equal CPU seconds.

    python experiments/texts.py --shakespeare FILE --wikitext FOLDER --multi30k FOLDER   # what is not measured yet
    python experiments/texts.py --shakespeare FILE --models lstm transformer --seeds 3 --seconds 20
    python experiments/texts.py --write                       # docs/appendix/texts.md and its picture

FILE is Tiny Shakespeare; the folders hold train.txt and valid.txt of WikiText-2, and train.en, train.de, val.en and
val.de of Multi30k, each also with .gz. No text is stored. Every finished run is one line of JSON in
docs/pictures/memory/texts.jsonl; a run that is there is not repeated. Read next: text_data.py, equal.py, texts_page.py.
"""

import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from equal import CELLS, FOLDER, HEADS, arguments, finished, machines, measure, parameters, train, width_for
from text_data import READERS, Parallel, Running
from texts_page import page

from study import learn, plant
from weft.models import Generator
from weft.nn.cells.lstm import LSTM
from weft.nn.decoders.decoder import Decoder
from weft.nn.decoders.hybrid import HybridDecoder
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.decoders.transformer import TransformerDecoder
from weft.nn.embed.tokens import Tokens
from weft.nn.encoders.encoder import Encoder
from weft.nn.encoders.transformer import TransformerEncoder
from weft.nn.heads.categorical import Categorical
from weft.nn.scores import ScaledScore

RUNS = FOLDER / "texts.jsonl"
PLAIN = "lstm, no block"
NAMES = (*CELLS, PLAIN)
GRAMS = {"1-gram": 1, "3-gram": 3, "5-gram": 5}
"""Counts of running text to compare with, by order."""
EMBEDDING, LAYERS, RATE = 96, 2, 4e-3


def decoder(
    name: str,
    encoder: Encoder | None,
    width: int,
    *,
    inner: int = 0,
    embedding: int = EMBEDDING,
    layers: int = LAYERS,
) -> Decoder:
    """Layers of Transformer blocks, the same with a cell in place of self-attention, or LSTMs alone."""
    settings: dict[str, Any] = {
        "size": width,
        "num_layers": layers,
        "num_heads": HEADS,
        "inner": inner or 2 * width,
        "dropout": 0.0,
        "norm_kind": "rms",
        "activation": "geglu",
    }
    if name == PLAIN:
        return RecurrentDecoder(
            embedding,
            encoder,
            sizes=(width,) * layers,
            cell=LSTM,
            score=ScaledScore,
            key_size=width,
            bridge="summary",
        )
    if name == "transformer":
        return TransformerDecoder(embedding, encoder, positions="rotary", **settings)
    return HybridDecoder(embedding, encoder, cell=CELLS[name].cell, positions="none", **settings)


def encoder_of(data: Running | Parallel) -> Encoder | None:
    """The same Transformer for every translator; none for a language model."""
    if isinstance(data, Running):
        return None
    return TransformerEncoder(
        EMBEDDING, size=EMBEDDING, num_layers=LAYERS, num_heads=HEADS, inner=2 * EMBEDDING, dropout=0.0
    )


def model(name: str, data: Running | Parallel, width: int) -> Generator:
    """A language model or a translator with tied embeddings."""
    embed, encoder = Tokens(data.symbols, EMBEDDING), encoder_of(data)
    made = decoder(name, encoder, width)
    return Generator(embed, made, Categorical(made.size, data.symbols, tied=embed.table), encoder=encoder)


def run(paths: Mapping[str, Path], key: Mapping[str, Any]) -> dict[str, Any]:
    """Train one model for its CPU seconds, or count n-grams; its scores on the validation part."""
    name, data = key["model"], read(key["text"], paths[key["text"]])
    begun = time.process_time()
    if name in GRAMS:
        assert isinstance(data, Running)
        return data.grams(GRAMS[name]) | {"seconds": round(time.process_time() - begun, 1)}
    seed = key["seed"]
    width = width_for(partial(decoder, name, encoder_of(data)), key["budget"])
    learn(model(name, data, width), partial(data.draw, plant(seed)), 1)  # what is done once
    chance = plant(seed)
    made = model(name, data, width)
    updates = train(made, partial(data.draw, chance), key["seconds"], RATE)
    begun = time.process_time()
    scores = data.scores(made)
    spent = round(time.process_time() - begun, 1)
    count = {"parameters": parameters(made), "decoder": parameters(made.decoder)}
    return {"width": width, **count, "updates": updates, **scores, "scoring_seconds": spent}


@cache
def read(text: str, path: Path) -> Running | Parallel:
    """A text, read once."""
    return READERS[text](path)


def said(found: Mapping[str, Any]) -> str:
    """A finished run."""
    names = ("bits", "perplexity", "loss", "bleu")
    scores = ", ".join(f"{name} {found[name]:.4g}" for name in names if name in found)
    one = f"{found['text']}, {found['model']}"
    return (
        f"{one}, seed {found['seed']}: {scores}, {found['updates']} updates"
        if "seed" in found
        else f"{one}: {scores}"
    )


def main() -> None:
    """Run what is missing, or write the page."""
    parser = arguments(__doc__, RUNS, models=(*NAMES, *GRAMS), seconds=40, budget=100_000)
    for text in READERS:
        parser.add_argument(f"--{text}", type=Path, metavar="PATH", help="where it is; without it, left out")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.write:
        runs = finished(asked.runs)
        page(runs, NAMES, machines(runs))
        return
    paths = {text: path for text in READERS if (path := getattr(asked, text)) is not None}
    if not paths:
        parser.error("expected at least one of " + ", ".join(f"--{text}" for text in READERS))
    keys = [
        {"text": text, "model": name, "seed": seed, "seconds": asked.seconds, "budget": asked.parameters}
        for text in paths
        for seed in range(asked.first, asked.first + asked.seeds)
        for name in asked.models
        if name not in GRAMS
    ]
    running = [text for text, path in paths.items() if isinstance(read(text, path), Running)]
    keys += [{"text": text, "model": name} for text in running for name in asked.models if name in GRAMS]
    measure(asked.runs, keys, partial(run, paths), said)


if __name__ == "__main__":
    main()
