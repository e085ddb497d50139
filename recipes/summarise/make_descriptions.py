"""Descriptions of Debian's packages and their one-line synopses: train.tsv, valid.tsv and test.tsv.

    apt-get -o Acquire::Languages=en update
    python recipes/summarise/make_descriptions.py FOLDER
    weft train recipes/summarise/descriptions-lstm.yaml data.folder=FOLDER

The synopsis is what has to be written from the long description. Packages of one source often share
paragraphs: those whose descriptions begin alike are in the same part, and none stands twice. How many there
are depends on the release of Debian; the parts depend on the texts alone.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LISTS = Path("/var/lib/apt/lists")
READ = "/usr/lib/apt/apt-helper"
LEAST, MOST = 20, 120  # words of a description that is kept


def described(text: str) -> Iterator[tuple[str, str]]:
    """Long description and synopsis of each package of a Translation-en file."""
    for entry in text.split("\n\n"):
        found = re.search(r"^Description-en: (.*)\n((?: .*\n?)+)", entry, re.MULTILINE)
        if found is None:
            continue
        lines = [line.strip() for line in found[2].splitlines()]
        body = " ".join(" ".join(line for line in lines if line != ".").split())
        yield body, " ".join(found[1].split())


def part_of(body: str) -> str:
    """The part of all descriptions that begin with these words."""
    start = " ".join(body.lower().split()[:6])
    digit = hashlib.blake2b(start.encode(), digest_size=2).digest()[0] % 32
    return "test" if digit == 0 else "valid" if digit == 1 else "train"


def main() -> int:
    """Read the command line and the lists of apt."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    files = sorted(LISTS.glob("*_main_i18n_Translation-en*"))
    if not files:
        print(
            f"no Translation-en in {LISTS}; get it with: apt-get -o Acquire::Languages=en update",
            file=sys.stderr,
        )
        return 2
    parts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    seen: set[str] = set()
    for file in files:
        text = subprocess.run([READ, "cat-file", str(file)], check=True, capture_output=True).stdout
        for body, synopsis in described(text.decode("utf-8")):
            if body in seen or not LEAST <= len(body.split()) <= MOST or "\t" in body + synopsis:
                continue
            seen.add(body)
            parts[part_of(body)].append(f"{body}\t{synopsis}\n")
    folder.mkdir(parents=True, exist_ok=True)
    for part, lines in parts.items():
        text_ = "text\tsummary\n" + "".join(lines)
        (folder / f"{part}.tsv").write_text(text_, encoding="utf-8", newline="\n")
        print(f"{folder / part}.tsv: {len(lines):,} descriptions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
