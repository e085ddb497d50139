"""The fuzzed readers: all that read files which others may have written.

A reader gets the path of one file and returns anything, or raises an error of weft.errors. Any other
exception, or a minute without a result, is a finding. Read next: harm.py.
"""

import gzip
import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from tests.fuzz import samples
from tests.train.saved import save
from weft.config import read_recipe
from weft.data.audio import read_sound, read_spoken
from weft.data.conllu import read_sentences
from weft.data.files import file_bytes
from weft.data.images import read_array, read_captions, read_clip, read_picture
from weft.data.labelled import LabelledText
from weft.data.lines import read_lines
from weft.data.parallel import ParallelText
from weft.data.series import read_series
from weft.data.vectors import read_questions, read_vectors
from weft.importing.families import import_model
from weft.inspect.views import curves
from weft.ngram import arpa
from weft.run.training import check_recipe
from weft.store import weights
from weft.tasks.embeddings.data import WordList
from weft.tasks.pictures.pictures import read_shape
from weft.tasks.vocabulary import Lexicon
from weft.text.loading import load_vocabulary
from weft.train import sharding
from weft.train.checkpoints import Checkpoints


class Reader(NamedTuple):
    """A reader of a file.

    name: of the file; its extension may determine its format.
    seeds: valid contents.
    read: reads the file.
    beside: writes other required files into the folder, once.
    """

    name: str
    seeds: Sequence[bytes]
    read: Callable[[Path], Any]
    beside: Callable[[Path], Any] = lambda folder: None


def _resealed(path: Path) -> Any:
    """Read a checkpoint with one file replaced, and a manifest that matches it."""
    folder = path.parent / "checkpoints" / "step-00000003"
    (folder / path.name).write_bytes(path.read_bytes())
    if path.name != "manifest.json":
        contents = {
            each.name: each.read_bytes() for each in folder.iterdir() if each.name != sharding.MANIFEST
        }
        (folder / sharding.MANIFEST).write_text(json.dumps(sharding.sealed(contents)))
    return Checkpoints(path.parent, lambda _: None).newest()


def _saved(folder: Path) -> None:
    save(folder, 3)


def _one_picture(folder: Path) -> None:
    (folder / "x.png").write_bytes(samples.picture("png"))


def _labelled(path: Path) -> Any:
    return list(LabelledText(path))


def _bytes(path: Path) -> int:
    return sum(map(len, file_bytes(path)))


def _inside(name: str, read: Callable[[Path], Any]) -> Reader:
    """The reader of a file of a checkpoint."""
    return Reader(name, [samples.checkpoint(name)], read, _saved)


TEXT = b"one line\nand another\n" * 9
KINDS = "bpe", "unigram", "word", "character"
READERS: dict[str, Reader] = {
    "recipe": Reader("x.yaml", samples.recipes(), lambda path: check_recipe(read_recipe(path))),
    "conllu": Reader(
        "x.conllu",
        [samples.CONLLU, b"a\tX\nb\tY\n\nc\tX\n", b"some words here\n"],
        lambda path: list(read_sentences(path)),
    ),
    "conll": Reader(
        "x.txt",
        [b"-DOCSTART- -X- O\n\nEU NNP B-ORG\nsees VBZ O\n. . O\n", b"a/DT cat/NN sits/VBZ\n"],
        lambda path: list(read_sentences(path, column="ner")),
    ),
    "vectors": Reader("x.txt", [samples.vectors(".txt"), samples.vectors(".glove")], read_vectors),
    "vectors-binary": Reader("x.bin", [samples.vectors(".bin")], read_vectors),
    "arpa": Reader("x.arpa", [samples.ARPA], lambda path: arpa.read_arpa(read_lines(path))),
    "series": Reader("x.csv", [samples.SERIES, samples.LONG, b"1,2\n3,4\n"], read_series),
    "labelled-csv": Reader("x.csv", [b'label,text\na,"some, text"\nb,more\n'], _labelled),
    "labelled-tsv": Reader("x.tsv", [b"label\ttext\na\tsome text\n", b"a\tsome\nb\tmore\n"], _labelled),
    "labelled-quoted": Reader("x.tsv", [b'label\ttext\na\t"some ""text"""\nb\t"two\nlines"\n'], _labelled),
    "labelled-workbook": Reader("x.xlsx", [samples.workbook()], _labelled),
    "labelled-records": Reader("x.jsonl", [b'{"label": "a", "text": "some"}\n{"text": null}\n'], _labelled),
    "labelled-lines": Reader("x.txt", [b"__label__a some text\n__label__b more\n"], _labelled),
    "pairs": Reader(
        "x.tsv",
        [b"en\tde\na\tb\nc d\te f\n", b"a\tb\n"],
        lambda path: list(ParallelText(path, "en", "de")),
    ),
    "questions": Reader("x.txt", [b"tiger\tcat\t7.35\n", b": capitals\nA B C D\n"], read_questions),
    "spoken": Reader("x.tsv", [b"a.wav\tsome words\nb.wav\tmore\n"], lambda path: list(read_spoken(path))),
    "captions-tsv": Reader("c.tsv", [b"image\tcaption\nx.png\ta dot\n"], read_captions, _one_picture),
    "captions-jsonl": Reader("c.jsonl", [samples.RECORD], read_captions, _one_picture),
    "captions-coco": Reader("c.json", [json.dumps(samples.COCO).encode()], read_captions, _one_picture),
    "wav": Reader("x.wav", [samples.wav(width) for width in (1, 2, 3, 4)], read_sound),
    "sound": Reader(
        "x", [samples.sound(kind) for kind in ("WAVEX", "FLAC", "OGG", "MP3", "AIFF")], read_sound
    ),
    "array": Reader(
        "x.npy",
        [samples.array(np.ones((3, 2, 2))), samples.array(np.ones((2, 2, 2, 3), np.uint8))],
        read_array,
    ),
    "clip": Reader("x.gif", [samples.gif()], lambda path: read_clip(path, 4, 2)),
    "picture": Reader(
        "x.png", [samples.picture(kind) for kind in ("png", "jpeg", "bmp", "webp", "tiff")], read_picture
    ),
    "gzip": Reader("x.gz", [gzip.compress(TEXT, mtime=0)], _bytes),
    "xz": Reader("x.xz", [lzma.compress(TEXT)], _bytes),
    "zstandard": Reader("x.zst", [zstandard.ZstdCompressor().compress(TEXT)], _bytes),
    "weights": Reader("x.safetensors", [samples.checkpoint("model.safetensors")], weights.load),
    "checkpoint-state": _inside("state.json", _resealed),
    "checkpoint-manifest": _inside("manifest.json", _resealed),
    "checkpoint-weights": _inside("model.safetensors", _resealed),
    "tokenizer": Reader("tokenizer.json", [samples.tokenizer(kind) for kind in KINDS], load_vocabulary),
    "tokenizer-imported": Reader("tokenizer.json", [samples.foreign_tokenizer()], load_vocabulary),
    "config": Reader(
        "config.json",
        [json.dumps(samples.GPT2).encode()],
        lambda path: import_model(path.parent),
        samples.gpt2,
    ),
    "lexicon": Reader("x.json", [json.dumps(samples.LEXICON).encode()], Lexicon.load),
    "word-list": Reader("x.json", [b'{"words": ["a", "b"], "counts": [3, 2]}'], WordList.load),
    "picture-shape": Reader(
        "pictures.json",
        [b'{"shape": [5, 7, 3], "names": ["a", "b"]}'],
        lambda path: read_shape(path.parent),
    ),
    "curves": Reader("metrics.jsonl", [samples.EVENTS], curves.read_curves),
}
