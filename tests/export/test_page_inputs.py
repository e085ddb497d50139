"""What the page makes of texts, tables and recordings, without a model: the same as Weft."""

import csv
import io
import json
import subprocess
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="pip install -e .[export]")

from tests.export.pages import NODE, node
from tests.export.runs import TEXTS
from tests.slow import leading
from weft.export import page
from weft.export.formats import tokenizer
from weft.export.programs.recordings import RecordingTranscriber, samples_of
from weft.export.programs.tables import TableForecaster
from weft.text.loading import portable
from weft.text.pieces import KINDS
from weft.text.vocabulary import Vocabulary

HORIZON = 5
USUAL: dict[str, Any] = {
    "lookback": 12,
    "horizon": HORIZON,
    "names": ["a", "y"],
    "mean": [2.0, 3.0],
    "std": [1.0, 2.0],
    "times": ["when", "time", "date", "ds"],
    "time": None,
    "id": [],
    "base": None,
    "targets": [],
    "known": [],
    "past": [],
    "columns": [],
    "calendar": False,
    "step": None,
}
BEST = np.arange(HORIZON, dtype=np.float32) * np.float32(1.2345678)

TABLES = """
import fs from 'node:fs';
const { TableForecaster } = await import(`${process.argv[2]}/series.js`);
const found = [];
for (const { about, text, best } of JSON.parse(fs.readFileSync(process.argv[3], 'utf8'))) {
  const model = Object.create(TableForecaster.prototype), seen = [];
  const run = (given) => {
    seen.push(Object.entries(given).map(([name, { dims, data }]) => [name, [dims, Array.from(data)]]));
    return { best: { data: Float32Array.from(best) } };
  };
  Object.assign(model, { about, graph: { run } });
  found.push([(await model.answer(text)).text, seen]);
}
fs.writeFileSync(process.argv[3], JSON.stringify(found));
"""

COLUMN = """
import fs from 'node:fs';
const { numbersOf } = await import(`${process.argv[2]}/series.js`);
const asked = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
const found = asked.map(([text, names]) => numbersOf(text, names));
fs.writeFileSync(process.argv[3], JSON.stringify(found));
"""

FILES = """
import fs from 'node:fs';
const { textIn } = await import(`${process.argv[2]}/vocabulary.js`);
const files = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
fs.writeFileSync(process.argv[3], JSON.stringify(files.map((one) => textIn(Uint8Array.from(one).buffer))));
"""

SOUND = """
import fs from 'node:fs';
const { parts, sound } = await import(`${process.argv[2]}/sound.js`);
const { settings, filters, files } = JSON.parse(fs.readFileSync(process.argv[3], 'utf8')), found = [];
const frames = sound(settings, new Uint8Array(fs.readFileSync(filters)));
for (const name of files) {
  const whole = await frames(new Uint8Array(fs.readFileSync(name)));
  const all = [whole, ...parts(whole, settings)];
  found.push(all.map(({ data, count, bands }) => [[count, bands], Array.from(data)]));
}
fs.writeFileSync(process.argv[3], JSON.stringify(found));
"""


TEXT = """
import fs from 'node:fs';
const { Vocabulary } = await import(`${process.argv[2]}/vocabulary.js`);
const { file, texts } = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
const words = new Vocabulary(new Uint8Array(fs.readFileSync(file)));
const read = (text) => [words.encode(text), words.decode(words.encode(text)), words.tokenizer.lacking(text)];
const found = texts.map(read);
fs.writeFileSync(process.argv[3], JSON.stringify(found));
"""


def in_node(script: str, given: Any, folder: Path) -> Any:
    (folder / "run.mjs").write_text(script)
    (folder / "given.json").write_text(json.dumps(given))
    line = [str(NODE), str(folder / "run.mjs"), page.__path__[0], str(folder / "given.json")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "given.json").read_text())


class Fake:
    """A graph that keeps what it is given."""

    def __init__(self) -> None:
        self.seen: list[dict[str, np.ndarray]] = []

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.seen.append(given)
        return {"best": BEST[None]}


def table(times: list[str], columns: str, ids: str = "-", rows: int = 19) -> str:
    """A table of noise; only columns that begin with k have values in the last rows; two rows are missing."""
    draw, lines = np.random.default_rng(1), [f"when,shop,{columns.replace(' ', ',')}"]
    for shop in ids:
        for n, time in enumerate(times):
            cells = [
                f"{value:.3f}" if n < rows or name.startswith("k") else ""
                for value, name in zip(draw.uniform(1, 9, 9), columns.split(), strict=False)
            ]
            if n == 9:
                cells[0] = "nan"
            if n not in (4, 5):
                lines.append(",".join([time, shop, *cells]))
    return "\n".join(lines) + "\n"


