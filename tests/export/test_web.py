"""`weft export --to web`: in Chromium without a network, the page answers as the Python program does.

Needs chromium, and the packages onnxruntime-web and @huggingface/tokenizers in WEFT_NODE_MODULES.
"""

import functools
import http.server
import json
import os
import queue
import shutil
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("onnxscript", reason="pip install -e .[export]")

from tests import toys
from tests.commands import labelled, test_export_series, test_images
from tests.commands.prose import GPT, RECIPE, RECURRENT, write
from tests.commands.shell import refused, weft
from tests.export.runs import TEXTS, translator
from weft.export import tokenizer
from weft.export.formats.onnx import program
from weft.importing.runs import import_run
from weft.text.pieces import KINDS
from weft.text.portable import portable
from weft.text.vocabulary import Vocabulary

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NODE = shutil.which("node")
MODULES = os.environ.get("WEFT_NODE_MODULES", "")
ROOT = Path(__file__).parents[2]
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")
ODD = ["", "  the cat sat", "zebra é\u0301 ﬁ № 5", "the <eos> sat on\u00a0a mat."]
ODD += [
    "<unk><unk> and <pad><sos>",
    "日本語 👩\u200d👩\u200d👧 €5",
]  # unknown characters of several words side by side

browser = pytest.mark.skipif(
    not (CHROMIUM and MODULES), reason="the page is not tested: set WEFT_NODE_MODULES, and install chromium"
)


def answered(folder: Path, test: dict[str, Any], profile: Path) -> dict[str, Any]:
    """The report of the page about these texts."""
    (folder / "test.json").write_text(json.dumps(test))
    reports: queue.Queue[bytes] = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            reports.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/index.html#test"
        line = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", OFFLINE, *QUIET]
        with subprocess.Popen(
            [*line, f"--user-data-dir={profile}", address], stderr=subprocess.DEVNULL
        ) as process:
            try:
                found: dict[str, Any] = json.loads(reports.get(timeout=90))
            finally:
                process.kill()
                server.shutdown()
    assert "error" not in found, found
    return found


def both(run: Path, folder: Path, texts: list[str], **options: Any) -> tuple[list[str], list[str]]:
    """What the page and what the Python program answer."""
    answer = weft("export", run, "--to", "web", "--library", MODULES, "--output", folder / "web")
    assert answer.code == 0, answer.err
    assert weft("export", run, "--to", "onnx", "--output", folder / "onnx").code == 0
    model = program(folder / "onnx")
    report = answered(folder / "web", {"texts": texts, **options}, folder / "profile")
    return report["found"], [model(text, **options) for text in texts]


