"""What the tests of several toolkits' checkpoints do: log-probabilities of given targets, and searches."""

import json
import tarfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.commands.shell import weft
from weft.errors import DataWarning
from weft.run import open_run
from weft.tasks.seq2seq.encoding import collate_pairs

LONGEST: dict[str, Any] = {"max_ratio": 0.0, "max_extra": 12, "verbatim": False}
"""Limits of the outputs in the fixtures of OpenNMT-py and Eole."""

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"search": "greedy", **LONGEST},
    "beam": {"beam": 3, "length_penalty": 0.0, **LONGEST},
}
"""The searches of those fixtures."""

TAKEN_OVER = ("smoothing: 0.1", "attention_dropout: 0.2", "tied: true", "scaled: true", "dropout: 0.1")
"""What the recipe of the model `sinusoidal` in those fixtures says."""


def unpacked(archive: Path, folder: Path) -> Path:
    """The folder with the files of an archive."""
    with tarfile.open(archive) as file:
        if hasattr(tarfile, "data_filter"):  # since Python 3.11.4
            file.extraction_filter = tarfile.data_filter
        file.extractall(folder)
    return folder


def expected_of(folder: Path) -> dict[str, Any]:
    """What the toolkit computed, from the files of a fixture."""
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return found


def whole(line: str) -> str:
    """Pieces joined to words."""
    return " ".join(f"{line} ".replace("@@ ", "").split())


def equal_log_probabilities(run: Path, expected: dict[str, Any], name: str) -> None:
    """Check that those of a run equal those of a model of the toolkit."""
    ours = log_probabilities(run, expected["source"], expected["target"])
    for got, want in zip(ours, expected[name]["logp"], strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


def log_probabilities(run: Path, sources: list[str], targets: list[str]) -> list[list[float]]:
    """Of each token of the targets and its end, one pair at a time."""
    opened = open_run(run, device="cpu")
    translator = opened.pipeline.predictor(opened.model)
    found = []
    for source, target in zip(sources, targets, strict=True):
        batch = collate_pairs([translator.source.encode(source)], [translator.target.encode(target)])
        with torch.no_grad():
            logp = opened.model.head(opened.model.features(batch))[0]
        found.append(logp.gather(1, batch.target_out[0][:, None])[:, 0].tolist())
    return found


def translations(run: Path, sources: list[str], options: dict[str, Any]) -> list[str]:
    """The best translation of each source."""
    opened = open_run(run, device="cpu")
    translator = opened.pipeline.translator(opened.model, replace(opened.pipeline.decoding, **options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # some models have too few pieces for all letters
        return [found[0].text for found in translator.translate(sources)]


def trains_on(run: Path, folder: Path) -> None:
    """Check that a run is trained further on a few pairs, and evaluated."""
    for language, lines in (("es", "El archivo\nAbrir\n"), ("en", "The file\nOpen\n")):
        for split in ("train", "valid"):
            (folder / f"{split}.{language}").write_text(lines)
    again, data = folder / "again", [f"data.{split}={folder / split}" for split in ("train", "valid")]
    start = [f"training.start={run}", "training.max_epochs=1", *data]
    weft("train", run / "recipe.yaml", "--run", again, *start, code=0)
    weft("evaluate", again, "--split", "valid", code=0)
    assert (again / "model.safetensors").read_bytes() != (run / "model.safetensors").read_bytes()
