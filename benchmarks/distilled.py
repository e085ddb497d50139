"""A student of `weft distill` beside its teacher in CTranslate2: BLEU, and sentences a CPU second, in turns.

    pip install ctranslate2
    weft export TEACHER --to ctranslate2 --output FOLDER [--int8]
    python benchmarks/distilled.py STUDENT TEACHER FOLDER SOURCE REFERENCE

STUDENT and TEACHER are runs, FOLDER is the exported teacher (several are separated by commas), SOURCE and
REFERENCE are text files. The student searches greedily, its teacher with beam 5. Tokenising and joining count
in each side's time.
Read next: translate.py, the same for models without training.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import ctranslate2
import torch
from tokenizers import Tokenizer

from weft.data import read_lines
from weft.metrics import Bleu, compare
from weft.run import open_run

Search = Callable[[list[str]], list[str]]
ROWS, BEAM = 32, 5


def by_weft(run: Path, beam: int, precision: str) -> Search:
    """Weft's search."""
    changes = [f"decoding.beam={beam}", f"decoding.precision={precision}", f"decoding.batch_rows={ROWS}"]
    opened = open_run(run, device="cpu", changes=changes)
    predictor: Any = opened.pipeline.predictor(opened.model)
    return lambda lines: [one.found[0].text for one in predictor.answers(lines)]


def by_ctranslate2(folder: Path, beam: int) -> Search:
    """CTranslate2's search, as the README of an exported translator shows it."""
    coder = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = ctranslate2.Translator(str(folder), device="cpu", inter_threads=1, intra_threads=1)

    def search(lines: list[str]) -> list[str]:
        tokens = [one.tokens for one in coder.encode_batch(lines)]
        found = model.translate_batch(
            tokens,
            beam_size=beam,
            length_penalty=1,
            max_batch_size=ROWS,
            max_decoding_length=2 * max(map(len, tokens)) + 10,
            suppress_sequences=[["<pad>"], ["<unk>"], ["<sos>"]],
        )
        numbers = [[coder.token_to_id(token) for token in one.hypotheses[0]] for one in found]
        return [text.strip() for text in coder.decode_batch(numbers)]

    return search


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("student", "teacher"):
        parser.add_argument(name, type=Path)
    parser.add_argument("folders", type=lambda text: [Path(one) for one in text.split(",")])
    for name in ("source", "reference"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    sources, references = list(read_lines(asked.source)), list(read_lines(asked.reference))
    engines = {
        f"CTranslate2, teacher, {one.name}, beam {BEAM}": by_ctranslate2(one, BEAM) for one in asked.folders
    }
    compared = next(iter(engines))
    for precision in ("float32", "int8"):
        engines[f"Weft, student, {precision}, greedy"] = by_weft(asked.student, 1, precision)
        engines[f"Weft, teacher, {precision}, beam {BEAM}"] = by_weft(asked.teacher, BEAM, precision)
    outputs = {name: search(sources) for name, search in engines.items()}
    spent: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(asked.rounds):
        some = sources[turn % 2 :: 2]
        for name, search in engines.items():
            begun = time.process_time()
            search(some)
            spent[name].append(len(some) / (time.process_time() - begun))
    print(f"{len(sources):,} sentences, one thread; {Bleu().fitted(references).signature()}")
    for name, lines in outputs.items():
        two = compare(Bleu(), outputs[compared], lines, references)
        ratios = [a / b for a, b in zip(spent[name], spent[compared], strict=True)]
        score = f"{two.second.value:5.2f} [{two.second.low:.2f}, {two.second.high:.2f}]"
        against = f"{two.difference:+.2f}, p = {two.p_value:.3f}"
        speed = f"{statistics.median(spent[name]):6.1f} sentences a CPU second"
        times = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) times the first"
        print(f"  {name:40} BLEU {score} ({against})  {speed}, {times}")


if __name__ == "__main__":
    main()