def every(begin: str, kind: str, rows: int = 24) -> list[str]:
    at = np.arange(rows)
    if kind == "business":
        return [str(day) for day in np.busday_offset(begin, at)]
    first = np.datetime64(begin)
    if kind == "month ends":
        return [str((first + n + 1).astype("datetime64[D]") - 1) for n in at]
    return [str(time).replace("T", " ") + (":00" if kind == "hours" else "") for time in first + at]


def zoned(begin: str, hours: int) -> str:
    first = np.datetime64(begin)
    return "when,shop,a\n" + "".join(f"{first + n * hours}:00Z,-,{n}\n" for n in range(17))


HOUR, DAY, SHOP = {"seconds": 3600}, {"seconds": 86400}, {"id": ["shop"]}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "hours with a calendar": (
        SHOP | {"step": HOUR, "calendar": True},
        table(every("2024-02-28T22", "hours"), "a b"),
    ),
    "days and what is known": (
        SHOP | {"step": DAY, "known": ["k1", "k2"], "targets": ["y"]},
        table(every("2024-02-20", "days"), "y k1 k2"),
    ),
    "workdays and other columns": (
        SHOP
        | {"step": {"business": 1}, "calendar": True, "known": ["k1"], "past": ["p1"], "columns": ["a", "b"]},
        table(every("2024-02-20", "business"), "a b k1 p1"),
    ),
    "ends of months of shops": (
        SHOP | {"step": {"months": 1}, "calendar": True, "past": ["p1"], "targets": ["y"]},
        table(every("2021-01", "month ends"), "y p1", ids="zx"),
    ),
    "semicolons": (SHOP | {"step": DAY}, table(every("2024-02-20", "days"), "a").replace(",", ";")),
    "slashes": (SHOP | {"step": DAY}, table(every("2024-02-20", "days"), "a").replace("-0", "/0")),
    "an offset": (
        SHOP | {"step": HOUR, "calendar": True},
        table(every("2024-02-28T22", "hours"), "a").replace(":00,", ":00+05:30,"),
    ),
    "the end of summer time": (
        SHOP | {"step": HOUR, "base": "Europe/Zagreb", "calendar": True},
        zoned("2024-10-26T12", 1),
    ),
    "the beginning of summer time": (
        SHOP | {"step": HOUR, "base": "Europe/Zagreb", "calendar": True},
        zoned("2024-03-30T12", 1),
    ),
    "another zone": (SHOP | {"step": HOUR, "base": "+02:00"}, zoned("2024-10-26T12", 1)),
    "quarters": (
        {"step": {"months": 3}},
        "q,a\n" + "".join(f"{2019 + n // 4}Q{n % 4 + 1},{n}\n" for n in range(17)),
    ),
    "the names of other programs": (
        {"step": DAY},
        "unique_id,ds,y\n" + "".join(f'"s, 1",2024-01-{n + 1:02},{n * 1e7}\n' for n in range(20)),
    ),
    "rows without times": ({}, "a,b\n" + "".join(f"{n},{n * n}\n" for n in range(20))),
    "decimal commas": (
        {"step": DAY},
        "sep=;\nunique_id;ds;y\n" + "".join(f"s;2024-01-{n + 1:02};1.00{n % 9},{n}5\n" for n in range(20)),
    ),
    "decimal commas and no header": (
        {"names": ["1", "2"]},
        "".join(f"{n},5;{n * n},25\n" for n in range(20)),
    ),
}


@node
@pytest.mark.parametrize(
    ("kind", "lowercase"), [*((kind, False) for kind in KINDS), *leading((kind, True) for kind in KINDS)]
)
def test_texts(kind: str, lowercase: bool, tmp_path: Path) -> None:
    """Symbols in a text are text, and unknown pieces end at words."""
    size = 211 if kind in ("bpe", "unigram") else None
    words = Vocabulary.train(TEXTS, kind=kind, size=size, form="nfkc", lowercase=lowercase)
    (tmp_path / "tokenizer.json").write_bytes(portable(words))
    texts = ["<unk><unk> and <pad><sos>", "日本語 👩\u200d👩\u200d👧 €5", *tokenizer.ODD, *TEXTS[:20]]
    found = in_node(TEXT, {"file": str(tmp_path / "tokenizer.json"), "texts": texts}, tmp_path)
    for text, (numbers, decoded, lacking) in zip(texts, found, strict=True):
        assert numbers == words.encode(text), text
        assert decoded == words.decode(numbers), text
        assert lacking == words.unknown(text), text


