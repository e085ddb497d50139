"""fairseq's checkpoints: settings of every kind, and bad input, of which nothing remains.

The zip files of the folder fairseq hold tiny models that fairseq 0.12.2 trained on help texts that Weft
ships, and its own outputs. It needs Python 3.10, which Weft does not support, so the script that made them
is in the history only: git log -- tests/importing/kits/fairseq/make.py
"""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.importing.kits.shared import log_probabilities, trains_on, translations
from tests.laws.members import close
from tests.shared import quick_first
from weft.errors import CheckpointError, ConfigError, WeftError
from weft.importing import torchfile
from weft.importing.families.encoder_decoders import shifted_waves
from weft.importing.kits.fairseq import KIT, recognises, transformer
from weft.importing.kits.kit import CheckpointHints
from weft.importing.kits.reading import ToolkitModel, ToolkitSettings
from weft.importing.runs import import_run
from weft.importing.torchfile import content, settings
from weft.nn.decoders.recurrent import Bridge
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.run import open_run

HERE = Path(__file__).parent / "fairseq"
LEADING = ("lstm-luong", "transformer-iwslt")
CASES = sorted((path.stem for path in HERE.glob("*.zip")), key=lambda name: name not in LEADING)
Change = Callable[[dict[str, Any], dict[str, torch.Tensor]], object]


