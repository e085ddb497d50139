"""Spoken digit strings, made with the synthesiser espeak-ng: a folder of wav and three transcript TSVs.

    apt-get install espeak-ng
    python recipes/speech/make_digits.py FOLDER
    weft train recipes/speech/digits-pyramid.yaml data.folder=FOLDER

Twenty voices are trained on, two others choose the checkpoint, two more are tested: nobody of the latter is
heard in training. Rate, pitch and the digits are drawn with the seed, so the same version of espeak-ng gives
the same files.
"""

import argparse
import random
import shutil
import subprocess
import sys
from pathlib import Path

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = ("en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-gb-x-gbclan")
SPEAKERS = (
    *("m1", "f1", "m2", "f2", "m3", "f5", "m4", "Andrea", "m6", "Alicia"),
    *("m8", "linda", "adam", "steph", "Michael", "belinda", "ed", "anika", "john", "Annie"),
)
TRAIN = tuple(f"{ACCENTS[place % len(ACCENTS)]}+{name}" for place, name in enumerate(SPEAKERS))
VALID = ("en-gb+f4", "en-us+david")
TEST = ("en-us+f3", "en-gb+m7")
SPLITS = {"train": (TRAIN, 2000), "valid": (VALID, 200), "test": (TEST, 400)}
MOST = 7  # digits of a string


def make(folder: Path, seed: int) -> None:
    """Write FOLDER/wav/*.wav, and train.tsv, valid.tsv and test.tsv, whose lines are FILE TAB TRANSCRIPT."""
    chance = random.Random(seed)
    (folder / "wav").mkdir(parents=True, exist_ok=True)
    for split, (voices, count) in SPLITS.items():
        lines = []
        for number in range(count):
            voice = voices[number % len(voices)]
            words = " ".join(chance.choices(DIGITS, k=chance.randint(1, MOST)))
            rate, pitch = chance.randint(140, 200), chance.randint(35, 65)
            name = f"wav/{split}-{number:04d}-{voice.replace('+', '-')}.wav"
            say = ["espeak-ng", "-v", voice, "-s", str(rate), "-p", str(pitch), "-w", str(folder / name)]
            subprocess.run([*say, words], check=True)
            lines.append(f"{name}\t{words}\n")
        (folder / f"{split}.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")
        print(f"{folder / split}.tsv: {count} recordings of {len(voices)} voices")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        print("espeak-ng is not installed; get it with: apt-get install espeak-ng", file=sys.stderr)
        return 2
    make(given.folder, given.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
