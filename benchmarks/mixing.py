"""What a training on two texts really reads, beside what weight and temperature say it should.

    python benchmarks/mixing.py [--updates N]

The embedded corpus and a small made one (short sums in words, a hundredth of its size) are mixed by
`weft train .. data.mixed data.temperature`, once for each temperature; every pair of every batch is counted.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORDS = {
    "en": ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "es": ("cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve"),
}
SIGNS = {"en": ("plus", "is"), "es": ("más", "es")}
RECIPE = ROOT / "recipes" / "translate" / "help-gru-attention.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=300, help="of the made text")
    parser.add_argument("--temperatures", default="1,5")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WEFT_CACHE"] = folder
        sums = _sums(Path(folder), asked.pairs)
        for temperature in asked.temperatures.split(","):
            _trained(Path(folder), sums, float(temperature), asked.updates)


def _trained(folder: Path, sums: Path, temperature: float, updates: int) -> None:
    from weft import cli
    from weft.tasks.seq2seq.base import PairTraining

    counted, sizes, collate = [0, 0], [0, 0], PairTraining.collate

    def watched(self: Any, numbers: Any) -> Any:
        sizes[:] = [len(one) for one in self.store.lengths]
        for number in numbers:
            counted[int(number >= sizes[0])] += 1
        return collate(self, numbers)

    PairTraining.collate = watched  # type: ignore[method-assign]
    run = folder / f"run-{temperature:g}"
    small = ["model.encoder.sizes=[32]", "model.decoder.sizes=[64]", "model.embedding.size=32"]
    given = ["train", str(RECIPE), "--run", str(run), "data.mixed={" + str(sums) + ": 1.0}"]
    given += [f"data.temperature={temperature:g}", f"training.max_updates={updates}", "training.average=0"]
    given += [
        "training.max_epochs=0",
        "training.monitors=false",
        "data.validate_rows=20",
        "training.device=cpu",
    ]
    try:
        cli.main([*given, *small])
    except SystemExit as end:
        if end.code:
            raise
    finally:
        PairTraining.collate = collate  # type: ignore[method-assign]
    powers = [size ** (1 / temperature) for size in sizes]
    print(
        f"temperature {temperature:g}: {updates} updates read {counted[0]:,} pairs of {sizes[0]:,} and "
        f"{counted[1]:,} of {sizes[1]:,}; the small text is {100 * counted[1] / sum(counted):.2f} %, by the "
        f"formula {100 * powers[1] / sum(powers):.2f} %",
        flush=True,
    )


def _sums(folder: Path, pairs: int) -> Path:
    """Sums such as two plus three is five, in both languages, into sums.en and sums.es."""
    chance = random.Random(1)
    lines: dict[str, list[str]] = {"en": [], "es": []}
    for _ in range(pairs):
        one = chance.randrange(10)
        other = chance.randrange(10 - one)
        for language, words in WORDS.items():
            plus, makes = SIGNS[language]
            lines[language].append(f"{words[one]} {plus} {words[other]} {makes} {words[one + other]}\n")
    for language, text in lines.items():
        (folder / f"sums.{language}").write_text("".join(text), "utf-8")
    return folder / "sums"


if __name__ == "__main__":
    sys.exit(main())
