"""fairseq: Transformers and LSTMs of the task translation, with both kinds of checkpoints.

A checkpoint, checkpoint_best.pt, holds its settings under `args` (an argparse.Namespace, up to 0.9) or `cfg`
(dicts or containers of omegaconf, from 0.10 on). Its dictionaries, dict.LANG.txt, are beside it or given.
Read next: fairseq_transformer.py, fairseq_lstm.py, the models; assembling.py.

Source: Ott et al. 2019; fairseq 0.12.2.
"""

from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.kits import fairseq_lstm, fairseq_transformer, vocabularies
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.fairseq_parts import FairseqCheckpoint, OurParts, Settings, check_fairseq, renamed
from weft.importing.kits.kit import CheckpointHints, Kit, beside, languages, sides
from weft.importing.kits.reading import lines, tensors
from weft.importing.kits.vocabularies import RunVocabulary, Special
from weft.importing.records import content, settings
from weft.importing.writing import RunParts

CHECKPOINTS = ("checkpoint_best.pt", "model.pt", "checkpoint_last.pt")
CODES = ("bpecodes", "codes", "code", "bpe.codes")
PIECES = ("sentencepiece.bpe.model", "spm.model", "sentencepiece.model")
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>"]  # first in every dictionary, but not in its file
SPECIAL = Special(pad=1, unknown=3, start=2, end=2)  # </s> begins the output too
OVERWRITE = "#fairseq:overwrite"
SPACES = (
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Strip", "strip_left": True, "strip_right": True},
)
SPARE = (".version", "._float_tensor", ".embed_positions.weights")
MODELS = {
    **dict.fromkeys(fairseq_transformer.ARCHITECTURES, fairseq_transformer.transformer),
    **dict.fromkeys(fairseq_lstm.ARCHITECTURES, fairseq_lstm.lstm),
}


def recognises(path: Path) -> bool:
    """Whether it is a checkpoint with an embedding table of fairseq's, or a directory with one."""
    file = _checkpoint(path)
    if file is None:
        return False
    head = torchfile.program(file)
    named = any(bytes([len(name)]) + b"\0\0\0" + name in head for name in (b"args", b"cfg"))
    return named and b"coder.embed_tokens.weight" in head


def read(given: CheckpointHints) -> RunParts:
    """The run of a checkpoint.

    Raises:
        CheckpointError: a file is missing, damaged, or does not belong to the others.
        ConfigError: an architecture or a setting that Weft's parts cannot express.
    """
    file = _checkpoint(given.path)
    assert file is not None
    whole = torchfile.read_torch_file(file)
    checkpoint = FairseqCheckpoint(_settings(whole, file), tensors(whole, "model", str(file)), str(file))
    del whole
    ours = _parts(checkpoint)
    known = [checkpoint.settings.get(name) for name in ("source_lang", "target_lang")]
    named = languages(given, *known)
    found = [_vocabulary(given, file.parent, named, known, one) for one in (0, 1)]
    translator = ToolkitTranslator(
        ours.model,
        ours.embedding,
        ours.origins,
        ours.state,
        str(file),
        _decoding(checkpoint.settings),
        spare=SPARE,
        positions=ours.positions,
    )
    return assembled(given, translator, (found[0], found[1]), (known[0], known[1]))


KIT = Kit("fairseq", "a checkpoint_best.pt next to dict.LANG.txt", recognises, read)


def _checkpoint(path: Path) -> Path | None:
    """The checkpoint itself, or the best one of a directory."""
    files = [path] if path.suffix == ".pt" else [path / name for name in CHECKPOINTS]
    return next((file for file in files if file.is_file()), None)


def _settings(whole: Any, file: Path) -> Settings:
    """The settings of model, task, criterion and search, of both kinds of checkpoints, as one table.

    Raises:
        CheckpointError: there are none.
    """
    parts = whole if isinstance(whole, dict) else {}
    found = settings(parts.get("args"))
    if not found:
        sections = content(parts.get("cfg"))
        for name in ("generation", "criterion", "task", "model"):  # later ones come first
            found |= {key: one for key, one in settings(sections.get(name)).items() if one is not None}
    if not found:
        raise CheckpointError(f"{file}: expected settings under args or cfg, got none; is it a checkpoint?")
    return found


def _parts(found: FairseqCheckpoint) -> OurParts:
    """The model of one of the known architectures."""
    name = found.settings.get("arch") or found.settings.get("_name")
    if not isinstance(name, str) or name not in MODELS:
        raise ConfigError(
            f"{found.place}: arch: expected one of {', '.join(MODELS)}, got {str(name)[:60]}; "
            "only Transformers and LSTMs for translation can be imported"
        )
    check_fairseq(found)
    ours = MODELS[name](found._replace(state=renamed(found.state)))
    return ours._replace(model=ours.model | {"smoothing": found.number("label_smoothing", 0.0)})


def _vocabulary(
    given: CheckpointHints, folder: Path, named: dict[str, str], known: list[Any], one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    chosen = sides(given.vocabulary, "vocabulary")
    language = known[one] if isinstance(known[one], str) else named[("source", "target")[one]]
    file = chosen[one] if chosen else beside(folder, f"dict.{Path(str(language)).name}.txt")
    tokens = _tokens(file)
    subwords = sides(given.subwords, "subwords")
    return vocabularies.from_subwords(
        tokens,
        SPECIAL,
        subwords[one] if subwords else _beside(folder),
        framed=one == 0,
        normaliser=vocabularies.normaliser(steps=SPACES),
        place=file,
    )


def _tokens(file: Path) -> list[str]:
    """The tokens of a dict.LANG.txt: a token and how often it was seen, per line.

    Raises:
        CheckpointError: a line is of another form, or a token is there twice.
    """
    tokens = list(SYMBOLS)
    seen = {token: number for number, token in enumerate(tokens)}
    for count, line in enumerate(lines(file), 1):
        token, _, number = line.rstrip().rpartition(" ")
        again = number == OVERWRITE
        if again:
            token, _, number = token.rpartition(" ")
        if not token or not number.removeprefix("-").isdigit():
            raise CheckpointError(f"{file}:{count}: expected a token and a count, got {line[:40]!r}")
        if token in seen and not again:
            raise CheckpointError(
                f"{file}:{count}: {token[:40]!r} occurs twice; was the file written by fairseq-preprocess?"
            )
        seen[token] = len(tokens)
        tokens.append(token)
    return tokens


def _beside(folder: Path) -> Path | None:
    """BPE codes or a SentencePiece model with one of the usual names."""
    return next((folder / name for name in (*CODES, *PIECES) if (folder / name).is_file()), None)


def _decoding(found: Settings) -> dict[str, Any]:
    """The search of fairseq-generate."""

    def within(name: str, least: float, most: float, usual: float) -> float:
        one = found.get(name)
        return one if isinstance(one, int | float) and least <= one <= most else usual

    return {
        "search": "beam",
        "beam": int(within("beam", 2, 1000, 5)),
        "length_penalty": float(within("lenpen", 0, 10, 1)),
        "normalisation": "length",
        "max_ratio": float(within("max_len_a", 0, 1000, 0)),
        "max_extra": int(within("max_len_b", 1, 10_000, 200)),
    }
