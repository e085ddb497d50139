"""JoeyNMT 1.x and 2.x: recurrent translators with attention, and Transformers.

A model directory holds config.yaml, checkpoints (best.ckpt), src_vocab.txt, trg_vocab.txt, and in 2.x the BPE
codes or the SentencePiece model. Read next: kit.py, mapping.py.

Source: Kreutzer, Bastings & Riezler 2019; joeynmt 2.3.0.
"""

from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, ConfigError
from weft.importing import torchfile
from weft.importing.kits import vocabularies
from weft.importing.kits.assembling import ToolkitTranslator, assembled
from weft.importing.kits.joeynmt_parts import JoeyModel, embedding_of, origins_of
from weft.importing.kits.kit import CheckpointHints, Kit, beside, sides
from weft.importing.kits.reading import choice, lines, table, tensors, yaml
from weft.importing.kits.vocabularies import RunVocabulary
from weft.importing.writing import RunParts

CHECKPOINTS = ("best.ckpt", "avg_best.ckpt", "latest.ckpt")
SIDES = ("src", "trg")
SYMBOLS = (("pad", "<pad>"), ("unk", "<unk>"), ("bos", "<s>"), ("eos", "</s>"))
QUOTES = (("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u200b", ""))
NORMALISE = (
    {"type": "NFKC"},
    *({"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in QUOTES),
    {"type": "Replace", "pattern": {"Regex": "[ \u3000]+"}, "content": " "},
    *({"type": "Replace", "pattern": {"String": f" {mark}"}, "content": mark} for mark in "?!,.:"),
    {"type": "Strip", "strip_left": True, "strip_right": True},
)
COMPUTED = (".pe.pe",)  # tables that the model computes


def recognises(path: Path) -> bool:
    """Whether it is a directory with config.yaml and a checkpoint, or such a checkpoint."""
    if path.suffix == ".ckpt":
        return (path.parent / "config.yaml").is_file()
    return (path / "config.yaml").is_file() and _newest(path) is not None


def read(given: CheckpointHints) -> RunParts:
    """The run of a model directory, or of one of its checkpoints.

    Raises:
        CheckpointError: a file is missing, damaged, or does not belong to the others.
        ConfigError: a setting that Weft's parts cannot express.
    """
    folder = given.path.parent if given.path.suffix == ".ckpt" else given.path
    weights = given.path if given.path.suffix == ".ckpt" else _newest(folder)
    assert weights is not None
    place = str(folder / "config.yaml")
    config = yaml(folder / "config.yaml")
    state = tensors(torchfile.read_torch_file(weights), "model_state", str(weights))
    model = JoeyModel(config, state, place, str(weights))
    table(config, "model", place)
    data = table(config, "data", place)
    found = [_vocabulary(given, folder, data, model, one) for one in (0, 1)]
    ours, origins = origins_of(model)
    translator = ToolkitTranslator(
        ours, embedding_of(model), origins, state, model.weights, _decoding(config), spare=COMPUTED
    )
    source, target = (_side(data, short).get("lang", data.get(short)) for short in SIDES)
    return assembled(given, translator, (found[0], found[1]), (source, target))


KIT = Kit("JoeyNMT", "a directory with config.yaml and best.ckpt", recognises, read)


def _newest(folder: Path) -> Path | None:
    """The best checkpoint, or the one of the most updates."""
    named = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    steps = sorted(
        (file for file in folder.glob("*.ckpt") if file.stem.isdigit()), key=lambda one: int(one.stem)
    )
    return (named + steps[::-1] + [None])[0]


def _side(data: dict[str, Any], short: str) -> dict[str, Any]:
    """What the section `data` says about one side; before 2.0 it says it for both."""
    found = data.get(short)
    return found if isinstance(found, dict) else data


def _vocabulary(
    given: CheckpointHints, folder: Path, data: dict[str, Any], model: JoeyModel, one: int
) -> RunVocabulary:
    """The vocabulary of the source (0) or the target (1)."""
    short = SIDES[one]
    chosen = sides(given.vocabulary, "vocabulary")
    file = chosen[one] if chosen else beside(folder, f"{short}_vocab.txt")
    tokens = lines(file)
    section = _side(data, short)
    names = data.get("special_symbols")
    names = names if isinstance(names, dict) else {}
    symbols = [str(names.get(f"{name}_token", usual)) for name, usual in SYMBOLS]
    special = vocabularies.special(tokens, symbols)
    if special.unknown < 0 or special.end < 0:
        raise CheckpointError(
            f"{file}: expected {' and '.join(symbols)} in it; is it a vocabulary of JoeyNMT?"
        )
    options = section.get("tokenizer_cfg")
    options = options if isinstance(options, dict) else {}
    choice(options, "pretokenizer", model.place, "none")
    choice(names, "lang_tags", model.place, [])
    level = choice(section, "level", model.place, "word", "char", "bpe")
    lowercase = bool(section.get("lowercase", False))
    framed = one == 0
    normaliser = vocabularies.normaliser(
        lowercase=lowercase, steps=NORMALISE if section.get("normalize") else ()
    )
    if level != "bpe":
        return vocabularies.from_words(
            tokens, special, framed=framed, normaliser=normaliser, characters=level == "char"
        )
    kind = choice(
        {"type": section.get("tokenizer_type", section.get("bpe_type"))},
        "type",
        model.place,
        "sentencepiece",
        "subword-nmt",
        usual="sentencepiece" if options else "subword-nmt",
    )
    subwords = sides(given.subwords, "subwords")
    if subwords is None:
        named = options.get("model_file" if kind == "sentencepiece" else "codes")
        if not isinstance(named, str):
            raise ConfigError(
                f"{model.place}: names no BPE codes for {short} (JoeyNMT before 2.0 never does); give "
                "them with --subwords FILE"
            )
        subwords = (beside(folder, Path(named).name),) * 2
    if kind == "sentencepiece":
        if section.get("normalize"):
            choice(section, "normalize", model.place, False)
        return vocabularies.from_model(
            tokens, special, subwords[one], framed=framed, lowercase=lowercase, restricted=True
        )
    joiner = str(options.get("separator", vocabularies.JOINER))
    return vocabularies.from_codes(
        tokens, special, subwords[one], framed=framed, normaliser=normaliser, joiner=joiner
    )


def _decoding(config: dict[str, Any]) -> dict[str, Any]:
    """The search of the section `testing`."""
    found = config.get("testing")
    found = found if isinstance(found, dict) else {}
    beam, alpha = found.get("beam_size", 1), found.get("beam_alpha", found.get("alpha", -1))
    least = found.get("min_output_length", 1)  # theirs is 1 by default, ours 0
    longer = {"min_length": least} if isinstance(least, int) and least > 1 else {}
    if not isinstance(beam, int) or beam < 2:
        return {"search": "greedy"} | longer
    alpha = float(alpha) if isinstance(alpha, int | float) and alpha > 0 else 0.0
    return {"search": "beam", "beam": beam, "length_penalty": alpha, "normalisation": "gnmt"} | longer
