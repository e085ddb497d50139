"""Files chosen on the page and sent to be looked into; and no name of a file on the server is ever opened."""

import base64
import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from PIL import Image

from tests import toys
from tests.commands.shell import weft
from tests.serve.browser import Browser
from tests.serve.client import ask, post
from tests.serve.conftest import application, listening
from tests.shared import shared_run
from tests.slow import leading
from weft.data.shapes import shapes

FILES = ("caption", "images", "speech")
WAVES = """task: forecast
data: {generated: waves, lookback: 24, horizon: 5}
model: {forecaster: {use: recurrent, cell: gru, sizes: [7]}}
training: {max_updates: 2, validate_every: 2, metric: mse}
"""


@pytest.fixture(scope="module")
def folder(library: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of pictures and recordings, one of series, and a pointer that has learnt."""
    place = tmp_path_factory.mktemp("files")
    for name in FILES:
        shutil.copytree(shared_run(name), place / name)
    shutil.copytree(shared_run("summarise"), place / "pointer")
    (place / "waves.yaml").write_text(WAVES)
    assert weft("train", place / "waves.yaml", "--run", place / "waves").code == 0
    pixels, _ = shapes([7], range(1), 12)
    Image.fromarray(pixels[0]).save(place / "shape.png")
    toys.sing(place / "song.wav", ["do", "so"])
    return place


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    paths = [folder / name for name in (*FILES, "waves", "pointer")]
    with listening(application(*paths)) as where:
        yield where


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    browser.screen(1000, 900)
    browser.events.clear()
    browser.open(f"{address}/")
    browser.wait("document.querySelectorAll('#first option').length === 5")
    return browser


def choose(page: Browser, name: str) -> None:
    page.run(
        f"(() => {{ const box = document.getElementById('first'); box.value = '{name}';"
        "box.dispatchEvent(new Event('change')); })()"
    )


def settled(page: Browser) -> None:
    page.wait("/ complete after|: \\d+ ms/.test(document.getElementById('status').textContent)")


def coded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize(
    ("name", "file", "shown"),
    [
        ("images", "shape.png", "img.picture"),
        ("caption", "shape.png", "img.picture"),
        ("speech", "song.wav", "audio"),
    ],
)
def test_a_file_is_chosen_answered_and_shown(
    page: Browser, address: str, folder: Path, name: str, file: str, shown: str
) -> None:
    choose(page, name)
    button = "document.getElementById('open')"
    assert page.run(f"Boolean({button}.offsetParent) && {button}.textContent") == "Choose a file"
    assert page.run("document.getElementById('text-label').offsetParent === null")
    page.point("#go", click=True)
    page.wait("document.querySelector('.panel .error')?.textContent === 'choose a file first'")
    page.upload("#file", folder / file)  # choosing is asking
    settled(page)
    found = post(f"{address}/predict", {"run": name, "inputs": coded(folder / file)}).body["outputs"][0]
    said = f"{found['label']} ({100 * found['prob']:.1f} %)" if name == "images" else found["text"]
    assert page.run("document.querySelector('.panel .answer').textContent") == said
    assert page.run(f"document.querySelector('.panel {shown}').src.startsWith('data:')")
    if shown != "audio":
        page.wait(f"document.querySelector('.panel {shown}').naturalWidth === 12")
    assert page.complaints() == []


def test_what_a_file_looks_like_inside_is_a_click_away(page: Browser, folder: Path) -> None:
    choose(page, "images")
    page.upload("#file", folder / "shape.png")
    settled(page)
    page.run("document.querySelector('.panel form').target = '_self'")
    page.point(".panel button.link", click=True)
    page.wait("document.documentElement?.dataset.ready === 'yes'")
    assert page.run("document.title") == "weft inspect images"
    titles = page.run("[...document.querySelectorAll('section h2')].map((one) => one.textContent)")
    assert titles == ["Picture", "Probabilities", "Training"]
    assert page.complaints() == []


def test_a_file_of_another_kind_is_refused_and_the_page_lives_on(page: Browser, folder: Path) -> None:
    choose(page, "images")
    page.upload("#file", folder / "song.wav")
    page.wait("document.querySelector('.panel .error')?.textContent.includes('got a wav file')")
    page.upload("#file", folder / "shape.png")
    settled(page)
    assert page.run("Boolean(document.querySelector('.panel img'))")


def test_copied_words_are_told_apart(page: Browser) -> None:
    choose(page, "pointer")
    page.run("document.getElementById('text').focus()")
    page.type("beta gamma . It is kokomila alpha .")
    page.press("Enter", 13, "\r")
    settled(page)
    words = page.run("[...document.querySelectorAll('.target .word')].map((one) => one.textContent)")
    assert words == ["kokomila"]
    assert page.run("document.querySelectorAll('.target .word.copied').length") == 1
    assert "% of its probability was copied" in page.run("document.querySelector('.word.copied').title")
    page.point(".target .word")
    page.wait("document.querySelector('.source .word[title]:not([title=\"\"])')")
    looked = page.run("[...document.querySelectorAll('.source .word')].map((one) => parseFloat(one.title))")
    assert looked.index(max(looked)) == 5


@pytest.mark.parametrize("name", leading([*FILES, "waves"], 2))
def test_no_name_of_a_file_is_opened_for_a_client(address: str, folder: Path, name: str) -> None:
    file = {"waves": "waves.yaml", "speech": "song.wav"}.get(name, "shape.png")
    reply = ask(f"{address}/inspect?run={name}&text={folder / file}")
    assert reply.status == 400 and "does not read text" in reply.body["error"]
    own = ask(f"{address}/inspect?run={name}")
    assert own.status == 200 and 'id="data"' in own.body


def test_a_file_is_looked_into_and_what_is_none_is_refused(address: str, folder: Path) -> None:
    where = f"{address}/inspect"
    for name, file in (("images", "shape.png"), ("caption", "shape.png"), ("speech", "song.wav")):
        reply = post(where, {"run": name, "inputs": coded(folder / file)})
        assert reply.status == 200 and '"Training"' in reply.body, reply
    for given, sentence in (
        ({"run": "pointer", "inputs": coded(folder / "shape.png")}, "does not read files"),
        ({"run": "images", "inputs": "***"}, "as base64"),
        ({"run": "images", "inputs": [coded(folder / "shape.png")] * 2}, "one file, got 2"),
        (
            {"run": "speech", "inputs": coded(folder / "shape.png")},
            "expected recordings (WAV, FLAC, Ogg, MP3), got a PNG picture",
        ),
        ({"run": "images", "inputs": coded(folder / "song.wav")[:80]}, "got a wav file"),
    ):
        reply = post(where, given)
        assert reply.status == 400 and sentence in reply.body["error"], reply
    cut = base64.b64encode((folder / "shape.png").read_bytes()[:40]).decode()
    said = post(where, {"run": "images", "inputs": cut}).body["error"]
    assert said.startswith("inputs: ") and str(folder.anchor) not in said


@pytest.mark.slow
def test_a_forecaster_reads_numbers_or_the_text_of_a_table(address: str) -> None:
    numbers = [round(20 + row % 7, 1) for row in range(30)]
    reply = post(f"{address}/predict", {"run": "waves", "inputs": numbers})
    assert reply.status == 200, reply
    clock = [f"2024-01-{1 + row // 24:02} {row % 24:02}:00:00" for row in range(30)]
    lines = ["date,north", *(f"{time},{value}" for time, value in zip(clock, numbers, strict=True))]
    asked = {"run": "waves", "inputs": "\n".join(lines)}
    reply = post(f"{address}/predict", asked)
    assert reply.status == 200, reply
    (rows,) = next(value for value in reply.body.values() if isinstance(value, list))
    assert [row["ds"] for row in rows] == [f"2024-01-02 {hour:02}:00:00" for hour in range(6, 11)]
    assert all(row["unique_id"] == "north" and isinstance(row["y"], float) for row in rows)
    asked["inputs"] = "date,north\n2024-01-01,many\n"
    reply = post(f"{address}/predict", asked)
    assert reply.status == 400 and "inputs:2: 'many' in column north" in reply.body["error"]
    header = ",".join(f"c{number}" for number in range(400))
    row = ",".join(["1"] * 400)
    large = "\n".join([lines[0], *(f"{line}e30" for line in lines[1:])])
    for table, sentence in (
        ("date,north\n" + "2024-01-01,\n", "got one without any"),
        (large, "below 1e30"),
        ("\n".join([f"date,{header}", *(f"{time},{row}" for time in clock)]), "got 400"),
    ):
        asked["inputs"] = table
        reply = post(f"{address}/predict", asked)
        assert reply.status == 400 and sentence in reply.body["error"], reply
    asked["inputs"] = "unique_id,ds,y\n" + "\n".join(f"s{row},2024-01-01,1" for row in range(9000))
    begun = process_time()
    assert "at most 128 series, got 9,000" in post(f"{address}/predict", asked).body["error"]
    assert process_time() - begun < 1.5
    asked["inputs"] = "\n".join(lines).replace("north", '"nor\nth"')
    assert post(f"{address}/predict", asked).status == 200


def test_a_meter_of_nine_digits_is_answered_with_all_of_them(library: None, tmp_path: Path) -> None:
    from weft.serve.app import Application
    from weft.serve.limits import ServerLimits
    from weft.serve.served import named

    readings = [104_872_006 + 3 * row for row in range(90)]
    lines = [f"{date(2024, 1, 1) + timedelta(row)},{value}" for row, value in enumerate(readings)]
    table = "\n".join(["day,meter", *lines])
    (tmp_path / "x.csv").write_text(table)
    (tmp_path / "x.yaml").write_text(
        f"task: forecast\ndata: {{file: {tmp_path / 'x.csv'}, lookback: 14, horizon: 3}}\n"
        "model: {forecaster: {use: linear}, base: linear, solve: true}\n"
    )
    weft("train", tmp_path / "x.yaml", "--run", tmp_path / "meter", code=0)
    with listening(Application(named([tmp_path / "meter"], "cpu", ()), ServerLimits())) as where:
        for inputs in (table, readings):
            reply = post(f"{where}/predict", {"run": "meter", "inputs": inputs})
            (rows,) = next(value for value in reply.body.values() if isinstance(value, list))
            found = [row["y"] if isinstance(row, dict) else row for row in rows]
            assert np.abs(np.array(found) - [104_872_276, 104_872_279, 104_872_282]).max() < 0.5, reply.body


def test_a_long_recording_is_refused(address: str, folder: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(folder / "long.flac", [0.0] * 61_000, 1000)
    sent = base64.b64encode((folder / "long.flac").read_bytes()).decode()
    for path in ("/predict", "/inspect"):
        reply = post(address + path, {"run": "speech", "inputs": sent})
        assert reply.status == 400
        assert reply.body["error"] == "inputs: expected a recording of at most 60 seconds, got 61; cut it"
