"""Runs from Sockeye 3 say and write what Sockeye says and writes, and train on.

sockeye/models.zip was made by Sockeye 3.1.34: tiny models, BPE codes, eight sentences of the help texts that
Weft ships, Sockeye's log-probabilities and its translations. Sockeye is archived, so the script that made
them is in the history only: git log -- tests/importing/kits/sockeye/make.py
"""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.importing.kits.shared import log_probabilities, trains_on, translations
from weft.errors import CheckpointError, ConfigError
from weft.importing.runs import import_run
from weft.run import open_run

MODELS = ("before", "ssru", "after")
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("sockeye")
    with zipfile.ZipFile(Path(__file__).parent / "sockeye" / "models.zip") as archive:
        archive.extractall(there)
    return there


@pytest.fixture(scope="module")
def expected(models: Path) -> dict[str, Any]:
    return json.loads((models / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(models: Path) -> Path:
    for name in MODELS:
        imported(models / name, models / f"run-{name}")
    return models


def imported(path: Path, run: Path, **options: Any) -> str:
    codes = (path.parent / "codes",)
    return import_run(path, run, **{"source": "es", "target": "en", "subwords": codes} | options)


@every_model
def test_each_token_has_sockeyes_probability(runs: Path, expected: dict[str, Any], name: str) -> None:
    found = log_probabilities(runs / f"run-{name}", *zip(*expected["pairs"], strict=True))
    for got, want in zip(found, expected[name]["logp"], strict=True):
        torch.testing.assert_close(torch.tensor(got), torch.tensor(want), atol=1e-5, rtol=0)


@every_model
def test_greedy_search_writes_what_sockeye_writes(runs: Path, expected: dict[str, Any], name: str) -> None:
    sources = [read for read, _ in expected["pairs"]]
    got = translations(runs / f"run-{name}", sources, {"search": "greedy"})
    for ours, theirs in zip(got, expected[name]["greedy"], strict=True):
        assert ours.startswith(theirs)  # where the limit ends both, ours may be one piece longer
        assert len(ours) - len(theirs) < 6
    same = sum(ours == theirs for ours, theirs in zip(got, expected[name]["greedy"], strict=True))
    assert same >= {"before": 6, "ssru": 0, "after": 8}[name]  # the others do not end by themselves


def test_the_recipe_says_what_the_config_says(runs: Path) -> None:
    recipe = open_run(runs / "run-ssru", device="cpu").recipe.plain()
    encoder, decoder = recipe["model"]["encoder"], recipe["model"]["decoder"]
    assert (encoder["use"], encoder["norm"], encoder["activation"]) == ("transformer", "before", "swiglu")
    assert (decoder["use"], decoder["cell"]["use"], decoder["num_layers"]) == ("hybrid", "ssru", 1)
    assert (decoder["size"], decoder["inner"], decoder["max_length"]) == (8, 12, 41)
    assert recipe["model"]["embedding"]["tied"] and recipe["data"]["max_length"] == 40
    assert decoder["dropout"] == 0.1 and recipe["decoding"]["length_penalty"] == 1.0


@pytest.mark.parametrize("name", ["ssru", "after"])
def test_it_trains_on_and_is_evaluated(runs: Path, tmp_path: Path, name: str) -> None:
    trains_on(runs / f"run-{name}", tmp_path)


def changed(models: Path, there: Path, old: str, new: str) -> Path:
    """A copy of a model with another config."""
    shutil.copytree(models / "before", there / "model")
    shutil.copy(models / "codes", there)
    config = (there / "model" / "config").read_text()
    assert old in config
    (there / "model" / "config").write_text(config.replace(old, new))
    return there / "model"


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("num_source_factors: 1", "num_source_factors: 2", ConfigError, "num_source_factors"),
        ("preprocess_sequence: n", "preprocess_sequence: nd", ConfigError, "preprocess_sequence"),
        ("act_type: relu", "act_type: tanh", ConfigError, "act_type"),
        ("use_glu: false", "use_glu: true", ConfigError, "use_glu"),
        ("use_lhuc: false", "use_lhuc: true", ConfigError, "use_lhuc"),
        ("decoder_type: transformer", "decoder_type: lstm", ConfigError, "decoder_type"),
        ("neural_vocab_selection: null", "neural_vocab_selection: logit_max", ConfigError, "selection"),
        ("dtype: float32", "dtype: int8", ConfigError, "dtype"),
        ("num_layers: 1", "num_layers: 3", CheckpointError, "missing"),
        ("num_layers: 1", "num_layers: 99999999", CheckpointError, "num_layers"),
        ("attention_heads: 2", "attention_heads: 3", CheckpointError, "attention_heads"),
        ("vocab_source_size: ", "vocab_source_size: 1", CheckpointError, "does it belong to this m"),
        ("config_encoder:", "config_other:", CheckpointError, "config_encoder"),
        ("dtype: float32", "dtype: [", CheckpointError, "YAML"),
    ],
)
def test_another_config_is_refused(
    models: Path, tmp_path: Path, old: str, new: str, error: type[Exception], says: str
) -> None:
    path = changed(models, tmp_path, old, new)
    with pytest.raises(error, match=says):
        imported(path, tmp_path / "run")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["codes", "model"]


def test_damaged_files_are_refused(models: Path, tmp_path: Path) -> None:
    path = changed(models, tmp_path, "dtype: float32", "dtype: float32")
    weights, vocabulary = path / "params.best", path / "vocab.src.0.json"
    whole, tokens = weights.read_bytes(), vocabulary.read_text(encoding="utf-8")
    for bad in (whole[: len(whole) // 2], b"", b"\x80\x02cos\nsystem\n."):
        weights.write_bytes(bad)
        with pytest.raises(CheckpointError, match=r"params\.best"):
            imported(path, tmp_path / "run")
    weights.write_bytes(whole)
    for bad in (tokens[:-2], "[]", json.dumps({"<pad>": 0, "<unk>": 0})):
        vocabulary.write_text(bad, encoding="utf-8")
        with pytest.raises(CheckpointError, match=r"vocab\.src"):
            imported(path, tmp_path / "run")
    vocabulary.unlink()
    with pytest.raises(CheckpointError, match=r"vocab\.src"):
        imported(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_missing_subwords_and_languages_are_refused(models: Path, tmp_path: Path) -> None:
    for options, says in (({"subwords": ()}, "--subwords"), ({"target": None}, "--target")):
        with pytest.raises(ConfigError, match=says):
            imported(models / "before", tmp_path / "run", **options)


def test_int8_is_refused_and_float16_is_read(models: Path, tmp_path: Path) -> None:
    path = changed(models, tmp_path, "dtype: float32", "dtype: float16")
    subwords = (tmp_path / "codes",)
    state = torch.load(path / "params.best", weights_only=True)
    torch.save({name: one.half() for name, one in state.items()}, path / "params.best")
    assert "Sockeye" in imported(path / "params.best", tmp_path / "run", subwords=subwords)
    torch.save({"encoder.layers.0.ff.ff1._packed_params": torch.zeros(1)}, path / "params.best")
    with pytest.raises(ConfigError, match="int8"):
        imported(path, tmp_path / "other")
