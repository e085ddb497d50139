"""A small site with the live parts of the chapters, and the functions of a part in Node."""

import base64
import gzip
import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from weft.export.page import joined

DOCS = Path(__file__).resolve().parents[2] / "docs"
STATIC = DOCS / "_static" / "live"
NODE = shutil.which("node") or shutil.which("nodejs")

node = pytest.mark.skipif(NODE is None, reason="the programs of live parts are not tested: install nodejs")

CONF = f"""
import sys
sys.path.insert(0, {str(DOCS / "_ext")!r})
project = "Weft"
extensions = ["myst_parser", "sphinxcontrib.katex", "live", "vote"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_update_mathjax = False
html_math_renderer = "katex"
katex_css_path = "katex/katex.min.css"
html_theme = "pydata_sphinx_theme"
html_static_path = [{str(DOCS / "_static")!r}]
html_css_files = ["weft.css"]
suppress_warnings = ["myst.xref_missing"]
"""
BLOCK = re.compile(r"^(`{3,})\{live\} ([\w -]+)\n.*?^\1$", re.MULTILINE | re.DOTALL)
QUESTION = re.compile(r"^```\{question\} [A-D]\n.*?^```$", re.MULTILINE | re.DOTALL)
VOTE = re.compile(r"^<details>\n<summary><b>.*?^</details>$", re.MULTILINE | re.DOTALL)

RUNNER = """
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
const [folder, given] = process.argv.slice(2), { files, script } = JSON.parse(fs.readFileSync(given, 'utf8'));
const source = (name) => fs.readFileSync(path.resolve(folder, name), 'utf8');
const read = (name) => vm.runInThisContext(source(name), { filename: name });
['live.js', ...files].forEach(read);
const found = await vm.runInThisContext(`(async () => (${script}))()`);
const plain = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
fs.writeFileSync(given, JSON.stringify(found ?? null, plain));
"""


def blocks() -> dict[str, str]:
    """The Markdown of every live part in the chapters, by name; all votes together."""
    texts = [
        path.read_text("utf-8")
        for path in sorted(DOCS.rglob("*.md"))
        if path.name != "contributing-docs.md" and path.parent.name != "slides"
    ]
    found = {one[2]: one[0] for one in itertools.chain(*map(BLOCK.finditer, texts))}
    votes = VOTE.findall((DOCS / "claims.md").read_text("utf-8"))
    return {**found, "vote": "\n\n".join([*votes, *itertools.chain(*map(QUESTION.findall, texts))])}


def build(folder: Path, *parts: str, language: str = "en") -> Path:
    """A site with a page for each of these live parts, or for all; its folder."""
    source = folder / "source"
    source.mkdir()
    (source / "conf.py").write_text(f"{CONF}language = {language!r}\n")
    names = {name: text for name, text in blocks().items() if not parts or name in parts}
    (source / "index.md").write_text("# Parts\n\n```{toctree}\n" + "\n".join(names) + "\n```\n")
    for name, text in names.items():
        (source / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    line = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(source), str(folder / "site")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def in_node(part: str, script: str, folder: Path, *models: str, programs: tuple[str, ...] = ()) -> Any:
    """The value of an expression that uses `live.parts`, after a part's program and more files were read.

    Args:
        part: its name.
        script: the expression.
        folder: for files of this test.
        models: names of models and data, read before the part.
        programs: names of other parts that this one computes with.
    """
    (folder / "run.mjs").write_text(RUNNER)
    given = folder / "given.json"
    program = folder / "weft.js"
    program.write_text(f"(() => {{ {joined('weft.js')} live.give('weft', modules); }})();")
    files = [
        str(program),
        *(f"models/{one}.js" for one in models),
        *(f"{one}.js" for one in (*programs, part)),
    ]
    given.write_text(json.dumps({"files": files, "script": script}))
    line = [str(NODE), str(folder / "run.mjs"), str(STATIC), str(given)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(given.read_text("utf-8"))


def exported(name: str, graph: str = "step") -> tuple[dict[str, torch.Tensor], list[Any]]:
    """The constants and nodes of a model's graph, read from its file; graph.js describes the layout."""
    line = (STATIC / "models" / f"{name}.js").read_text("utf-8").splitlines()[1]
    packed = gzip.decompress(base64.b64decode(line.split('"')[3]))
    size = int.from_bytes(packed[4:8], "little")
    header, data = json.loads(packed[8 : 8 + size]), packed[8 + size :]
    about_graph, found = header["graphs"][graph], {}
    for own, place in about_graph["constants"].items():
        about = header["tensors"][place]
        count = int(np.prod(about["dims"]))
        if "scales" in about:  # 8 bits in blocks of 32
            scales = np.frombuffer(data, "<f4", -(-count // 32), about["scales"])
            values = np.frombuffer(data, "i1", count, about["at"]) * np.repeat(scales, 32)[:count]
        else:
            values = np.frombuffer(data, about["type"], count, about["at"])
        found[own] = torch.tensor(values.reshape(about["dims"]).astype("float64"))
    return found, about_graph["nodes"]


def weighted(model: torch.nn.Module, constants: dict[str, torch.Tensor], nodes: list[Any]) -> Any:
    """A model with the weights of a graph, in float64; a matrix without a name is the one before its bias."""
    model = model.double().eval()
    made = {outputs[0]: inputs for _, inputs, outputs, _ in nodes}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            own = f"module.model.{name}"
            known = [
                one for one in (own, own.replace("model.embed", "model.source_embed")) if one in constants
            ]
            if known:
                weight.copy_(constants[known[0]])
            else:
                bias = own.removesuffix("weight") + "bias"
                product = next(inputs[0] for _, inputs, _, _ in nodes if inputs[1:] == [bias])
                weight.copy_(constants[made[product][1]].T)
    return model


def expected(name: str) -> list[list[str]]:
    """[text, answer]: what `weft predict` answered when the model of a part was made."""
    found: list[list[str]] = json.loads((Path(__file__).parent / "expected.json").read_text("utf-8"))[name]
    return found
