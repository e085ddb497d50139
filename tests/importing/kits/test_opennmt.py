"""Checkpoints of OpenNMT-py 2.3.0 and 3.5.1, and of its successor Eole 0.6.4, give their own outputs.

Eole's are written by eole/make.py. OpenNMT-py wrote its own in the same way: weights rounded to bfloat16
before its outputs were taken, no state of the optimiser, tables of sinusoids cut to 64 positions. It is
archived, so the script is in the history only: git log -- tests/importing/kits/opennmt/make.py
"""

import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.importing.kits.shared import (
    LONGEST,
    SEARCHES,
    TAKEN_OVER,
    equal_log_probabilities,
    expected_of,
    translations,
    unpacked,
    whole,
)
from tests.shared import quick_first
from weft.errors import CheckpointError, ConfigError
from weft.importing.kits import KITS
from weft.importing.kits.kit import CheckpointHints
from weft.importing.kits.opennmt import read
from weft.importing.runs import import_run

HERE = Path(__file__).parent
MODELS = {
    "opennmt-sinusoidal": "sinusoidal",
    "eole-sinusoidal": "sinusoidal",
    "opennmt-lstm": "lstm",
    **{f"eole-{name}": name for name in ("rotary", "learned")},
    **{f"opennmt-{name}": name for name in ("rotary", "gru", "old")},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The unpacked fixtures of both."""
    kits = ("opennmt", "eole")
    return {kit: unpacked(HERE / kit / "fixture.tar.xz", tmp_path_factory.mktemp(kit)) for kit in kits}


@pytest.fixture(scope="module")
def folder(folders):
    return folders["opennmt"]


@pytest.fixture(scope="module")
def expected(folder):
    return expected_of(folder)


def imported(folder: Path, name: str, run: Path, **others: object) -> Path:
    given = {"source": "es", "target": "en", "subwords": (folder / "codes",)} | others
    model = folder / name  # a directory of Eole, or a file of OpenNMT-py
    import_run(model if model.is_dir() else folder / f"{name}_step_120.pt", run, **given)
    return run


def changed(folder: Path, made: Path, name: str, change) -> Path:
    """A copy of a checkpoint whose contents were changed."""
    made.mkdir(exist_ok=True)
    shutil.copy(folder / "codes", made)
    path = folder / f"{name}_step_120.pt"
    content = torch.load(path, weights_only=False)
    change(content)
    torch.save(content, made / path.name)
    return made


@pytest.mark.parametrize("name", quick_first({name: name for name in MODELS}, 1))
def test_a_model_gives_the_log_probabilities_and_outputs_of_its_toolkit(tmp_path, folders, name):
    folder = folders[name.partition("-")[0]]
    expected, name = expected_of(folder), MODELS[name]
    run = imported(folder, name, tmp_path / "run")
    equal_log_probabilities(run, expected, name)
    for search, options in SEARCHES.items():
        found, theirs = translations(run, expected["source"], options), expected[name][search]
        known = [n for n, line in enumerate(theirs) if "<unk>" not in line]
        assert len(known) >= 3, "the fixture says too little"
        assert [found[n] for n in known] == [whole(theirs[n]) for n in known]


def test_without_subwords_a_run_reads_and_writes_pieces(tmp_path, folder, expected):
    run = imported(folder, "sinusoidal", tmp_path / "run", subwords=())
    with open(folder / "codes", encoding="utf-8") as codes:
        assert codes.readline().startswith("#version")
    (text,) = translations(run, ["c@@ r@@ e@@ ar"], LONGEST)
    assert isinstance(text, str)


@pytest.mark.parametrize("kit", ["opennmt", "eole"])
def test_training_goes_on_with_the_settings_of_the_checkpoint(tmp_path, folders, kit):
    recipe = (imported(folders[kit], "sinusoidal", tmp_path / "run") / "recipe.yaml").read_text("utf-8")
    for line in TAKEN_OVER:
        assert line in recipe, line


def test_missing_options_of_a_transformer_are_opennmt_s_defaults(tmp_path, folder):
    """Those of onmt/opts.py: interleaved sinusoids, nothing relative, LayerNorm of 1e-6, ReLU, 8 heads."""
    names = ("pos_ffn_activation_fn", "layer_norm", "max_relative_positions", "position_encoding_type")
    names += ("heads", "norm_eps", "rotary_dim", "rotary_theta", "rotary_interleave", "attention_dropout")

    def leave_out(content) -> None:
        for name in names:
            vars(content["opt"]).pop(name, None)

    made = changed(folder, tmp_path / "changed", "sinusoidal", leave_out)
    given = CheckpointHints(made / "sinusoidal_step_120.pt", "es", "en", subwords=(folder / "codes",))
    model = read(given).recipe["model"]
    for side in ("encoder", "decoder"):
        assert model[side]["positions"] == "sinusoidal" and model[side]["norm_kind"] == "layer"
        assert model[side]["activation"] == "relu" and model[side]["num_heads"] == 8
        assert model[side]["norm_epsilon"] == 1e-6


def pop_last(content) -> None:
    content["vocab"]["tgt"].pop()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda one: one["opt"].__setattr__("encoder_type", "cnn"), ConfigError, "encoder_type.*got cnn"),
        (lambda one: one["opt"].__setattr__("copy_attn", True), ConfigError, "copy_attn"),
        (lambda one: one["opt"].__setattr__("model_task", "lm"), ConfigError, "model_task.*got lm"),
        (lambda one: one["opt"].__setattr__("max_relative_positions", 16), ConfigError, "got 16"),
        (lambda one: one["opt"].__setattr__("heads", 3), CheckpointError, "3 do not divide"),
        (pop_last, CheckpointError, "does it belong to this model"),
        (lambda one: one["vocab"].pop("src"), CheckpointError, "expected a list of tokens in vocab.src"),
        (lambda one: one["vocab"]["tgt"].__setitem__(0, "x"), CheckpointError, "expected <unk>"),
        (lambda one: one.pop("opt"), CheckpointError, "table 'opt'"),
        (lambda one: one["model"].pop("decoder.layer_norm.bias"), CheckpointError, "1 tensor is missing"),
        (lambda one: one["model"].update(more=torch.ones(2)), CheckpointError, r"not part of .*\(more\)"),
        (lambda one: one.update(more=Path("x")), CheckpointError, "nothing was run"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_sentence(tmp_path, folder, change, error, words):
    made = changed(folder, tmp_path / "changed", "sinusoidal", change)
    with pytest.raises(error, match=words) as raised:
        imported(made, "sinusoidal", tmp_path / "run")
    assert "\n" not in str(raised.value) and not (tmp_path / "run").exists()


def test_a_damaged_file_and_a_missing_part_are_refused(tmp_path, folder):
    whole_file = (folder / "sinusoidal_step_120.pt").read_bytes()
    for place in range(0, len(whole_file), len(whole_file) // 40):
        (tmp_path / "sinusoidal_step_120.pt").write_bytes(whole_file[:place])
        with pytest.raises((CheckpointError, ConfigError)):
            imported(tmp_path, "sinusoidal", tmp_path / "run")
    shutil.copy(folder / "rotary_step_120.pt", tmp_path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        imported(tmp_path, "rotary", tmp_path / "run", subwords=())
    with pytest.raises(CheckpointError, match="give another file"):
        imported(folder, "lstm", tmp_path / "run", subwords=(tmp_path / "none",))
    with pytest.raises(ConfigError, match="leave out --vocabulary"):
        imported(folder, "lstm", tmp_path / "run", vocabulary=(folder / "codes",))
    with pytest.raises(ConfigError, match="--source LANG"):
        imported(folder, "lstm", tmp_path / "run", source=None)
    assert not (tmp_path / "run").exists()


def test_only_its_own_files_are_recognised(tmp_path, folder):
    kit = next(kit for kit in KITS if kit.name == "OpenNMT-py")
    torch.save({"model": {"a": torch.ones(2)}, "args": None}, tmp_path / "other.pt")
    assert not kit.recognises(tmp_path / "other.pt") and not kit.recognises(tmp_path)
    theirs = [name for kit_and_name, name in MODELS.items() if kit_and_name.startswith("opennmt")]
    assert all(kit.recognises(folder / f"{name}_step_120.pt") for name in theirs)


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
def test_what_cannot_be_imported_from_eole_is_refused_in_one_sentence(
    tmp_path, folders, name, change, error, words
):
    shutil.copytree(folders["eole"] / "sinusoidal", tmp_path / "model")
    file = tmp_path / "model" / name
    content = json.loads(file.read_text("utf-8"))
    (content["model"] if name == "config.json" else content).update(change)
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(error, match=words) as raised:
        import_run(tmp_path / "model", tmp_path / "run", source="es", target="en")
    assert "\n" not in str(raised.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.00.safetensors"])
def test_a_damaged_file_of_eole_is_refused(tmp_path, folders, name):
    shutil.copytree(folders["eole"] / "sinusoidal", tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(b"{")
    with pytest.raises(CheckpointError, match="fetch it again"):
        import_run(tmp_path / "model", tmp_path / "run", source="es", target="en")
    assert not (tmp_path / "run").exists()
