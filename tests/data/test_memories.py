"""Memories as training data: the pairs of two languages, unit by unit, mistakes with their line."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import corpus
from tests.commands.shell import refused, weft
from weft.data.parallel import ParallelText
from weft.errors import DataError

for _name in ("lxml", "polib"):
    pytest.importorskip(_name, reason=f"{_name} is not installed: pip install -e .[documents]")

TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en-US"><seg>Open <bpt i="1">{b}</bpt>the
 file<ept i="1">{/b}</ept>.</seg></tuv><tuv xml:lang="ES"><seg>Abra <hi>el archivo</hi>.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>Only English</seg></tuv></tu>
<tu><tuv xml:lang="en-GB"><seg>Colour</seg></tuv><tuv xml:lang="en"><seg>Color</seg></tuv>
<tuv xml:lang="es"><seg>Color</seg></tuv></tu>
</body></tmx>"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="es-MX"><body>
<trans-unit id="1"><source>Open <g id="1">it</g><x id="2"/></source><target>Abra</target></trans-unit>
<trans-unit id="2"><source>No</source></trans-unit>
<trans-unit id="3"><source>New</source><target state="needs-translation">New</target></trans-unit>
</body></file></xliff>"""
PO = """msgid ""
msgstr ""
"Language: es\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "Open\\n"
"the file"
msgstr "Abra el archivo"

#, fuzzy
msgid "Guess"
msgstr "Suposición"

msgid "a file"
msgid_plural "files"
msgstr[0] "un archivo"
msgstr[1] "archivos"

msgid "Empty"
msgstr ""
"""
WANTED = {
    "a.tmx": (TMX, [("Open the file.", "Abra el archivo."), ("Color", "Color")]),
    "a.xliff": (XLIFF, [("Open it", "Abra")]),
    "a.po": (PO, [("Open the file", "Abra el archivo"), ("a file", "un archivo"), ("files", "archivos")]),
}


@pytest.mark.parametrize("name", WANTED)
def test_the_pairs_of_two_languages_are_read_in_both_directions(name: str, tmp_path: Path) -> None:
    text, wanted = WANTED[name]
    (tmp_path / name).write_text(text)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path / name, packed):
        found = ParallelText(path, "en", "es")
        assert [(one.source, one.target) for one in found] == wanted
        lines = text.split("\n")
        assert all(0 < one.number <= len(lines) for one in found)
        turned = ParallelText(path, "es", "en")
        assert [(one.target, one.source) for one in turned] == wanted


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.tmx", TMX.replace("</tu>", "", 1), r"a\.tmx:9: expected well-formed XML"),
        ("a.tmx", TMX.replace('xml:lang="es"><seg>Color', "><seg>Color"), r"a\.tmx:8: expected a tuv"),
        ("a.tmx", TMX.replace('"ES"', '"de"').replace('"es"', '"de"'), "texts in 'en' and 'es', got none"),
        ("a.tmx", "<html></html>", r"a\.tmx:1: expected an element tmx, got html"),
        ("a.tmx", '<!DOCTYPE tmx [<!ENTITY a "b">]><tmx><tu/></tmx>', "declares some"),
        ("a.po", PO + "\nfoo\n", r"a\.po:\d+: expected gettext"),
        ("a.xliff", XLIFF.replace('"en"', '"fr"'), r"a\.xliff:3: expected a file in 'en' and 'es', got 'fr'"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused_with_their_place(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=sentence):
        list(ParallelText(tmp_path / name, "en", "es"))


@pytest.mark.parametrize("name", WANTED)
def test_it_is_checked_as_two_files_are(name: str, tmp_path: Path) -> None:
    text, wanted = WANTED[name]
    (tmp_path / name).write_text(text)
    answer = weft("data", "check", tmp_path / name)
    assert answer.code == 0, answer.out
    assert f"{len(wanted)} pair" in answer.out and str(tmp_path / name) in answer.out


def test_a_check_finds_what_is_wrong_in_a_memory_with_its_line(tmp_path: Path) -> None:
    def unit(source: str, target: str) -> str:
        sides = f'<tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="es"><seg>{target}</seg></tuv>'
        return f"<tu>{sides}</tu>\n"

    units = [
        unit("Open the file", "Abra el archivo"),
        unit("Close", "Close"),
        unit("Open the file", "Abra el archivo"),
    ]
    (tmp_path / "a.tmx").write_text("<tmx><body>\n" + "".join(units) + "</body></tmx>")
    answer = weft("data", "check", tmp_path / "a.tmx")
    assert f"{tmp_path / 'a.tmx'}:3: es equals en: 'Close'" in answer.out
    assert f"{tmp_path / 'a.tmx'}:4: the same pair as {tmp_path / 'a.tmx'}:2" in answer.out
    (tmp_path / "a.tmx").write_text("<tmx><body>\n" + units[0] + "</tmx>")
    answer = weft("data", "check", tmp_path / "a.tmx")
    assert answer.code == 1 and f"{tmp_path / 'a.tmx'}:3: expected well-formed XML" in answer.out
    (tmp_path / "b.po").write_text('msgid "a"\nfoo\n')
    answer = weft("data", "check", tmp_path / "b.po")
    assert answer.code == 1 and f"{tmp_path / 'b.po'}:2: expected gettext" in answer.out


READ = """
import re, sys
from weft.data.pairs import pairs

unit = b"<tu><tuv xml:lang='en'><seg>one</seg></tuv><tuv xml:lang='es'><seg>uno</seg></tuv></tu>\\n"
parts = iter([b"<tmx><body>", *[unit] * int(sys.argv[1]), b"</body></tmx>"])
assert sum(1 for _ in pairs(parts, "a.tmx", "en", "es")) == int(sys.argv[1])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
def test_a_memory_of_any_size_takes_the_same_memory() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say how much memory a process has used")
    sizes = [
        int(subprocess.run([sys.executable, "-c", READ, count], capture_output=True, check=True).stdout)
        for count in ("100", "60000")
    ]
    assert sizes[1] < sizes[0] + 15_000  # KiB; all units at once take 70,000


def test_a_translator_is_trained_on_a_memory(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    sides = [(tmp_path / "toy" / f"train.{end}").read_text().split("\n")[:-1] for end in ("xx", "yy")]
    units = "".join(
        f'<tu><tuv xml:lang="xx-A"><seg>{one}</seg></tuv><tuv xml:lang="yy"><seg>{other}</seg></tuv></tu>\n'
        for one, other in zip(*sides, strict=True)
    )
    (tmp_path / "toy" / "memory.tmx").write_text(f"<tmx><body>{units}</body></tmx>")
    recipe.write_text(recipe.read_text().replace("/train\n", "/memory.tmx\n"))
    short = ("training.max_updates=2", "training.validate_every=2")
    answer = weft("train", recipe, "--run", tmp_path / "run", *short)
    assert answer.code == 0 and "397 of 397" in answer.err + answer.out, answer.err
    said = refused(weft("train", recipe, "--run", tmp_path / "other", *short, "data.source=zz"))
    assert ("memory.tmx" in said and "texts in 'zz'" in said) or "zz" in said
