"""A package for Argos Translate: its own tokeniser, splitter and model write what Weft writes."""

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from tests.export import runs
from tests.export.runs import report
from weft.export.formats.argos import sentence_splitter, sentencepiece_model
from weft.run import open_run
from weft.search.offered import Decoding
from weft.text.vocabulary import UNK, Vocabulary

HINT = "is not installed: pip install --group export-tests"
ctranslate2 = pytest.importorskip("ctranslate2", reason=f"ctranslate2 {HINT}")
sentencepiece = pytest.importorskip("sentencepiece", reason=f"sentencepiece {HINT}")
pytest.importorskip("onnx", reason=f"onnx {HINT}")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_gives_equal_numbers(kind: str) -> None:
    made = Vocabulary.train(runs.TEXTS, kind=kind, size=400)
    processor = sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(made, "argos"))
    draw = random.Random(3)
    letters = "".join(runs.TEXTS)
    odd = ["".join(draw.choices(letters, k=draw.randint(1, 30))) for _ in range(200)]
    for text in [*runs.TEXTS, *odd, "", " ", "<eos> a"]:
        if UNK not in made.encode(text):
            assert processor.encode(text) == made.encode(text), text
            assert processor.decode(made.encode(text)) == made.decode(made.encode(text))


def test_the_splitter_ends_sentences_at_marks_before_spaces() -> None:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(sentence_splitter())
    known = json.loads(session.get_modelmeta().custom_metadata_map["vocab"])["_unit2id"]
    np = pytest.importorskip("numpy")
    units = np.array([[known.get(unit, 1) for unit in "A b. C 3.5! D。E?"]])
    scores = session.run(None, {"units": units, "features": np.zeros((1, units.shape[1], 1), np.float32)})[0]
    assert np.flatnonzero(scores[0].argmax(1) == 2).tolist() == [3, 10, 13, 15]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and its package."""
    folder = tmp_path_factory.mktemp("argos")
    run = runs.translator(folder / "run", end=4.0)
    answer = weft("export", run, "--to", "argos", "--output", folder / "en_es.argosmodel", code=0)
    line = answer.out.replace("beam 4", "beam 3")
    nats, greedy, beam, *cut = report(line)
    assert nats < 1e-5 and greedy == 20 and beam + sum(cut) >= 19
    return run, folder / "en_es.argosmodel"


def test_a_package_has_what_argos_translate_reads(package: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(package[1]) as packed:
        names = {name.partition("/")[2] for name in packed.namelist()}
        about = json.loads(packed.read("weft-en_es/metadata.json"))
    wanted = {"metadata.json", "sentencepiece.model", "model/model.bin", "minisbd/sentences.onnx"}
    assert wanted <= names
    assert about["from_code"] == "en" and about["to_name"] == "Spanish"


@pytest.mark.filterwarnings("ignore")  # of stanza and spacy
def test_argos_translate_installs_it_and_writes_what_weft_does(
    package: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("ARGOS_COMPUTE_TYPE", "float32")  # it rounds weights to 8 bits otherwise
    argos: Any = pytest.importorskip("argostranslate.package", exc_type=ImportError)
    translate: Any = pytest.importorskip("argostranslate.translate", exc_type=ImportError)
    argos.install_from_path(package[1])
    opened = open_run(package[0], device="cpu")
    how = Decoding(beam=4, length_penalty=0.2, max_ratio=0, max_extra=256, verbatim=False)
    translator = opened.pipeline.translator(opened.model, how)
    lines = [line for line in runs.TEXTS if "_" not in line and ". " not in line][:100]
    found = [one[0] for one in translator.translate(lines)]
    # Argos Translate writes at least one token, and up to 256.
    ended = [(line, one.text) for line, one in zip(lines, found, strict=True) if 0 < len(one.tokens) < 200]
    assert len(ended) >= 5
    for line, ours in ended:
        assert translate.translate(line, "en", "es") == ours.replace("_", " ")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "words": ({"vocabulary": {"kind": "word", "size": None}}, "bpe or unigram"),
    "lowercase": ({"vocabulary": {"lowercase": True}}, "lowercase"),
    "two": ({"vocabulary": {"shared": False}}, "shared=true"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_express_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    settings, word = REFUSED[name]
    run = runs.translator(tmp_path / "run", **settings)
    message = refused(weft("export", run, "--to", "argos", "--output", tmp_path / "out.argosmodel"))
    assert word in message and "--to argos" in message
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    run = runs.language(tmp_path / "run")
    message = refused(weft("export", run, "--to", "argos", "--output", tmp_path / "out.argosmodel"))
    assert "expected a translator" in message
