"""Model directories of Eole 0.6.4 give its own log-probabilities and outputs (eole/make.py)."""

import json
import shutil
from pathlib import Path

import pytest

from tests.importing.kits.shared import (
    SEARCHES,
    TAKEN_OVER,
    equal_log_probabilities,
    expected_of,
    translations,
    unpacked,
    whole,
)
from tests.slow import leading
from weft.errors import CheckpointError, ConfigError
from weft.importing.runs import import_run

FIXTURE = Path(__file__).parent / "eole" / "fixture.tar.xz"
MODELS = ["sinusoidal", "rotary", "learned"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return unpacked(FIXTURE, tmp_path_factory.mktemp("eole"))


def imported(folder: Path, name: str, run: Path) -> Path:
    import_run(folder / name, run, source="es", target="en", subwords=(folder / "codes",))
    return run


@pytest.mark.parametrize("name", leading(MODELS))
def test_a_model_gives_the_log_probabilities_and_outputs_of_eole(tmp_path, folder, name):
    run, expected = imported(folder, name, tmp_path / "run"), expected_of(folder)
    equal_log_probabilities(run, expected, name)
    for search, options in SEARCHES.items():
        wanted = [whole(line) for line in expected[name][search]]
        assert translations(run, expected["source"], options) == wanted and len(set(wanted)) > 1


def test_training_continues_with_the_settings_of_the_checkpoint(tmp_path, folder):
    recipe = (imported(folder, "sinusoidal", tmp_path / "run") / "recipe.yaml").read_text("utf-8")
    for line in TAKEN_OVER:
        assert line in recipe, line


@pytest.mark.parametrize(
    ("name", "change", "error", "words"),
    [
        ("config.json", {"architecture": "rnn"}, ConfigError, "architecture.*got rnn"),
        ("config.json", {"mlp_activation_fn": "gated-gelu"}, ConfigError, "got gated-gelu"),
        ("config.json", {"parallel_residual": True}, ConfigError, "parallel_residual"),
        ("config.json", {"rope_config": {"scaling_type": "llama3"}}, ConfigError, "scaling_type.*got llama3"),
        (
            "vocab.json",
            {"tgt": ["<unk>", "<blank>", "<s>", "</s>"]},
            CheckpointError,
            "64 target tokens, the vocabulary 4",
        ),
        ("vocab.json", {"src": None}, CheckpointError, "expected a list of tokens 'src'"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_sentence(tmp_path, folder, name, change, error, words):
    shutil.copytree(folder / "sinusoidal", tmp_path / "model")
    file = tmp_path / "model" / name
    content = json.loads(file.read_text("utf-8"))
    (content["model"] if name == "config.json" else content).update(change)
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(error, match=words) as raised:
        import_run(tmp_path / "model", tmp_path / "run", source="es", target="en")
    assert "\n" not in str(raised.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.00.safetensors"])
def test_a_damaged_file_is_refused(tmp_path, folder, name):
    shutil.copytree(folder / "sinusoidal", tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(b"{")
    with pytest.raises(CheckpointError, match="fetch it again"):
        import_run(tmp_path / "model", tmp_path / "run", source="es", target="en")
    assert not (tmp_path / "run").exists()