def unpacked(name: str, folder: Path) -> Path:
    """The checkpoint's directory."""
    with zipfile.ZipFile(HERE / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder / "checkpoint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Transformer's directory."""
    return unpacked("transformer-iwslt", tmp_path)


def changed(folder: Path, change: Change) -> Path:
    """The checkpoint with other settings or tensors, saved with its settings under `args`."""
    path = folder / "checkpoint_best.pt"
    whole = torchfile.read_torch_file(path)
    found = settings(content(whole["cfg"])["model"])
    change(found, whole["model"])
    torch.save({"args": found, "model": whole["model"]}, path)
    return path


def refused(folder: Path, error: type[WeftError], *words: str, **options: Any) -> None:
    """Importing raises this error, in one sentence with these words, and leaves nothing."""
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(error) as raised:
        import_run(folder, folder.parent / "run", **options)
    said = str(raised.value)
    assert "\n" not in said and all(word in said for word in words), said
    assert sorted(folder.parent.rglob("*")) == before


@pytest.fixture(scope="module", params=quick_first({name: name for name in CASES}, len(LEADING)))
def compared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run, and fairseq's rows and search settings."""
    folder = unpacked(request.param, tmp_path_factory.mktemp("fairseq")).parent
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    subwords = tuple(folder / file for file in expected.get("subwords", ()))
    import_run(folder / expected["path"], folder / "run", subwords=subwords)
    return folder / "run", expected


def test_pieces_and_probabilities_are_fairseq_s(compared):
    run, expected = compared
    pipeline = open_run(run, device="cpu").pipeline
    rows = expected["rows"]
    for row in rows:
        assert len(pipeline.source.encode(row["source"])) == len(row["read"])
        assert len(pipeline.target.encode(row["target"])) + 1 == len(row["written"])
    found = log_probabilities(run, [row["source"] for row in rows], [row["target"] for row in rows])
    for ours, row in zip(found, rows, strict=True):
        close(torch.tensor(ours), torch.tensor(row["logp"]), 1e-5)


def test_outputs_are_fairseq_s(compared):
    run, expected = compared
    rows = expected["rows"]
    most = {"max_ratio": 0.0, "max_extra": expected["most"], "verbatim": False}  # fairseq keeps no numbers
    assert len(rows) > 5 and len({row["beam"] for row in rows}) > 3
    found = translations(run, [row["source"] for row in rows], {"search": "greedy"} | most)
    assert found == [row["greedy"] for row in rows]
    # at the limit fairseq adds an end and Weft does not, which changes the order of the hypotheses
    rows = [row for row in rows if len(row["beam_ids"]) <= expected["most"]]
    found = translations(run, [row["source"] for row in rows], {"search": "beam"} | expected["beam"] | most)
    assert rows and found == [row["beam"] for row in rows]


def test_the_three_kinds_of_settings_are_recognised(tmp_path):
    for name, kind in (("transformer-iwslt", "cfg"), ("transformer-t2t", "args"), ("lstm-luong", "cfg")):
        folder = unpacked(name, tmp_path / name)
        whole = torchfile.read_torch_file(folder / "checkpoint_best.pt")
        assert whole[kind] and recognises(folder) and recognises(folder / "checkpoint_best.pt")
        KIT.read(CheckpointHints(folder, "en", "es", subwords=tuple(sorted(folder.glob("*.model")))))
    assert not recognises(tmp_path) and not recognises(tmp_path / "none.pt")


def test_dropout_and_smoothing_are_taken_over(folder):
    changed(folder, lambda found, _: found.update(dropout=0.25, attention_dropout=0.125))
    recipe = KIT.read(CheckpointHints(folder)).recipe
    assert recipe["model"]["encoder"]["dropout"] == 0.25 and recipe["model"]["smoothing"] == 0.1
    assert recipe["model"]["decoder"]["attention_dropout"] == 0.125


def test_a_search_without_settings_is_that_of_fairseq_generate(folder):
    """beam 5, lenpen 1 and a x + b tokens with a = 0 and b = 200: the defaults of its GenerationConfig."""
    names = ("beam", "lenpen", "max_len_a", "max_len_b")
    changed(folder, lambda found, _: [found.pop(name, None) for name in names])
    assert KIT.read(CheckpointHints(folder)).recipe["decoding"] == {
        "search": "beam",
        "beam": 5,
        "length_penalty": 1.0,
        "normalisation": "length",
        "max_ratio": 0.0,
        "max_extra": 200,
    }


def test_a_transformer_without_settings_is_base_architecture():
    state = {str(number): torch.ones(1) for number in range(7)}
    found = transformer(ToolkitModel(ToolkitSettings({}, "here"), state, "here"))
    for side in ("encoder", "decoder"):
        assert found.model[side] == {
            "use": "transformer",
            "size": 512,
            "num_layers": 6,
            "num_heads": 8,
            "inner": 2048,
            "norm": "after",
            "activation": "relu",
            "positions": "learned",
            "max_length": 1024,
            "entry_norm": False,
            "dropout": 0.1,
            "attention_dropout": 0.0,
        }
    assert found.embedding == {"size": 512, "dropout": 0.0, "tied": False, "scaled": True}


def test_a_file_named_on_its_own_uses_the_named_dictionaries(folder, tmp_path):
    for name in ("dict.en.txt", "dict.es.txt"):
        (folder / name).replace(tmp_path / name)
    given = tuple(tmp_path / name for name in ("dict.en.txt", "dict.es.txt"))
    assert "fairseq" in import_run(folder / "checkpoint_best.pt", tmp_path / "run", vocabulary=given)


def test_a_missing_or_wrong_dictionary_is_refused(folder):
    path = folder / "dict.es.txt"
    kept = path.read_text("utf-8")
    path.unlink()
    refused(folder, CheckpointError, "dict.es.txt", "no such file")
    path.write_text(kept + "another 3\n", "utf-8")
    refused(folder, CheckpointError, "target tokens", "the vocabulary")
    path.write_text("".join(kept.splitlines(keepends=True)[:-1]), "utf-8")
    refused(folder, CheckpointError, "target tokens", "the vocabulary")
    path.write_text("without-a-count\n" + kept, "utf-8")
    refused(folder, CheckpointError, "dict.es.txt:1", "a token and a count")
    path.write_text(kept + kept.splitlines()[0] + "\n", "utf-8")
    refused(folder, CheckpointError, "occurs twice")


def test_pieces_of_words_need_their_codes(folder):
    (folder / "codes").unlink()
    refused(folder, ConfigError, "@@", "--subwords")


def test_damaged_files_are_refused(folder):
    path = folder / "checkpoint_best.pt"
    whole = path.read_bytes()
    for place in (len(whole) // 2, len(whole) - 100):
        path.write_bytes(whole[:place])
        refused(folder, CheckpointError, "")
    torch.save({"args": {"arch": "transformer"}, "model": {"encoder.embed_tokens.weight": 3}}, path)
    refused(folder, CheckpointError, "tensors")
    torch.save({"args": None, "cfg": None, "model": {"encoder.embed_tokens.weight": torch.ones(2)}}, path)
    refused(folder, CheckpointError, "args or cfg")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arch", "fconv"),
        ("arch", "transformer_lm"),
        ("task", "multilingual_translation"),
        ("cross_self_attention", True),
        ("adaptive_input", True),
        ("encoder_layers_to_keep", "0"),
        ("activation_fn", "tanh"),
        ("encoder_embed_dim", 16),
        ("decoder_output_dim", 4),
    ],
)
def test_a_setting_that_cannot_be_expressed_is_refused(folder, name, value):
    changed(folder, lambda found, _: found.update({name: value}))
    refused(folder, ConfigError, name.removeprefix("encoder_embed_") if "embed" in name else name)