@node
def test_tables(tmp_path: Path) -> None:
    asked, ours = [], []
    for more, text in CASES.values():
        about = USUAL | more
        known, beside = len(about["known"]), len(about["past"]) + len(about["columns"])
        about["covariates"] = {"mean": [1.0, 2.0][:known], "std": [2.0, 3.0][:known]}
        about["channels"] = {"mean": [1.0, 2.0, 3.0][:beside], "std": [1.0, 2.0, 3.0][:beside]}
        asked.append({"about": about, "text": text, "best": BEST.tolist()})
        model, graph = TableForecaster.__new__(TableForecaster), Fake()
        model.about, model.known, model.past, model.graph = about, about["known"], about["past"], graph  # type: ignore[assignment]
        ours.append((model(text), graph.seen))
    for name, (text, seen), (said, given) in zip(CASES, ours, in_node(TABLES, asked, tmp_path), strict=True):
        assert len(given) == len(seen) > 0, name
        mark = text[len("unique_id")]
        rows = [list(csv.reader(io.StringIO(one), delimiter=mark)) for one in (text, said)]
        assert {any("," in row[2] for row in one) for one in rows} == {"decimal" in name}, name
        assert [row[:2] for row in rows[0]] == [row[:2] for row in rows[1]] and len(rows[0]) > HORIZON, name
        numbers = [np.array([row[2].replace(",", ".") for row in each[1:]], np.float64) for each in rows]
        assert np.allclose(*numbers, rtol=1e-5), name
        for one, other in zip(seen, map(dict, given), strict=True):
            assert one.keys() == other.keys(), name
            for key, value in one.items():
                dims, data = other[key]
                assert list(value.shape) == dims, (name, key)
                assert np.allclose(value.ravel(), data, rtol=1e-5, atol=1e-6), (name, key)


@node
@pytest.mark.parametrize("normalise", [True, False])
def test_recordings(normalise: bool, tmp_path: Path) -> None:
    draw, files = np.random.default_rng(2), []
    for number, (rate, rows, channels) in enumerate(
        [(8000, 3001, 1), (16000, 4999, 2), (11025, 2000, 1), (8000, 7, 1), (8000, 24000, 1)]
    ):
        loud = 3000 * (1 + np.sin(np.arange(rows) / 2000)[:, None]) ** 3  # with pauses
        files.append(tmp_path / f"{number}.wav")
        with wave.open(str(files[-1]), "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(
                (draw.normal(0, 1, (rows, channels)) * loud).clip(-32000, 32000).astype("<i2").tobytes()
            )
    settings: dict[str, Any] = {
        "rate": 8000,
        "window": 200,
        "hop": 80,
        "least": 1e-10,
        "normalise": normalise,
    }
    settings["cuts"] = {"longest": 60, "pause": 20, "margin": 7, "smooth": 5}
    filters = draw.uniform(0, 1, (13, 129))
    np.save(tmp_path / "filters.npy", filters)
    model = RecordingTranscriber.__new__(RecordingTranscriber)
    model.sound, model.filters = settings, filters
    given = {"settings": settings, "filters": str(tmp_path / "filters.npy"), "files": list(map(str, files))}
    counts = []
    for path, theirs in zip(files, in_node(SOUND, given, tmp_path), strict=True):
        frames = model.frames(*samples_of(path))
        ours = [frames, *model.parts(frames)]
        counts.append(len(ours) - 1)
        for one, (dims, data) in zip(ours, theirs, strict=True):
            assert list(one.shape) == dims, path
            assert np.allclose(one.ravel(), data, atol=1e-3), path
    assert counts[:4] == [1, 1, 1, 1] and counts[4] > 4


@node
def test_the_column_of_a_table_is_one_that_the_model_knows(tmp_path: Path) -> None:
    table = "date,sales,visits\n2024-01-01,1.5,70\n2024-01-02,,80\n"
    asked = [(table, ["sales", "visits"]), (table, ["visits"]), (table, ["shop"]), ("3 4\n5", ["sales"])]
    assert in_node(COLUMN, asked, tmp_path) == [
        ["1.5 nan", "sales"],
        ["70 80", "visits"],
        ["70 80", "visits"],
        ["3 4\n5"],
    ]


@node
def test_a_file_that_is_no_text_is_none(tmp_path: Path) -> None:
    texts = ["é", "", "\ufeffa"]
    files = [
        *(text.encode() for text in texts),
        *("é\n".encode(kind) for kind in ("utf-16-le", "utf-16-be")),
        "é\n".encode("utf-16"),
        "é\n".encode("latin-1"),
        b"\x89PNG\0",
    ]
    wide = [None, None, "é\n", None, None]
    assert in_node(FILES, [list(one) for one in files], tmp_path) == ["é", "", "a", *wide]
