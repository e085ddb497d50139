"""A Transformer written for CTranslate2 computes and writes what Weft does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.export import runs
from tests.export.runs import report

ctranslate2 = pytest.importorskip(
    "ctranslate2", reason="ctranslate2 is not installed: pip install --group export-tests"
)

TRANSLATORS: dict[str, dict[str, Any]] = {
    "before": {},
    "after": {"norm": "after"},
    "learned": {"norm": "after", "positions": "learned", "max_length": 77, "entry_norm": True},
    "two vocabularies": {"vocabulary": {"shared": False}},
    "untied": {"embedding": {"tied": False, "shared": False, "scaled": False}},
    "gated": {"norm_kind": "rms", "activation": "swiglu", "bias": False, "norm_epsilon": 1e-6},
    "gated by gelu": {"norm_kind": "rms", "activation": "geglu", "bias": False},
    "sizes": {"activation": "gelu", "decoder": {"num_layers": 1, "num_heads": 3, "inner": 7}},
    "unordered": {"positions": "none", "vocabulary": {"kind": "unigram"}},
}
LANGUAGE: dict[str, dict[str, Any]] = {
    "sinusoids": {},
    "learned": {"decoder": {"positions": "learned", "max_length": 64, "activation": "gelu_tanh"}},
    "after": {"decoder": {"norm": "after", "activation": "silu"}},
    "llama": {"decoder": {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu", "bias": False}},
    "letters": {"vocabulary": {"kind": "character", "size": None}, "embedding": {"tied": False}},
}


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_computes_and_writes_what_weft_does(name: str, tmp_path: Path) -> None:
    agrees(runs.translator(tmp_path / "run", **TRANSLATORS[name]), tmp_path / "out")


@pytest.mark.parametrize("name", LANGUAGE)
def test_a_language_model_computes_and_writes_what_weft_does(name: str, tmp_path: Path) -> None:
    agrees(runs.language(tmp_path / "run", **LANGUAGE[name]), tmp_path / "out")


def agrees(run: Path, out: Path) -> None:
    """Export; the report says how both programs compare."""
    answer = weft("export", run, "--to", "ctranslate2", "--output", out, code=0)
    nats, greedy, beam, *cut = report(answer.out)
    assert nats < 2e-5 and greedy == 20  # float32 in another order; the report rounds it
    # CTranslate2 ranks texts that were cut among those that ended, and stops a little earlier.
    assert beam + sum(cut) >= 19


def test_int8_weights_are_smaller_and_measured(tmp_path: Path) -> None:
    run = runs.translator(tmp_path / "run", size=32, embedding={"size": 32})
    answer = weft("export", run, "--to", "ctranslate2", "--int8", "--output", tmp_path / "out", code=0)
    sizes = [float(line.split("model.bin ")[1].split()[0]) for line in answer.lines if "model.bin" in line]
    assert sizes[1] < 0.7 * sizes[0] and "chrF" in answer.out
    card = (tmp_path / "out" / "README.md").read_text()
    measured = [line for line in answer.lines if line.startswith("int8: ")]
    assert len(measured) == 3 and all(f"- {line}\n" in card for line in measured)
    assert "BLEU of 500 validation inputs" in measured[2] and "of its CPU time" in measured[0]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["decoder_start_token"] == "<sos>"


@pytest.mark.parametrize("kind", ["translator", "language"])
def test_the_snippet_of_the_readme_runs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.translator(tmp_path / "run") if kind == "translator" else runs.language(tmp_path / "run")
    assert weft("export", run, "--to", "ctranslate2", "--output", tmp_path / "out").code == 0
    monkeypatch.chdir(tmp_path / "out")
    code = Path("README.md").read_text().split("```python\n")[1].split("```")[0]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.endswith("\n")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "alibi": ({"decoder": {"positions": "alibi"}}, "positions"),
    "grouped": ({"decoder": {"heads": {"key_value": 1}}}, "heads"),
    "norms": ({"decoder": {"norm": "after"}}, "same norm"),
    "width": ({"embedding": {"size": 8}}, "size"),
    "coverage": ({"decoding": {"coverage": 0.2}}, "coverage"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_express_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    settings, word = REFUSED[name]
    run = runs.translator(tmp_path / "run", **settings)
    message = refused(weft("export", run, "--to", "ctranslate2", "--output", tmp_path / "out"))
    assert word in message and "--to ctranslate2" in message
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_a_recurrent_translator_is_pointed_to_onnx(tmp_path: Path) -> None:
    run = runs.translator(tmp_path / "run", encoder=runs.RECURRENT, decoder=runs.RECURRENT)
    message = refused(weft("export", run, "--to", "ctranslate2", "--output", tmp_path / "out"))
    assert "model.encoder" in message and "use --to onnx" in message
