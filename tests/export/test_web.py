"""`weft export --to web` answers as `weft predict` does: its program in Node, its page in Chromium.

Read next: test_text_programs.py, most models of texts.
"""

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests import toys
from tests.commands import test_export_tables as tables
from tests.commands.exporting import same
from tests.commands.shell import weft
from tests.export.pages import NODE, answer_of, answers, browser, export, node, shown, shown_file
from tests.export.runs import TEXTS, translator
from tests.export.test_file_programs import record
from tests.shared import shared_run
from weft.export.formats import web
from weft.importing.runs import import_run

ODD = ["", "  the cat sat", "zebra é\u0301 ﬁ № 5", "the <eos> sat on\u00a0a mat."]


def predicted(run: Path, texts: list[str], *words: str) -> list[str]:
    """What `weft predict` writes for each text by itself."""
    found = [weft("predict", run, *words, stdin=f"{text}\n".encode()) for text in texts]
    assert all(one.code == 0 for one in found), found
    return [one.out.removesuffix("\n") for one in found]


def kept(found: list[dict[str, Any]], ours: list[str]) -> bool:
    """Whether the page answers as `weft predict`, or says what an answer lacks, which Weft puts into it."""
    theirs = [None if one.get("lacks") else one["text"] for one in found]
    return same(ours, theirs)


def texts_of(found: list[dict[str, Any]]) -> list[str]:
    return [one["text"] for one in found]


@node
@browser
@pytest.mark.slow
def test_one_file_answers_from_the_disk_without_a_network(tmp_path: Path) -> None:
    run, page = shared_run("translate"), tmp_path / "page.html"
    lines = export(run, page)
    assert any(line.startswith("with 8-bit weights: answers equal to Weft's: ") for line in lines)
    assert f"page: {page.stat().st_size:,} bytes, one file" in lines
    text = (run.parent / "toy" / "valid.xx").read_text("utf-8").splitlines()[0]
    assert texts_of(answers(page, [text], tmp_path)) == predicted(run, [text])
    dom = shown(page, text, tmp_path / "profile")
    assert answer_of(dom) == predicted(run, [text])[0] != ""
    assert 'id="problem" role="alert" hidden' in dom
    written = page.read_text("utf-8")
    policy = written.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "connect-src" not in policy
    assert str(run.parent) not in written


@node
def test_the_folder_holds_modules_and_the_model_in_float32(tmp_path: Path) -> None:
    run = shared_run("tag")
    lines = export(run, tmp_path / "page", "--float32")
    assert any(line.endswith("bytes, in float32") for line in lines)
    names = {path.name for path in (tmp_path / "page").iterdir()}
    assert {"index.html", "weft.js", "model.weft", "README.txt"} <= names
    texts = ["telo beding .", "x y", "ab" * 40 + " Ünknown"]
    found = answers(tmp_path / "page", texts, tmp_path)
    sentences = [sentence.removesuffix("\n") for sentence in predicted(run, texts)]  # a blank line ends each
    assert texts_of(found) == sentences
    assert [len(one["words"]) for one in found] == [3, 2, 2]


LITTLE_ATTENTION: dict[str, Any] = {
    "encoder": {"use": "recurrent", "cell": "lstm", "sizes": [7]},
    "decoder": {"use": "recurrent", "cell": "lstm", "sizes": [7]},
    "decoding": {"coverage": 0.3},
}


@node
@pytest.mark.slow
@pytest.mark.parametrize(("settings", "beam"), [({}, 1), ({}, 4), (LITTLE_ATTENTION, 4)])
def test_the_page_finds_the_n_best_lists(settings: dict[str, Any], beam: int, tmp_path: Path) -> None:
    """Texts, order and scores."""
    run, texts, width = translator(tmp_path / "run", **settings), TEXTS[:6], str(beam)
    export(run, tmp_path / "page", "--float32")
    lines = predicted(run, texts, "--beam", width, "--nbest", width, "--scores")
    for found, line in zip(answers(tmp_path / "page", texts, tmp_path, beam=beam), lines, strict=True):
        wanted = [one.split("\t", 1) for one in line.split("\n")]
        hypotheses = found["hypotheses"][:beam]
        assert [one["text"] for one in hypotheses] == [text for _, text in wanted]
        assert np.allclose(
            [one["score"] for one in hypotheses], [float(score) for score, _ in wanted], atol=2e-4
        )


@node
@pytest.mark.slow
def test_several_languages(tmp_path: Path) -> None:
    run, texts = shared_run("multilingual"), ["one two", "uno dos tres", ""]
    export(run, tmp_path / "page", "--float32")
    for pair in ("aa-bb", "bb-cc"):
        source, target = pair.split("-")
        found = answers(tmp_path / "page", texts, tmp_path, direction=pair)
        assert texts_of(found) == predicted(run, texts, "--source", source, "--target", target)


