"""Runs what `weft export --to web` writes: its program in Node, its page in Chromium without a network."""

import base64
import html
import json
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.commands.shell import weft
from weft.export import page
from weft.export.packed import pack

NODE = shutil.which("node") or shutil.which("nodejs")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"
QUIET = ("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")

node = pytest.mark.skipif(NODE is None, reason="the page's program is not tested: install nodejs")
browser = pytest.mark.skipif(CHROMIUM is None, reason="the page is not tested: install chromium")

RUNNER = """
import fs from 'node:fs';
const [program, model, given] = process.argv.slice(2);
const { load } = await import(program);
const { inputs, options, call, files } = JSON.parse(fs.readFileSync(given, 'utf8'));
const loaded = await load(fs.readFileSync(model)), found = [];
const plain = (value) => {
  if (ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (!value || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]));
};
for (const input of inputs) {
  const read = files ? new Uint8Array(fs.readFileSync(input)) : input;
  try {
    found.push(plain(await loaded[call](read, options)));
  } catch (error) {
    found.push({ error: error.message });
  }
}
fs.writeFileSync(given, JSON.stringify(found));
"""


def export(run: Path, output: Path, *options: str) -> list[str]:
    """Export a run to a page; the lines of the report."""
    answer = weft("export", run, "--to", "web", "--output", output, *options, code=0)
    return answer.lines


def model_in(output: Path, folder: Path) -> Path:
    """The file of the model in a folder of a page, or one with the model of a page that is one file."""
    if output.is_dir():
        return output / "model.weft"
    found = re.search(r'id="model">([^<]*)<', output.read_text("utf-8"))
    assert found is not None
    (folder / "model.weft").write_bytes(base64.b64decode(found[1]))
    return folder / "model.weft"


def answers(
    output: Path,
    inputs: Sequence[str | Path],
    folder: Path,
    *,
    call: str = "answer",
    files: bool = False,
    **options: Any,
) -> list[Any]:
    """What the page's program answers in Node.

    Args:
        output: what was exported.
        inputs: texts, or names of files.
        folder: for files of this test.
        call: the method of the model.
        files: whether the inputs are files.
        options: of the method.
    """
    runner, given = folder / "runner.mjs", folder / "given.json"
    runner.write_text(RUNNER)
    asked = {"inputs": list(map(str, inputs)), "options": options, "call": call, "files": files}
    given.write_text(json.dumps(asked))
    program = Path(page.__path__[0]) / "weft.js"
    line = [str(NODE), str(runner), str(program), str(model_in(output, folder)), str(given)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(given.read_text("utf-8"))
    return found


RUN = """
import fs from 'node:fs';
const [folder, model, given] = process.argv.slice(2);
const { unpack } = await import(`${folder}/graph.js`), { tensor } = await import(`${folder}/operators.js`);
const graph = (await unpack(fs.readFileSync(model))).graph('graph');
const found = JSON.parse(fs.readFileSync(given, 'utf8')).map((inputs) => {
  const filled = (one, data) => { one.data.set(data); return one; };
  const read = ([name, [type, dims, data]]) => [name, filled(tensor(type, dims), data)];
  const out = graph.run(Object.fromEntries(Object.entries(inputs).map(read)));
  return graph.outputs.map((name) => out[name]).map(({ dims, data }) => [dims, Array.from(data, String)]);
});
fs.writeFileSync(given, JSON.stringify(found));
"""


def outputs(path: Path, examples: Sequence[Mapping[str, Tensor]], folder: Path) -> list[list[np.ndarray]]:
    """What the page computes with a graph: for each example its outputs in order."""
    runner, given, model = folder / "run.mjs", folder / "inputs.json", folder / "graph.weft"
    runner.write_text(RUN)
    model.write_bytes(pack({"graph": path}, {}, {}, int8=False))
    kinds = {torch.float32: "float32", torch.int64: "int32", torch.bool: "bool", torch.uint8: "uint8"}

    def plain(value: Tensor) -> list[Any]:
        return [kinds[value.dtype], list(value.shape), value.flatten().tolist()]

    rows = [{name: plain(value) for name, value in each.items()} for each in examples]
    given.write_text(json.dumps(rows))
    line = [str(NODE), str(runner), page.__path__[0], str(model), str(given)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(given.read_text("utf-8"))
    special = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan", "true": "1", "false": "0"}
    return [
        [np.array([float(special.get(one, one)) for one in data]).reshape(dims) for dims, data in each]
        for each in found
    ]


def shown(output: Path, text: str, profile: Path) -> str:
    """The page of one file after it answered a text: opened from the disk, without a network."""
    return _dom(f"{output.as_uri()}#text={urllib.parse.quote(text)}", profile)


GIVEN = """
const ready = setInterval(() => {
  if (document.getElementById('go').disabled) return;
  clearInterval(ready);
  const given = new DataTransfer(), input = document.getElementById('file');
  given.items.add(new File([Uint8Array.from(atob('CONTENT'), (one) => one.charCodeAt(0))], 'NAME'));
  input.files = given.files;
  input.dispatchEvent(new Event('change'));
}, 50);
"""


def shown_file(output: Path, file: Path, profile: Path) -> str:
    """The same after it was given a file, by a script that the policy of the page would not allow."""
    content = base64.b64encode(file.read_bytes()).decode()
    script = GIVEN.replace("CONTENT", content).replace("NAME", file.name)
    plain = re.sub(r"<meta http-equiv=.Content-Security-Policy.*?>", "", output.read_text("utf-8"))
    other = output.with_name(f"{file.stem}-{output.name}")
    other.write_text(plain.replace("</body>", f"<script>{script}</script></body>"))
    return _dom(other.as_uri(), profile)


def _dom(address: str, profile: Path) -> str:
    line = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", OFFLINE, *QUIET]
    line += [f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--dump-dom", address]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout


def answer_of(dom: str) -> str:
    """The text of the answer in a page."""
    found = re.search(r'<output id="answer"[^>]*>(.*?)</output>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    return html.unescape(re.sub(r"<[^>]+>", "", found[1]))
