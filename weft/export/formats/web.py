"""A web page that runs the model in the browser, without a server of its own and without a network."""

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import ConfigError
from weft.export import page
from weft.export.format import Format, Options
from weft.export.formats.onnx import PROGRAM, Onnx
from weft.run import LoadedRun
from weft.store import files
from weft.text.imported import KEY

LIBRARIES = {
    "onnxruntime-web": (
        "dist/ort.wasm.min.mjs",
        "dist/ort-wasm-simd-threaded.mjs",
        "dist/ort-wasm-simd-threaded.wasm",
    ),
    "@huggingface/tokenizers": ("dist/tokenizers.min.mjs", "LICENSE"),
}
"""Files of each npm package that the page needs."""

KINDS = ("model", "normalizer", "pre_tokenizer", "decoder")
SEQUENCES = ("normalizers", "pretokenizers", "decoders")
READ = (
    *("BPE", "WordPiece", "NFC", "Prepend", "Replace", "BertNormalizer", "ByteLevel", "Split", "Metaspace"),
    *("BertPreTokenizer", "ByteFallback", "Fuse", "Strip"),
)
"""Parts of a tokenizer.json that both libraries read in the same way, as tests/export/test_web.py shows."""

ABOUT = """\
A model in a web page. Start a web server in this folder and open the address that it prints:

    python -m http.server 8000

Any server of static files will do. The page fetches nothing from elsewhere. It uses onnxruntime-web (MIT
licence) and @huggingface/tokenizers (Apache licence 2.0, LICENSE.tokenizers), whose files are in this folder.
"""


class Web(Format):
    """The graphs of formats/onnx.py, the same steps as its program in JavaScript, and a page."""

    about = "a web page that runs the model in the browser, offline"
    packages = Onnx.packages

    def check(self, opened: LoadedRun, options: Options) -> None:
        Onnx().check(opened, options)
        form = opened.pipeline.model_export(opened.model)
        if form is not None and form.settings["kind"] not in _kinds():
            raise ConfigError(f"--to web: the page cannot run a model of task {opened.name}; use --to onnx")
        if form is not None and form.settings.get("frames"):
            raise ConfigError("--to web: data: frames: the page reads pictures, not clips; use --to onnx")
        if form is not None and form.settings.get("separator"):
            raise ConfigError(
                "--to web: expected one class per text, got several labels (data.separator); use --to onnx"
            )
        how = {} if form is None else form.settings.get("decoding", {})
        if isinstance(how, dict) and how.get("coverage"):
            raise ConfigError(
                "--to web: decoding: coverage: the page has no such search; remove it from the run's "
                "recipe.yaml, or use --to onnx"
            )
        for part in () if form is None else filter(None, map(_unread, form.files.items())):
            raise ConfigError(
                f"--to web: the page may read {part} of the model's tokenizer.json in another way than Weft; "
                "use --to onnx"
            )
        _libraries(options)

    def write(self, opened: LoadedRun, folder: Path, options: Options) -> Sequence[str]:
        lines = Onnx(shares=False).write(opened, folder, options)
        (folder / PROGRAM).unlink()
        card = folder / "README.md"
        card.write_text(
            card.read_text("utf-8").replace(f"Use it: `python {PROGRAM} < FILE`", "Use it: README.txt")
        )
        for path in sorted(Path(page.__path__[0]).glob("[!_]*.*")):
            shutil.copyfile(path, folder / path.name)
        for source in _libraries(options):
            name = "LICENSE.tokenizers" if source.name == "LICENSE" else source.name
            shutil.copyfile(source, folder / name)
        files.write(folder / "README.txt", ABOUT.encode())
        total = sum(path.stat().st_size for path in folder.iterdir())
        return [*lines, f"{total:,} bytes in all"]

    def hints(self, output: Path) -> Sequence[str]:
        return [f"next: python -m http.server --directory {shlex.quote(str(output))}"]


def _kinds() -> list[str]:
    """The kinds of models that the page can run: the keys of KINDS in weft.js."""
    source = (Path(page.__path__[0]) / "weft.js").read_text("utf-8")
    found = re.search(r"^const KINDS = \{([^}]*)\}", source, re.MULTILINE)
    assert found is not None
    return re.findall(r"(\w+):", found[1])


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


def _libraries(options: Options) -> list[Path]:
    """The files of the npm packages.

    Raises:
        ConfigError: one is missing.
    """
    folder = options.library or Path("node_modules")
    found = [folder / package / name for package, names in LIBRARIES.items() for name in names]
    missing = [path for path in found if not path.is_file()]
    if missing:
        raise ConfigError(
            f"--library {folder}: expected the packages {' and '.join(LIBRARIES)}, {missing[0]} is missing; "
            "type npm install onnxruntime-web @huggingface/tokenizers and name its folder node_modules"
        )
    return found
