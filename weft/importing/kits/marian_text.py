"""Marian's vocabularies (.spm, or .yml with BPE codes or SentencePiece models) and *.decoder.yml.

Read next: marian.py, vocabularies.py.
"""

import json
import re
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, ConfigError
from weft.importing.kits import vocabularies
from weft.importing.kits.kit import CheckpointHints, sides
from weft.importing.kits.reading import lines, number, yaml
from weft.importing.kits.vocabularies import RunVocabulary, Special
from weft.text.sentencepiece import read_pieces

END, UNKNOWN = "</s>", "<unk>"
_TOKEN = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^"'\s].*)""")
_NUMBER = re.compile(r"\d{1,9}")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\U([0-9a-fA-F]{8})")


def vocabularies_of(given: CheckpointHints, path: Path) -> tuple[RunVocabulary, RunVocabulary]:
    """The vocabularies of the source and the target.

    Args:
        given: what the user said.
        path: the model.npz.

    Raises:
        CheckpointError: a file is missing or damaged.
        ConfigError: it is not known which files they are, or how words are cut.
    """
    files = sides(given.vocabulary, "vocabulary") or _beside(path)
    subwords = sides(given.subwords, "subwords")
    models = tuple(path.parent / f"{side}.spm" for side in ("source", "target"))
    if subwords is None and all(file.is_file() for file in models):
        subwords = (models[0], models[1])
    one, two = (
        _vocabulary(file, None if subwords is None else subwords[side], framed=side == 0)
        for side, file in enumerate(files)
    )
    return one, two


def decoding_of(path: Path) -> dict[str, Any]:
    """The search that the decoder's settings say, or Marian's usual one."""
    found = _decoder(path)
    place = f"{path.parent}: decoder.yml"
    beam = int(number(found, "beam-size", place, usual=12))
    penalty = float(number(found, "normalize", place, usual=0.0))
    if beam < 2:
        return {"search": "greedy"}
    return {"search": "beam", "beam": min(beam, 1000), "length_penalty": min(penalty, 10.0), "max_ratio": 3.0}


def _decoder(path: Path) -> dict[str, Any]:
    for file in (path.with_name(f"{path.name}.decoder.yml"), path.with_name("decoder.yml")):
        if file.is_file():
            return yaml(file)
    return {}


def _beside(path: Path) -> tuple[Path, Path]:
    """The files that the decoder's settings name, or the only one of the directory."""
    named = _decoder(path).get("vocabs")
    if isinstance(named, list) and len(named) == 2 and all(isinstance(one, str) and one for one in named):
        one, two = (path.parent / Path(name).name for name in named)
        return one, two
    every = [*path.parent.glob("*.spm"), *path.parent.glob("*vocab*.yml")]
    found = sorted(file for file in every if file.name not in ("source.spm", "target.spm"))
    if len(found) != 1:
        raise ConfigError(
            f"{path}: expected its vocabulary beside it, or a decoder.yml that names it, got {len(found)} "
            "files; give it with --vocabulary FILE, twice if source and target have their own"
        )
    return found[0], found[0]


def _vocabulary(file: Path, subwords: Path | None, *, framed: bool) -> RunVocabulary:
    if file.suffix == ".spm":
        tokens = read_pieces(file)
        return vocabularies.from_model(tokens, _special(tokens, file), file, framed=framed)
    if file.suffix not in (".yml", ".yaml", ".json"):
        raise ConfigError(f"{file}: expected a vocabulary in .spm or .yml, got {file.suffix[:10]!r}")
    tokens = _tokens(file)
    special = _special(tokens, file)
    return vocabularies.from_subwords(tokens, special, subwords, framed=framed, place=file)


def _special(tokens: list[str], file: Path) -> Special:
    found = vocabularies.special(tokens, ("", UNKNOWN, "", END))
    if found.unknown < 0 or found.end < 0:
        raise CheckpointError(f"{file}: expected {UNKNOWN} and {END} in it; is it a vocabulary of Marian?")
    return found._replace(pad=-1, start=-1)


def _tokens(file: Path) -> list[str]:
    """The tokens of lines `token: number`, as marian-vocab writes them, or of a JSON table.

    Raises:
        CheckpointError: it is damaged, or a number is used twice; a number that is left out has no token.
    """
    numbers: dict[int, str] = {}
    for count, line in enumerate(lines(file), 1):
        bare = line.strip().removesuffix(",")
        if bare in ("", "{", "}", "---"):
            continue
        token, _, place = bare.rpartition(":")
        token, place = token.rstrip(), place.lstrip()
        if not _TOKEN.fullmatch(token) or not _NUMBER.fullmatch(place) or int(place) in numbers:
            raise CheckpointError(
                f"{file}:{count}: expected a token, a colon and a unique number, got {line[:40]!r}"
            )
        numbers[int(place)] = _unquoted(token, f"{file}:{count}")
    if max(numbers, default=0) >= 4 * len(numbers) + 100:
        raise CheckpointError(
            f"{file}: expected numbers below {4 * len(numbers) + 100:,}, got {max(numbers):,}; fetch it again"
        )
    return [numbers.get(number, f"<{number}>") for number in range(max(numbers, default=-1) + 1)]


def _unquoted(token: str, place: str) -> str:
    if token[0] == "'":
        return token[1:-1].replace("''", "'")
    if token[0] != '"':
        return token
    try:
        found = str(json.loads(_ESCAPE.sub(_as_json, token)))
        found.encode()  # not half of a surrogate pair
        return found
    except (ValueError, OverflowError) as error:
        raise CheckpointError(f"{place}: expected a quoted token, got {token[:40]}") from error


def _as_json(match: re.Match[str]) -> str:
    """An escape of YAML that JSON lacks, as JSON writes it."""
    return json.dumps(chr(int(match[1] or match[2], 16)))[1:-1]
