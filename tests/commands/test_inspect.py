"""weft inspect: every task has a page that needs no network, small, and says what was wrong in a sentence."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import weft.inspect.views as weft_views
from tests.commands.shell import evaluated, refused, weft
from weft.inspect.inspection import inspection_of, kinds, views_of
from weft.inspect.views.tree import TreeView
from weft.run import open_run

ROOT = Path(__file__).resolve().parents[2]
TEXT = "alpha beta gamma delta eta"


def listed() -> list[str]:
    """Names of the views at the end of the help."""
    lines = weft("inspect", "--help", code=0).lines
    start = next(number for number, line in enumerate(lines) if line.startswith("Views"))
    return [line.split()[0] for line in lines[start + 1 :] if line.strip()]


def test_the_help_lists_every_view_in_the_order_of_the_page() -> None:
    assert listed() == list(kinds())


def test_the_help_lists_views_however_their_order_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(
        'class A(View):\n    title, order = "Two letters", 90\n'
        'class B(View):\n    title: str = "Words"\n    order: int = 90\n'
        'class C(View):\n    title = "Sums"\n    order = 80 + 1\n'
        "class D:\n    order = 3\n"
    )
    monkeypatch.setattr(weft_views, "__path__", [str(tmp_path)])
    assert listed() == ["sums", "two-letters", "words"]


def titles(page: str) -> list[str]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return [view["title"] for view in json.loads(found.group(1))]


def test_a_view_has_a_file_of_each_form(trained: Path, tmp_path: Path) -> None:
    views = ("--only", "probabilities", "--views", tmp_path / "views")
    assert weft("inspect", trained, TEXT, *views, "--output", tmp_path / "page.html").code == 0
    files = {path.suffix: path for path in (tmp_path / "views").glob("probabilities.*")}
    assert set(files) == {".svg", ".png", ".csv", ".json"}
    json.loads(files[".json"].read_text("utf-8"))
    assert files[".svg"].read_bytes().startswith(b"<?xml")
    with Image.open(files[".png"]) as picture:
        assert min(picture.size) > 100


def test_the_page_is_one_small_file_that_names_no_other(trained: Path, tmp_path: Path) -> None:
    weft("inspect", trained, TEXT, "--output", tmp_path / "page.html", code=0)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert len(page.encode()) < 3_000_000
    assert "default-src 'none'" in page
    assert not re.search(r"\b(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//", page)
    assert not re.search(r"\b(?:fetch|XMLHttpRequest|WebSocket|sendBeacon|import)\s*\(", page)


def test_the_help_names_every_view() -> None:
    said = weft("inspect", "--help").out
    assert all(f"\n  {name} " in said and kind.__doc__ for name, kind in kinds().items())
    assert "  attention from each output to the inputs\n" in said


def test_views_are_chosen_by_name(trained: Path, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.html", tmp_path / "views"
    only = ("--only", "training", "--only", "search-tree")
    weft("inspect", trained, TEXT, *only, "--output", page, "--views", folder, "--format", "csv", code=0)
    assert titles(page.read_text("utf-8")) == ["Search tree", "Training"]
    assert {path.name for path in folder.iterdir()} == {"search-tree.csv", "training.csv"}
    unknown = refused(weft("inspect", trained, TEXT, "--only", "tree"))
    assert "--only" in unknown and all(name in unknown for name in kinds())
    absent = refused(weft("inspect", trained, TEXT, "--only", "positions"))
    assert "positions" in absent and "gradient-reach" in absent


def test_without_alignment_or_gates_their_views_are_absent(blind: Path, tmp_path: Path) -> None:
    assert weft("inspect", blind, TEXT, "--output", tmp_path / "page.html").code == 0
    assert "Alignment" not in titles((tmp_path / "page.html").read_text("utf-8"))


def test_a_replay_of_the_stored_tree_is_the_n_best_and_their_paths_are_lit(trained: Path) -> None:
    opened = open_run(trained, device="cpu")
    subject = inspection_of(opened, TEXT)
    (tree,) = [view for view in views_of(opened, subject) if isinstance(view, TreeView)]
    replayed = tree.searched.trace.replay()[0]
    assert [one.tokens for one in replayed] == tree.searched.paths and len(replayed) == 3  # the recipe's beam
    assert [one.score for one in replayed] == [one.score for one in subject.hypotheses]
    for path, way, one in zip(tree.searched.paths, tree.lit(), replayed, strict=True):
        walked = [tree.candidates[number] for number in way]
        assert [step.token for step in walked] == path
        assert [step.time for step in walked] == list(range(1, len(path) + 1))
        assert sum(step.logp for step in walked) == pytest.approx(one.logp, abs=1e-5)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "the text is empty; give one sentence"),
        (" \t ", "the text is empty; give one sentence"),
        ("a" * 100_000, "expected at most"),
    ],
)
def test_texts_that_cannot_be_shown_are_refused(
    trained: Path, tmp_path: Path, text: str, sentence: str
) -> None:
    said = refused(weft("inspect", trained, text, "--output", tmp_path / "page.html"))
    assert sentence in said
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_run_or_no_place_is_refused(trained: Path, tmp_path: Path) -> None:
    assert "not a run directory" in refused(weft("inspect", tmp_path, "alpha"))
    assert "got a directory" in refused(weft("inspect", trained, "alpha", "--output", tmp_path))
    assert "--views" in refused(weft("inspect", trained, "alpha", "--format", "svg"))


@pytest.mark.parametrize("text", ["</script><!--<script>", "\u2028 \u202e \x07", "日本語 العربية", "x" * 900])
def test_any_text_makes_a_page_that_parses(trained: Path, tmp_path: Path, text: str) -> None:
    weft("inspect", trained, text, "--output", tmp_path / "page.html", code=0)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert titles(page) and page.count("</script>") == 2


def test_quality_by_length_is_scored_where_it_is_asked_for(trained: Path, tmp_path: Path) -> None:
    page, views = tmp_path / "page.html", tmp_path / "views"
    asked = ("--evaluate", "--output", page, "--views", views, "--format", "csv")
    weft("inspect", trained, TEXT, *asked, code=0)
    assert "Quality by length" in titles(page.read_text("utf-8"))
    rows = list(csv.DictReader((views / "quality-by-length.csv").read_text("utf-8").splitlines()))
    wanted = evaluated(trained)[1]["by_length"]
    assert [(one["words"], int(one["sentences"])) for one in rows] == [
        (one["length"], one["sentences"]) for one in wanted
    ]
    scores = [float(one["score"]) if one["score"] else None for one in rows]
    assert scores == [None if one["bleu"] is None else pytest.approx(one["bleu"]) for one in wanted]


@pytest.mark.slow
def test_a_page_is_made_without_the_library_of_pictures(trained: Path, tmp_path: Path) -> None:
    script = "import sys\nfrom weft.cli import main\ntry:\n    main(sys.argv[1:])\n"
    script += "except SystemExit as end:\n    assert not end.code\nassert 'matplotlib' not in sys.modules"
    page = tmp_path / "page.html"
    command = [sys.executable, "-c", script, "inspect", str(trained), TEXT, "--output", str(page)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert len(titles(page.read_text("utf-8"))) == 8


@pytest.fixture
def browser() -> str:
    """Chromium; loud where there is none."""
    found = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium here (Debian: apt install chromium): the page was not opened in a browser")
    return found


def opened_in(browser: str, page: Path, folder: Path) -> tuple[set[str], np.ndarray, str]:
    """What a page asks of the network, what it looks like, and its elements; there is no network."""
    log, shot = folder / "net.json", folder / "shot.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,7000"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += ["--no-first-run", f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000"]
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--log-net-log={log}", f"--screenshot={shot}"]
    done = subprocess.run(
        [browser, *flags, "--dump-dom", page.as_uri()], check=True, capture_output=True, timeout=120
    )
    asked = set()
    for event in json.loads(log.read_text("utf-8", "replace"))["events"]:
        params = event.get("params", {})
        # What the browser asks for by itself (its own updates) has no origin.
        if params.get("initiator", "not an origin") != "not an origin":
            asked.add(params.get("url", ""))
    asked = {url for url in asked if not url.startswith(("file:", "data:", "blob:"))}
    image = np.asarray(Image.open(io.BytesIO(shot.read_bytes())).convert("RGB")).astype(int)
    return asked, image, done.stdout.decode("utf-8", "replace")


@pytest.mark.slow
def test_a_browser_without_a_network_draws_it_and_asks_for_nothing(
    browser: str, trained: Path, tmp_path: Path
) -> None:
    weft("inspect", trained, TEXT, "--output", tmp_path / "page.html", code=0)
    asked, image, elements = opened_in(browser, tmp_path / "page.html", tmp_path)
    assert asked == set()
    assert image.shape[:2] == (7000, 1280)
    # Dark blue of a heat map stands near the top, and ink all the way down.
    blue = (image[..., 2] - image[..., 0] > 60) & (image[..., 0] < 60)
    assert blue[:1400].sum() > 5000
    assert all((image[at : at + 700].min(2) < 90).any() for at in range(0, 4900, 700))
    assert 'data-ready="yes"' in elements
    assert elements.count("<section") == 8 and elements.count("<canvas") >= 2


@pytest.mark.slow
def test_a_page_that_does_ask_is_noticed(browser: str, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<!doctype html><img src='http://example.com/x.png'>")
    assert opened_in(browser, tmp_path / "bad.html", tmp_path)[0] == {"http://example.com/x.png"}