def test_an_adaptive_softmax_and_an_early_version_are_refused(folder, tmp_path):
    changed(folder, lambda _, state: state.update({"decoder.adaptive_softmax.head": torch.ones(2)}))
    refused(folder, ConfigError, "adaptive_softmax_cutoff")
    early = unpacked("transformer-t2t", tmp_path / "early")
    whole = torchfile.read_torch_file(early / "checkpoint_best.pt")
    whole["model"]["encoder.version"] = torch.ones(1)
    torch.save(whole, early / "checkpoint_best.pt")
    models = tuple(sorted(early.glob("*.model")))
    refused(early, ConfigError, "encoder_normalize_before", "encoder.version", subwords=models)


@pytest.mark.parametrize("name", ["encoder_layers", "decoder_layers"])
@pytest.mark.parametrize("value", [0, 2, 10**8, "many", -1])
def test_layers_that_do_not_fit_are_refused(folder, name, value):
    changed(folder, lambda found, _: found.update({name: value}))
    refused(folder, CheckpointError, "")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda state: state.update({"encoder.more.weight": torch.ones(2)}), "encoder.more.weight"),
        (lambda state: state.pop("decoder.layers.0.fc1.bias"), "decoder.layers.0.fc1.bias"),
        (lambda state: state.update({"decoder.layers.0.fc1.bias": torch.ones(5)}), ""),
    ],
)
def test_missing_extra_and_misshapen_tensors_are_refused(folder, change, says):
    changed(folder, lambda _, state: change(state))
    refused(folder, CheckpointError, says)


def test_positions_are_fairseq_s_formula():
    """Vaswani's sinusoids as tensor2tensor computes them, of position 2 on (after that of padding)."""
    found = shifted_waves(3, 6, 2, "here").double()
    for row in range(3):
        angles = [(row + 2) * 10000 ** (-feature / 2) for feature in range(3)]
        expected = torch.tensor(angles, dtype=torch.float64)
        close(found[row], torch.cat([expected.sin(), expected.cos()]), 1e-6)


def test_a_linear_bridge_has_no_tanh():
    encoder = RecurrentEncoder(3, sizes=(5, 2), bidirectional=True).double()
    bridge = Bridge(encoder, ((7, 7), (3, 3)), source="linear").double()
    memory = encoder(torch.randn(2, 3, 3).double(), torch.ones(2, 3) > 0)
    for layer, states in enumerate(bridge(memory)):
        for index, state in enumerate(states):
            final = torch.cat([direction[index] for direction in memory.carry[layer]], -1)
            one = bridge.maps[layer][index]
            close(state, final @ one.weight.T + one.bias, 1e-10)


def test_training_goes_on(folder, tmp_path):
    import_run(folder, tmp_path / "run")
    trains_on(tmp_path / "run", tmp_path)
