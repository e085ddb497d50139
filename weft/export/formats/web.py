"""A web page that runs the model in the browser, without a server and without a network.

One HTML file that holds the model and the program (page/), or a folder of both for a page of one's own.
Read next: ../packed.py, the model as bytes; ../page/weft.js, which reads them.
"""

import base64
import hashlib
import html
import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import ConfigError
from weft.export.format import Format
from weft.export.formats.onnx import Onnx, compared, without_graphs, write_graphs
from weft.export.network import check_search
from weft.export.page import PAGE, joined
from weft.run import LoadedRun
from weft.store import files
from weft.text.imported import KEY

MODEL = "model.weft"
ENDINGS = (".html", ".htm")  # an output that ends so is one file; any other is a folder
KINDS = ("model", "normalizer", "pre_tokenizer", "decoder")
SEQUENCES = ("normalizers", "pretokenizers", "decoders")
READ = (
    *("BPE", "WordPiece", "NFC", "Prepend", "Replace", "BertNormalizer", "ByteLevel", "Split", "Metaspace"),
    *("BertPreTokenizer", "ByteFallback", "Fuse", "Strip", "Unigram"),
)
"""Parts of another program's tokenizer.json that the page reads as Weft does: tests/export/test_web.py."""

WAITING = "If this does not change: the page of a folder needs a web server, see README.txt."
"""A browser does not load the modules of a folder from file://."""

ABOUT = """\
A model for a web page. `index.html` is such a page. To try it, start a web server of static files in this
folder, for example the one that comes with Python, and open the address that it prints:

    python -m http.server 8000

To use the model in a page of your own, copy this folder beside it:

    <script type="module">
      import { load } from './weft.js';
      const model = await load(await (await fetch('./model.weft')).arrayBuffer());
      console.log((await model.answer('Click the button.')).text);
    </script>

`weft.js` says what an answer holds. Nothing is fetched from elsewhere, and nothing has to be built.
"""


class Web(Format):
    """The graphs of formats/onnx.py in one file, the steps of its program in JavaScript, and a page."""

    about = "a page for the browser, without a server: .html is one file, any other name a folder"
    ending = ".html"
    packages = Onnx.packages

    def check(self, opened: LoadedRun, int8: bool | None) -> None:
        form = opened.pipeline.model_export(opened.model)
        if form is None:
            raise without_graphs("web", opened)
        check_search(opened, "web")
        for part in filter(None, map(_unread, form.files.items())):
            raise ConfigError(
                f"--to web: the page may read {part} of the model's tokenizer.json in another way than Weft; "
                "use --to onnx"
            )

    def write(self, opened: LoadedRun, folder: Path, int8: bool | None) -> Sequence[str]:
        from weft.export.packed import pack, rounded

        form = opened.pipeline.model_export(opened.model)
        assert form is not None
        int8 = int8 is not False
        work = folder / "graphs"
        work.mkdir()
        worst = write_graphs(form, work)
        _check_operators(work)
        lines = [f"outputs of the graphs: at most {worst:.1e} from Weft's", compared(opened, form, work)]
        paths = {graph.name: work / f"{graph.name}.onnx" for graph in form.graphs}
        content = pack(paths, form.settings, form.files, int8=int8)
        if int8:
            whole = len(pack(paths, form.settings, form.files, int8=False))
            for path in paths.values():
                rounded(path)
            lines.append(f"with 8-bit weights: {compared(opened, form, work, int8=True)}")
            share = f"{len(content) / whole:.2f} of float32; --float32 keeps all digits"
            lines.append(f"model: {len(content):,} bytes, {share}")
        else:
            lines.append(f"model: {len(content):,} bytes, in float32")
        shutil.rmtree(work)
        if folder.suffix.lower() in ENDINGS:
            text = one_file(content, _about(opened))
            files.write(folder / folder.name, text.encode())
            return [*lines, f"page: {len(text.encode()):,} bytes, one file"]
        _write_folder(folder, content, _about(opened))
        total = sum(path.stat().st_size for path in folder.iterdir())
        return [*lines, f"folder: {total:,} bytes in {len(list(folder.iterdir()))} files"]

    def result(self, folder: Path) -> Path:
        return folder / folder.name if folder.suffix.lower() in ENDINGS else folder

    def hints(self, output: Path) -> Sequence[str]:
        if output.suffix.lower() in ENDINGS:
            return [f"next: open {output} in a browser; it needs no server and no network"]
        return [
            f"next: python -m http.server --directory {shlex.quote(str(output))}",
            f"for one file that opens without a server: --output {output.name}.html",
        ]


