"""Spoken digit strings, made with the synthesiser espeak-ng: a folder of wav and three transcript TSVs.

    apt-get install espeak-ng
    python recipes/speech/make_digits.py FOLDER
    weft train recipes/speech/digits-pyramid.yaml data.folder=FOLDER

Twenty voices are trained on, two others choose the checkpoint, two more are tested: nobody of the latter is
heard in training. Rate, pitch and the digits are drawn with the seed, so the same version of espeak-ng gives
the same files.

With --rooms, every recording is in a room of its own with noise, and long.tsv has recordings of minutes: the
test strings one after the other, with pauses of half a second to one and a half.
"""

import argparse
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = ("en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-gb-x-gbclan")
SPEAKERS = (
    *("m1", "f1", "m2", "f2", "m3", "f5", "m4", "Andrea", "m6", "Alicia"),
    *("m8", "linda", "adam", "steph", "Michael", "belinda", "ed", "anika", "john", "Annie"),
)
TRAIN = tuple(f"{ACCENTS[place % len(ACCENTS)]}+{name}" for place, name in enumerate(SPEAKERS))
VALID = ("en-gb+f4", "en-us+david")
TEST = ("en-us+f3", "en-gb+m7")
SPLITS = {"train": (TRAIN, 1.0), "valid": (VALID, 0.1), "test": (TEST, 0.2)}
MOST = 7  # digits of a string
TOGETHER = 40  # strings of a long recording


def make(folder: Path, seed: int, strings: int = 2000, *, rooms: bool = False) -> None:
    """Write FOLDER/wav/*.wav, and train.tsv, valid.tsv and test.tsv, whose lines are FILE TAB TRANSCRIPT."""
    chance, draw = random.Random(seed), np.random.default_rng(seed)
    (folder / "wav").mkdir(parents=True, exist_ok=True)
    for split, (voices, share) in SPLITS.items():
        lines, count = [], round(share * strings)
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
    if rooms:
        make_long(folder, lines, draw)
        for path in sorted((folder / "wav").iterdir()):
            samples, rate = soundfile.read(path)
            soundfile.write(path, in_room(samples, rate, draw), rate)


def in_room(samples: np.ndarray, rate: int, draw: np.random.Generator) -> np.ndarray:
    """A sound in a room that echoes for 0.2 to 0.6 seconds, with noise 10 to 25 dB below it."""
    seconds = draw.uniform(0.2, 0.6)
    tail = draw.normal(size=int(rate * seconds)) * 1e-3 ** np.linspace(0, 1, int(rate * seconds))
    size = len(samples) + len(tail)
    echo = np.fft.irfft(np.fft.rfft(samples, size) * np.fft.rfft(tail, size), size)[: len(samples)]
    found = samples / samples.std() + draw.uniform(0.1, 0.4) * echo / echo.std()
    found += draw.normal(size=len(found)) * 10 ** (-draw.uniform(10, 25) / 20)
    return np.asarray(0.9 * found / np.abs(found).max())


def make_long(folder: Path, lines: list[str], draw: np.random.Generator) -> None:
    """Write the test strings as long recordings, each of one voice in one room, and long.tsv."""
    (folder / "long").mkdir(exist_ok=True)
    found = []
    for number in range(len(lines) // TOGETHER):
        begin = number % len(TEST) + number // len(TEST) * len(TEST) * TOGETHER
        own = [line.split("\t") for line in lines[begin : begin + len(TEST) * TOGETHER : len(TEST)]]
        parts, rate = [], 0
        for name, _ in own:
            samples, rate = soundfile.read(folder / name)
            parts += [samples, np.zeros(int(rate * draw.uniform(0.5, 1.5)))]
        samples = in_room(np.concatenate(parts), rate, draw)
        soundfile.write(folder / "long" / f"{number}.wav", samples, rate)
        found.append(f"long/{number}.wav\t{' '.join(text.strip() for _, text in own)}\n")
        print(f"long/{number}.wav: {len(samples) / rate / 60:.1f} minutes")
    (folder / "long.tsv").write_text("".join(found), encoding="utf-8", newline="\n")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strings", type=int, default=2000, help="Training strings.")
    parser.add_argument("--rooms", action="store_true", help="Rooms, noise, and recordings of minutes.")
    given = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        print("espeak-ng is not installed; get it with: apt-get install espeak-ng", file=sys.stderr)
        return 2
    make(given.folder, given.seed, given.strings, rooms=given.rooms)
    return 0


if __name__ == "__main__":
    sys.exit(main())
