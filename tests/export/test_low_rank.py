"""A run trained by narrow matrices (LoRA) is exported as the run with the merged weights."""

import hashlib
from pathlib import Path

import pytest
import torch

from tests.export.runs import translator
from weft.export.format import export_run
from weft.run import open_run
from weft.store import weights
from weft.train.tuned import Lora, adapt

PACKAGES = {
    "onnx": "onnxscript",
    "web": "onnxscript",
    "huggingface": "transformers",
    "ctranslate2": "ctranslate2",
    "argos": "ctranslate2",
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run whose file holds W, A and B, and one that holds W + (alpha / r) B A; they have one name."""
    runs = [tmp_path_factory.mktemp(name) / "run" for name in ("narrow", "merged")]
    for run in runs:
        translator(run, norm="after", activation="silu")
    model = open_run(runs[0], device="cpu").model
    adapt(model, Lora(rank=3, alpha=6.0, targets=("query", "key_value", "network")))
    with torch.no_grad():
        for name, one in model.named_parameters():
            if name.endswith(".0.b"):
                one.normal_(generator=torch.Generator().manual_seed(len(name)))
    state = model.state_dict()
    assert sum(name.endswith(".0.b") for name in state) == 20  # 2 of 2 blocks of 3 and 2 of 2 of 5 layers
    (runs[0] / "model.safetensors").write_bytes(weights.pack(state))
    whole = {
        name.replace(".parametrizations.weight.original", ".weight"): one
        if ".original" not in name
        else one + 2.0 * state[name.replace("original", "0.b")] @ state[name.replace("original", "0.a")]
        for name, one in state.items()
        if ".parametrizations.weight.0." not in name
    }
    (runs[1] / "model.safetensors").write_bytes(weights.pack(whole))
    return runs[0], runs[1]


@pytest.mark.slow
@pytest.mark.parametrize("to", PACKAGES)
def test_every_format_holds_the_merged_weights(both: tuple[Path, Path], to: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES[to], reason="pip install -e .[export] --group export-tests")
    found = []
    for number, run in enumerate(both):
        output = tmp_path / str(number) / "out"
        output.parent.mkdir()
        export_run(run, to, output, None)
        files = [output] if output.is_file() else sorted(one for one in output.rglob("*") if one.is_file())
        found.append({one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in files})
    assert found[0] == found[1]


def test_the_run_answers_with_the_merged_weights(both: tuple[Path, Path]) -> None:
    narrow, merged = (open_run(run, device="cpu").model.state_dict() for run in both)
    assert narrow.keys() == merged.keys()
    for name, one in merged.items():
        torch.testing.assert_close(narrow[name], one, rtol=0, atol=1e-6)
