"""Argos Translate, offline translation: one .argosmodel file. Read next: ctranslate2.py."""

import copy
import importlib
import json
import shlex
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from weft.data.languages import NAMES
from weft.errors import ConfigError, ExportError
from weft.export.format import Format
from weft.export.formats.ctranslate2 import check_parts, measured, write_model
from weft.export.formats.tokenizer import tokenizer_json
from weft.export.network import check_search, network, sources
from weft.models import Generator
from weft.run import LoadedRun
from weft.search.offered import SearchSettings
from weft.tasks.abilities import Rewrites
from weft.text.pieces import SPECIALS
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary

NEVER = -1e4  # a logit
TO = "argos"
THEIRS = SearchSettings(beam=4, length_penalty=0.2)  # Argos Translate's, which a package cannot change
OWN = ("search", "beam", "length_penalty")


class Argos(Format):
    """A package that Argos Translate installs."""

    about: ClassVar[str] = "Argos Translate: translators, one .argosmodel file"
    ending: ClassVar[str] = ".argosmodel"
    packages: ClassVar[Sequence[str]] = ("ctranslate2", "sentencepiece", "onnx")

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        found = network(opened, TO)
        check_search(opened, TO, OWN)
        translates = isinstance(opened.pipeline, Rewrites) and opened.pipeline.directions()
        if found.encoder is None or not translates:
            raise ConfigError(
                f"--to {TO}: expected a translator, got the task {opened.name}; use --to ctranslate2"
            )
        if found.source is not found.target:
            raise ConfigError(
                f"data.vocabulary: --to {TO} expects one vocabulary for both sides, got two; train with "
                "data.vocabulary.shared=true, or use --to ctranslate2"
            )
        check_parts(found)
        check_vocabulary(found.target, TO)

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        found, texts = network(opened, TO), sources(opened)
        found = found._replace(model=_silent(found.model), how=THEIRS)
        pipeline: Any = opened.pipeline
        ((source, target),) = pipeline.directions()
        inside = folder / f"weft-{source}_{target}"
        (inside / "model").mkdir(parents=True)
        content = sentencepiece_model(found.target, TO)
        count = check_numbers(found.target, content, texts)
        (inside / "sentencepiece.model").write_bytes(content)
        names = [piece for piece, _ in pieces(found.target, TO)]
        lines = write_model(opened, found, inside / "model", (names, names), texts, int8=bool(int8))
        about = {
            "package_version": "1.0",
            "argos_version": "1.11",
            "from_code": source,
            "from_name": NAMES.get(source, source),
            "to_code": target,
            "to_name": NAMES.get(target, target),
            "links": [],
        }
        (inside / "minisbd").mkdir()
        (inside / "minisbd" / "sentences.onnx").write_bytes(sentence_splitter())
        (inside / "metadata.json").write_text(json.dumps(about, indent=2), "utf-8")
        own = opened.path / "README.md"
        card = own.read_text("utf-8") if own.is_file() else f"{source} to {target}.\n"
        (inside / "README.md").write_text(card + measured(lines), "utf-8")
        with zipfile.ZipFile(self.result(folder), "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(path for path in inside.rglob("*") if path.is_file()):
                packed.write(file, file.relative_to(folder))
        size = self.result(folder).stat().st_size
        return [
            f"package: {size / 1e6:.2f} MB",
            f"SentencePiece: {count} texts give Weft's tokens",
            *lines,
            *check_search(opened, TO, OWN),
        ]

    def result(self, folder: Path) -> Path:
        return folder / "package.argosmodel"

    def hints(self, output: Path) -> Sequence[str]:
        code = f"from argostranslate import package; package.install_from_path({str(output)!r})"
        return [f"next: python -c {shlex.quote(code)}"]


def _silent(model: Generator) -> Generator:
    """A copy that never writes a special symbol, for a program that does not suppress them."""
    copied = copy.deepcopy(model)
    head: Any = copied.head
    head.bias[[PAD, UNK, SOS]] = NEVER
    return copied


MARKS = ".!?\u2026"
ALONE = "\u3002\uff01\uff1f"
SPACES = " \n\t"
KNOWN = ("<PAD>", "<UNK>", *MARKS, *ALONE, *SPACES)
END = 2  # MiniSBD's class of a character that ends a sentence


def sentence_splitter() -> bytes:
    """A rule that splits sentences, as the ONNX model that Argos Translate's splitter (MiniSBD) runs.

    Without a model in the package MiniSBD downloads one. This one ends a sentence after . ! ? … when white
    space follows, and after the marks of Chinese and Japanese. Units [B, T] become scores [B, T, 3].
    """
    onnx: Any = importlib.import_module("onnx")
    make, tensor = onnx.helper, onnx.numpy_helper.from_array
    numbers = {name: number for number, name in enumerate(KNOWN)}
    nodes = [
        make.make_node("Gather", ["ending", "units"], ["is_ending"]),
        make.make_node("Gather", ["alone", "units"], ["is_alone"]),
        make.make_node("Gather", ["space", "units"], ["is_space"]),
        make.make_node("Slice", ["is_space", "one", "most", "axis"], ["following"]),
        make.make_node("Pad", ["following", "right", "filler"], ["next_space"]),
        make.make_node("Mul", ["is_ending", "next_space"], ["both"]),
        make.make_node("Max", ["both", "is_alone"], ["end"]),
        make.make_node("ReduceSum", ["features"], ["all_features"], keepdims=0),
        make.make_node("Mul", ["all_features", "nothing"], ["unused"]),
        make.make_node("Mul", ["end", "nothing"], ["zeros"]),
        make.make_node("Add", ["zeros", "unused"], ["token"]),
        make.make_node("Add", ["zeros", "half"], ["other"]),
        *(
            make.make_node("Unsqueeze", [name, "last"], [f"{name}_column"])
            for name in ("other", "token", "end")
        ),
        make.make_node("Concat", ["other_column", "token_column", "end_column"], ["scores"], axis=2),
    ]
    kinds = onnx.TensorProto
    graph = make.make_graph(
        nodes,
        "sentences",
        [
            make.make_tensor_value_info("units", kinds.INT64, ["B", "T"]),
            make.make_tensor_value_info("features", kinds.FLOAT, ["B", "T", "F"]),
        ],
        [make.make_tensor_value_info("scores", kinds.FLOAT, ["B", "T", 3])],
        [tensor(value, name) for name, value in _constants(numbers).items()],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9)
    vocabulary = {"_unit2id": numbers, "_id2unit": list(KNOWN), "lang": "any", "lower": False}
    about = {
        "lang_code": "any",
        "config": json.dumps({"feat_funcs": ["space_before"], "max_seqlen": 1000}),
        "vocab": json.dumps(vocabulary),
        "lexicon": "null",
    }
    make.set_model_props(model, about)
    return bytes(model.SerializeToString())


def _constants(numbers: dict[str, int]) -> dict[str, np.ndarray]:
    """Which units are marks and which are spaces, and numbers that the graph needs."""
    ending, space, alone = (np.zeros(len(KNOWN), np.float32) for _ in range(3))
    ending[[numbers[mark] for mark in MARKS]] = 1
    alone[[numbers[mark] for mark in ALONE]] = 1
    space[[0, *(numbers[mark] for mark in SPACES)]] = 1
    return {
        "ending": ending,
        "alone": alone,
        "space": space,
        "one": np.array([1]),
        "most": np.array([2**31]),
        "axis": np.array([1]),
        "last": np.array([2]),
        "right": np.array([0, 0, 0, 1]),
        "filler": np.array(1, np.float32),
        "nothing": np.array(0, np.float32),
        "half": np.array(0.5, np.float32),
    }


SPACE = "\u2581"


def check_vocabulary(vocabulary: Vocabulary, to: str) -> None:
    """Check that SentencePiece can express a vocabulary."""
    if vocabulary.kind not in ("bpe", "unigram"):
        raise ConfigError(
            f"data.vocabulary.kind: --to {to} expects bpe or unigram, got {vocabulary.kind}; train with one "
            "of them, or use --to ctranslate2"
        )
    if vocabulary.lowercase:
        raise ConfigError(
            f"data.vocabulary.lowercase: --to {to} expects false, since SentencePiece keeps the case of "
            "letters, got true; train without it, or use --to ctranslate2"
        )


def pieces(vocabulary: Vocabulary, to: str) -> list[tuple[str, float]]:
    """The pieces by number with SentencePiece's scores."""
    model: Any = tokenizer_json(vocabulary, to)["model"]
    if model["type"] == "Unigram":
        return [(piece.replace(" ", SPACE), float(score)) for piece, score in model["vocab"]]
    scores: dict[str, float] = {}
    for rank, (left, right) in enumerate(model["merges"]):
        scores.setdefault(left + right, -float(rank))
    low = -float(len(model["merges"]) + 1)
    every = sorted(model["vocab"], key=model["vocab"].__getitem__)
    return [(piece.replace(" ", SPACE), scores.get(piece, low)) for piece in every]


def sentencepiece_model(vocabulary: Vocabulary, to: str) -> bytes:
    """A BPE or unigram vocabulary as a SentencePiece model with the same numbers.

    SentencePiece knows no merges: of all neighbours it joins the pair whose joint piece scores best. A
    piece's score is minus the rank of the merge that makes it; where two merges make one piece, the first
    counts. Weft's boundaries (letters, digits, marks) need no rule, since no piece crosses one.
    """
    protocol: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")
    rows = pieces(vocabulary, to)
    if len({piece for piece, _ in rows}) < len(rows):
        raise ConfigError(
            f"data.vocabulary: --to {to} expects texts without {SPACE}, which SentencePiece writes for a "
            "space, got a vocabulary with both; use --to ctranslate2"
        )
    kinds = protocol.ModelProto.SentencePiece
    model = protocol.ModelProto()
    for number, (piece, score) in enumerate(rows):
        entry = model.pieces.add()
        entry.piece, entry.score = piece, score
        entry.type = kinds.UNKNOWN if number == UNK else kinds.CONTROL if number <= EOS else kinds.NORMAL
    spec = model.trainer_spec
    spec.model_type = protocol.TrainerSpec.BPE if vocabulary.kind == "bpe" else protocol.TrainerSpec.UNIGRAM
    spec.vocab_size = len(rows)
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, SOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIALS
    spec.unk_surface = ""
    how = model.normalizer_spec
    how.name = "identity"
    how.add_dummy_prefix = how.remove_extra_whitespaces = how.escape_whitespaces = True
    return bytes(model.SerializeToString())


def check_numbers(vocabulary: Vocabulary, content: bytes, texts: list[str]) -> int:
    """Check that SentencePiece gives Weft's numbers for these texts; returns how many."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    for text, ours in zip(texts, vocabulary.encode_batch(texts), strict=True):
        theirs = processor.encode(text)
        if theirs != ours and UNK not in ours:
            raise ExportError(
                f"SentencePiece gives {theirs[:8]} for {json.dumps(text[:40])}, expected Weft's {ours[:8]}; "
                "please report this text"
            )
    return len(texts)