@node
@pytest.mark.slow
def test_what_a_recurrent_model_computes_can_be_seen(tmp_path: Path) -> None:
    run = shared_run("language")
    export(run, tmp_path / "page", "--float32")
    (steps,) = answers(tmp_path / "page", ["the cat sat"], tmp_path, call="read")
    assert [one["piece"] for one in steps][1:] == ["▁the", "▁cat", "▁sat"]
    (following,) = answers(tmp_path / "page", ["the cat sat"], tmp_path, call="next")
    assert abs(sum(following["probs"]) - 1) < 1e-5 and following["probs"] == sorted(following["probs"])[::-1]
    for step in steps:
        assert abs(np.exp(np.array(step["logp"], np.float64)).sum() - 1) < 1e-4
        assert list(step["state"]), "the state after the token"


@node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gru-zero", "lstm-last", "transformer-before"])  # words, characters, codes
def test_a_translator_of_another_toolkit(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(Path(__file__).parents[1] / f"importing/kits/joeynmt/{name}.zip") as archive:
        archive.extractall(tmp_path)
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    rows = json.loads((tmp_path / "expected.json").read_text("utf-8"))["rows"]
    texts = [row["source"] for row in rows] + ["", "zebra é ß 5", "the </s> file", "北京 🙂"]
    export(tmp_path / "run", tmp_path / "page", "--float32")
    found = answers(tmp_path / "page", texts, tmp_path, beam=4)
    assert kept(found, predicted(tmp_path / "run", texts, "--beam", "4")) and len(set(texts_of(found))) > 5
    assert texts_of(found)[-4] == "" and (found[-1].get("lacks") or texts_of(found)[-1] == texts[-1])


@node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama-2", "llama-3", "mistral", "qwen3"])
def test_an_imported_language_model(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install --group import-tests")
    from tests.importing.language_models import write_checkpoint

    write_checkpoint(name, tmp_path / "checkpoint")
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("max_lines: 1", "max_lines: 3").replace(": 100\n", ": 23\n"))
    texts = [*ODD[1:], "中文\t🙂 ", "I'LL pay 1234567 €", "<s> a </s> <|endoftext|> b"]
    export(tmp_path / "run", tmp_path / "page", "--float32")
    found = texts_of(answers(tmp_path / "page", texts, tmp_path, beam=2))
    assert found == predicted(tmp_path / "run", texts, "--set", "search=beam", "--beam", "2")


@node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_an_imported_model_that_fills_gaps(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install --group import-tests")
    from tests.importing.masked_models import write_checkpoint

    write_checkpoint(name, tmp_path / "checkpoint")
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    texts = ["The [MASK] is open", "[MASK] the button.", "Ünicode  [MASK] and [MASK]", "a ([MASK])"]
    export(tmp_path / "run", tmp_path / "page", "--float32")
    assert texts_of(answers(tmp_path / "page", texts, tmp_path)) == predicted(tmp_path / "run", texts)


@node
@pytest.mark.slow
def test_words_in_context(tmp_path: Path) -> None:
    run = shared_run("elmo")
    export(run, tmp_path / "page", "--float32")
    (found,) = answers(tmp_path / "page", ["a\ta b c\tc a"], tmp_path)
    (wanted,) = predicted(run, ["a\ta b c\tc a"])
    ours = [float(value) for value in wanted.split("\t")[1:]]
    assert np.allclose(found["cosines"], ours, atol=2e-4) and found["text"].startswith("a\t")


@browser
@pytest.mark.slow
@pytest.mark.parametrize("name", ["images", "caption"])
def test_pictures(name: str, tmp_path: Path) -> None:
    """Pictures of the model's own size; others may differ by 1 of 255, as Pillow scales rows first."""
    run, page = shared_run(name), tmp_path / "page.html"
    export(run, page, "--float32")
    for number, path in enumerate(sorted((run.parent / "toy").rglob("*.png"))[:3]):
        dom = shown_file(page, path, tmp_path / f"profile{number}")
        assert answer_of(dom).startswith(weft("predict", run, path).lines[0]), dom[-3000:]


@browser
@pytest.mark.slow
@pytest.mark.parametrize("frames", [2, None])
def test_clips(frames: int | None, tmp_path: Path) -> None:
    """Animated pictures of the model's own size; without data.frames all have the same number of frames."""
    recipe, run = toys.pictures(tmp_path / "toy", clips=True), tmp_path / "run"
    changes = ["model.front={use: convolution, sizes: [3, 5]}", "training.max_updates=30"]
    changes += ["data.size=12"] if frames is None else [f"data.frames={frames}"]
    assert weft("train", recipe, f"data.folder={recipe.parent}", "--run", run, *changes).code == 0
    page = tmp_path / "page.html"
    export(run, page, "--float32")
    for number, path in enumerate(sorted((recipe.parent / "train").glob("*/*.npy"))[::7]):
        first, *others = map(Image.fromarray, np.load(path))
        file = tmp_path / f"{number}.gif"
        first.save(file, save_all=True, append_images=others)
        assert shown_probs(shown_file(page, file, tmp_path / f"profile{number}")) == listed(run, file)
    first.save(tmp_path / "short.gif")
    dom = shown_file(page, tmp_path / "short.gif", tmp_path / "profile")
    assert answer_of(dom) == "" and "frames" in dom.partition('id="problem"')[2].partition("</p>")[0]


def listed(run: Path, file: Path) -> dict[str, float]:
    """The classes of a picture with their probabilities in per cent, from `weft predict`."""
    _, *found = weft("predict", run, "--scores", file).lines[0].split("\t")
    return {
        name: pytest.approx(100 * float(prob), abs=0.06) for name, prob in (one.split("=") for one in found)
    }


def shown_probs(dom: str) -> dict[str, float]:
    """The same in a page."""
    found = re.findall(r"<span[^>]*>([^<]*)</span><meter[^>]*></meter><span>([\d.]+) %</span>", dom)
    return {name: float(prob) for name, prob in found}


@pytest.mark.slow
def test_an_operator_that_the_page_lacks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = web.operators()
    monkeypatch.setattr(web, "operators", lambda: known - {"MatMul", "Gemm"})
    answer = weft("export", shared_run("tag"), "--to", "web", "--output", tmp_path / "page.html")
    assert answer.code == 2 and "the page cannot compute " in answer.err and "--to onnx" in answer.err
    assert not (tmp_path / "page.html").exists()


@node
def test_the_operators_of_the_page_are_known(tmp_path: Path) -> None:
    script = (
        "const { OPERATORS } = await import(process.argv[2]); console.log(Object.keys(OPERATORS).join(' '));"
    )
    (tmp_path / "run.mjs").write_text(script)
    line = [str(NODE), str(tmp_path / "run.mjs"), str(web.PAGE / "operators.js")]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    assert web.operators() == {*done.stdout.split(), "LSTM", "GRU", "RNN", "If", "Loop", "Scan"}


@node
@pytest.mark.slow
def test_recordings(tmp_path: Path) -> None:
    run = shared_run("speech")
    export(run, tmp_path / "page", "--float32")
    long = record(tmp_path / "long.wav", toys.RATE, 2, 1, 3.0)  # longer than those of training: it is cut
    names = [long, *sorted((run.parent / "toy").glob("test*.wav"))[:4]]
    ours = [weft("predict", run, name).lines[0] for name in names]
    assert texts_of(answers(tmp_path / "page", names, tmp_path, files=True)) == ours


@node
@pytest.mark.slow
def test_a_forecaster(tmp_path: Path) -> None:
    run = tables.hourly(tmp_path / "toy", tables.RECURRENT, "quantile")
    export(run, tmp_path / "page", "--float32")
    found = answers(tmp_path / "page", tables.LINES, tmp_path)
    import weft as package

    model: Any = package.load(run)
    for line, answer in zip(tables.LINES, found, strict=True):
        values = [float(one) for one in line.replace(",", " ").split()]
        ours = model.predict(values) if values else []
        assert np.allclose(ours, answer["values"], rtol=1e-4, atol=1e-4), (line, answer)
    (short,) = answers(tmp_path / "page", ["1 2 3"], tmp_path)
    assert short == {"error": "Expected at least 12 rows, got 3; give a longer past."}


@pytest.mark.slow
def test_forecasts_with_8_bit_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tables.hourly(tmp_path / "toy", "{use: segments, segment: 4, hidden: 31}", "quantile")
    said = weft("export", run, "--to", "web", "--output", tmp_path / "one.html").out
    (line,) = re.findall("with 8-bit weights: answers differ from Weft's by at most (.*) %", said)
    assert 0 < float(line) < 5
    said = weft("export", run, "--to", "onnx", "--int8", "--output", tmp_path / "int8").out
    assert re.search("answers differ from float32's by at most .* %", said)
    monkeypatch.setattr("weft.export.formats.onnx.FAR", 0.0)
    answer = weft("export", run, "--to", "web", "--output", tmp_path / "two.html")
    assert answer.code == 2 and "use --float32" in answer.err and not (tmp_path / "two.html").exists()