@pytest.mark.skipif(not (NODE and MODULES), reason="set WEFT_NODE_MODULES, and install node")
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_gives_weft_s_numbers(kind: str, tmp_path: Path) -> None:
    """The page's own Vocabulary, run by Node: symbols in a text are text, and unknown pieces end at words."""
    size = 211 if kind in ("bpe", "unigram") else None
    words = Vocabulary.train(TEXTS, kind=kind, size=size, form="nfkc", lowercase=True)
    (tmp_path / "tokenizer.json").write_bytes(portable(words))
    page = (ROOT / "weft/export/page/weft.js").read_text("utf-8")
    begin, end = page.index("class Vocabulary"), page.index("// The rows of a tensor")
    library = f"{MODULES}/@huggingface/tokenizers/dist/tokenizers.min.mjs"
    constants = next(line for line in page.splitlines() if line.startswith("const UNK"))
    head = f"import {{ Tokenizer }} from {json.dumps(library)};\nimport fs from 'fs';\n{constants}\n"
    head += "async function fetched(name) { return JSON.parse(fs.readFileSync(name)); }\n"
    texts = [*ODD, *tokenizer.ODD, *TEXTS[:20]]
    tail = f"const words = await Vocabulary.load({json.dumps(f'{tmp_path}/')}, 'tokenizer.json');\n"
    tail += f"console.log(JSON.stringify({json.dumps(texts)}.map((text) => words.encode(text))));\n"
    (tmp_path / "x.mjs").write_text(head + page[begin:end] + tail, "utf-8")
    found = subprocess.run([str(NODE), tmp_path / "x.mjs"], capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == [words.encode(text) for text in texts]


@browser
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translator(beam: int, tmp_path: Path) -> None:
    texts = [*ODD, *TEXTS[:20]]
    theirs, ours = both(translator(tmp_path / "run"), tmp_path, texts, beam=beam)
    assert theirs == ours and len(set(ours)) > 10


@browser
@pytest.mark.parametrize("name", ["gru-zero", "lstm-last", "transformer-before"])  # words, characters, codes
def test_a_translator_of_another_toolkit(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(Path(__file__).parents[1] / f"importing/kits/joeynmt/{name}.zip") as archive:
        archive.extractall(tmp_path)
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    rows = json.loads((tmp_path / "expected.json").read_text("utf-8"))["rows"]
    texts = [row["source"] for row in rows] + ["", "zebra é ß 5", "the </s> file"]
    theirs, ours = both(tmp_path / "run", tmp_path, texts, beam=4)
    assert theirs == ours and len(set(ours)) > 5


@browser
@pytest.mark.parametrize(
    ("decoder", "batches", "kind"), [(RECURRENT, "stream", "word"), (GPT, "windows", "character")]
)
def test_a_language_model(decoder: str, batches: str, kind: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "toy")
    recipe = folder / "x.yaml"
    recipe.write_text(RECIPE.format(folder=folder, kind=kind, decoder=decoder, batches=batches, updates=30))
    assert weft("train", recipe, "--run", tmp_path / "run").code == 0
    texts = [*ODD, "one dog ran", "mat and one dog ran home ."]
    theirs, ours = both(tmp_path / "run", tmp_path, texts, beam=2)
    assert theirs == ours


@browser
@pytest.mark.parametrize("name", ["gpt2", "llama-2", "llama-3", "mistral", "qwen3"])
def test_an_imported_language_model(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install -e .[import-tests]")
    from tests.importing.language_models import write_checkpoint

    write_checkpoint(name, tmp_path / "checkpoint")
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("max_lines: 1", "max_lines: 3").replace(": 100\n", ": 23\n"))
    texts = [
        *ODD,
        "Click.\n\nOpen\n",
        "\n x\r\n",
        "中文\n\t🙂 ",
        "I'LL pay 1234567 €",
        "<s> a </s> <|endoftext|> b",
    ]
    theirs, ours = both(tmp_path / "run", tmp_path, texts, beam=2)
    assert theirs == ours and any("\ufffd" in text for text in ours)


@browser
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_an_imported_model_that_fills_gaps(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install -e .[import-tests]")
    from tests.importing.masked_models import write_checkpoint

    write_checkpoint(name, tmp_path / "checkpoint")
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    texts = ["The [MASK] is open", "[MASK] the button.", "Ünicode  [MASK] and [MASK]", "a ([MASK])"]
    theirs, ours = both(tmp_path / "run", tmp_path, texts)
    assert theirs == ours


@browser
def test_a_tagger(tmp_path: Path) -> None:
    recipe = labelled.make_sentences(tmp_path / "toy")
    assert weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=20").code == 0
    texts = ["telo beding .", "x y", "ab" * 40 + " Ünknown"]
    theirs, ours = both(tmp_path / "run", tmp_path, texts)
    assert [text + "\n" for text in theirs] == ours


@browser
@pytest.mark.parametrize("bag", ["", "\n  bag: {ngrams: 2, edges: true, letters: [2, 4], weight: tfidf}"])
def test_a_classifier(bag: str, tmp_path: Path) -> None:
    recipe = labelled.make_texts(tmp_path / "toy")
    recipe.write_text(
        recipe.read_text().replace("\n  dropout: 0.0\ntraining", f"\n  dropout: 0.0{bag}\ntraining")
    )
    assert weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=20").code == 0
    texts = [*ODD, *(text for _, text in labelled.texts(12, 7))]
    theirs, ours = both(tmp_path / "run", tmp_path, texts)
    assert [text.split("\t")[0] for text in theirs] == ours


@browser
def test_a_classifier_of_pictures(tmp_path: Path) -> None:
    recipe = toys.pictures(tmp_path / "toy")
    trained = test_images.train(recipe, "data.size=12", "training.max_updates=30")
    assert trained.code == 0, trained.err
    run, folder = recipe.parent / "run", tmp_path / "web"
    answer = weft("export", run, "--to", "web", "--library", MODULES, "--output", folder)
    assert answer.code == 0, answer.err
    assert weft("export", run, "--to", "onnx", "--output", tmp_path / "onnx").code == 0
    draw, names = np.random.default_rng(1), []
    for number, size in enumerate([(12, 12), (31, 17), (5, 40), (90, 61)]):
        for mode in ("RGB", "L"):
            noise = Image.fromarray(draw.integers(0, 256, (*size, 3), dtype=np.uint8)).convert(mode)
            names.append(f"{number}-{mode}.png")
            noise.save(folder / names[-1])
    for path in sorted((recipe.parent / "train").glob("*/*.png"))[:8]:
        names.append(f"{path.parent.name}-{path.name}")
        shutil.copy(path, folder / names[-1])
    report = answered(folder, {"texts": names}, tmp_path / "profile")
    model = program(tmp_path / "onnx")
    for name, found in zip(names, report["found"], strict=True):
        label, *ours = (one.split("=") for one in model(str(folder / name), scores=True).split("\t"))
        theirs = [line.split("\t") for line in found.split("\n")]
        # Pillow may scale the rows of a picture before its columns, which changes pixels by 1 of 255.
        assert dict(theirs).keys() == dict(ours).keys() and theirs[0][0] == label[0]
        assert [float(dict(theirs)[one]) for one, _ in ours] == pytest.approx(
            [float(prob) for _, prob in ours], abs=0 if "12 x 12" in size_of(folder / name) else 3e-3
        )


def size_of(path: Path) -> str:
    with Image.open(path) as file:
        return f"{file.width} x {file.height}"


@browser
@pytest.mark.parametrize("head", ["point", "quantile"])
def test_a_forecaster(head: str, tmp_path: Path) -> None:
    run = test_export_series.trained(tmp_path / "toy", "{use: recurrent, cell: gru, sizes: [7]}", head)
    theirs, ours = both(run, tmp_path, test_export_series.LINES)
    for found, wanted in zip(theirs, ours, strict=True):
        a, b = (np.array(text.split(), np.float64) for text in (found, wanted))
        assert a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4)
    assert sum(map(bool, ours)) == 3


@browser
@pytest.mark.parametrize("kind", ["word", "character"])
def test_a_model_that_fills_gaps(kind: str, tmp_path: Path) -> None:
    recipe = toys.gaps(tmp_path / "toy")
    recipe.write_text(recipe.read_text().replace("kind: word", f"kind: {kind}"))
    assert weft("train", recipe, "--run", tmp_path / "run", "training.max_updates=20").code == 0
    texts = ["the [MASK] can purr", "[MASK]", "a [MASK] can[MASK]", "  the   cat\u00a0[MASK]  é\u0301 <eos>"]
    theirs, ours = both(tmp_path / "run", tmp_path, texts)
    assert theirs == ours


def test_missing_libraries_are_named(tmp_path: Path) -> None:
    run = translator(tmp_path / "run")
    said = refused(weft("export", run, "--to", "web", "--library", tmp_path, "--output", tmp_path / "out"))
    assert "npm install onnxruntime-web @huggingface/tokenizers" in said and not (tmp_path / "out").exists()
