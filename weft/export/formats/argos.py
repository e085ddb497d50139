"""Argos Translate, offline translation: one .argosmodel file. Read next: ../sentencepiece_model.py."""

import copy
import json
import shlex
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from weft.errors import ConfigError
from weft.export.ctranslate2_model import check_parts
from weft.export.format import Format, Options
from weft.export.formats.ctranslate2 import measured, write_model
from weft.export.network import network
from weft.export.sentence_splitter import sentence_splitter
from weft.export.sentencepiece_model import check_numbers, pieces, sentencepiece_model
from weft.export.sentencepiece_model import check_vocabulary as check_vocabulary
from weft.export.sources import sources
from weft.models import Generator
from weft.run import LoadedRun
from weft.tasks.abilities import Rewrites
from weft.text.language_names import NAMES
from weft.text.vocabulary import PAD, SOS, UNK

NEVER = -1e4  # a logit
TO = "argos"
BEAM, PENALTY = 4, 0.2  # Argos Translate's, which a package cannot change


class Argos(Format):
    """A package that Argos Translate installs."""

    about: ClassVar[str] = "Argos Translate: translators, one .argosmodel file"
    ending: ClassVar[str] = ".argosmodel"
    packages: ClassVar[Sequence[str]] = ("ctranslate2", "sentencepiece", "onnx")

    def check(self, opened: LoadedRun, options: Options) -> None:
        found = network(opened, TO)
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

    def write(self, opened: LoadedRun, folder: Path, options: Options) -> Sequence[str]:
        found, texts = network(opened, TO), sources(opened)
        found = found._replace(model=_silent(found.model), beam=BEAM, length_penalty=PENALTY)
        pipeline: Any = opened.pipeline
        ((source, target),) = pipeline.directions()
        inside = folder / f"weft-{source}_{target}"
        (inside / "model").mkdir(parents=True)
        content = sentencepiece_model(found.target, TO)
        count = check_numbers(found.target, content, texts)
        (inside / "sentencepiece.model").write_bytes(content)
        names = [piece for piece, _ in pieces(found.target, TO)]
        lines = write_model(opened, found, inside / "model", (names, names), texts, int8=bool(options.int8))
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
        return [f"package: {size / 1e6:.2f} MB", f"SentencePiece: {count} texts give Weft's tokens", *lines]

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