def one_file(model: bytes, about: dict[str, str]) -> str:
    """The page as one HTML text that holds its style, its script and the model.

    Its content security policy allows only these, by their digests, and no connection at all.
    """
    style, script = (PAGE / "page.css").read_text("utf-8"), joined("page.js")
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data: blob:"
    )
    data = base64.b64encode(model).decode()
    parts = {
        '<link rel="stylesheet" href="page.css">': f"<style>{style}</style>",
        '<script type="module" src="page.js"></script>': (
            f'<script type="application/octet-stream" id="model">{data}</script>\n'
            f'<script type="module">{script}</script>'
        ),
    }
    return _page(policy, {**about, "WAITING": ""}, parts)


def operators() -> set[str]:
    """Names of the ONNX operators that the page computes, the keys of the tables in its program."""
    tables = (PAGE / "operators.js").read_text("utf-8").partition("export const OPERATORS")[2]
    graph = (PAGE / "graph.js").read_text("utf-8")
    tables += "".join(re.findall(r"^const (?:RECURRENT|CONTROL) = .*?\};$", graph, re.MULTILINE | re.DOTALL))
    return set(re.findall(r"(?<=[\s{])([A-Z]\w+): ", tables))


def _check_operators(folder: Path) -> None:
    from weft.export.packed import operators_of

    for path in sorted(folder.glob("*.onnx")):
        lacking = sorted(operators_of(path) - operators())
        if lacking:
            raise ConfigError(
                f"--to web: the page cannot compute {', '.join(lacking)}, which this model's graph "
                f"{path.stem} needs; use --to onnx"
            )


def _write_folder(folder: Path, model: bytes, about: dict[str, str]) -> None:
    for path in sorted(PAGE.glob("[!_]*.*")):
        if path.suffix in (".js", ".css"):
            shutil.copyfile(path, folder / path.name)
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:"
    )
    files.write(folder / "index.html", _page(policy, {**about, "WAITING": WAITING}, {}).encode())
    files.write(folder / MODEL, model)
    files.write(folder / "README.txt", ABOUT.encode())


def _page(policy: str, about: dict[str, str], parts: dict[str, str]) -> str:
    text = (PAGE / "index.html").read_text("utf-8")
    shown = {"POLICY": policy, **{key: html.escape(value) for key, value in about.items()}}
    for key, value in shown.items():
        text = text.replace(f"{{{{{key}}}}}", value)
    for before, after in parts.items():
        assert before in text
        text = text.replace(before, after)
    return text


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _about(opened: LoadedRun) -> dict[str, str]:
    """Name, task and languages of the run, for the page."""
    data: Any = getattr(opened.task, "data", None)
    languages = [str(getattr(data, side, None) or "") for side in ("source", "target")]
    return {
        "NAME": opened.path.resolve().name,
        "TASK": opened.name,
        "LANGUAGES": "-".join(languages) if all(languages) else "",
    }


def _unread(file: tuple[str, bytes]) -> str | None:
    """A part that is not in READ of another program's tokenizer.json, given its name and content."""
    name, content = file
    if not name.startswith("tokenizer"):
        return None
    parts = json.loads(content)
    about = parts[KEY]
    if "order" not in about or "known" in about:  # made by Weft, or by an import in importing/kits
        return None
    if parts["model"].get("continuing_subword_prefix") and parts["model"]["type"] == "BPE":
        return "continuing_subword_prefix"
    used = [kind for name in KINDS for kind in _types(parts.get(name))]
    return next((kind for kind in used if kind not in READ), None)


def _types(part: dict[str, Any] | None) -> list[str]:
    """The type of a part of a tokenizer.json, or those of a sequence."""
    if part is None:
        return []
    inner = next((part[name] for name in SEQUENCES if name in part), None)
    return [part["type"]] if inner is None else [kind for one in inner for kind in _types(one)]
