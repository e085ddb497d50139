"""The task `language` from the command line and from Python: trained, continued, scored, refused."""

import json
import math
from pathlib import Path

import pytest

import weft as package
from tests.commands.prose import GPT, RECURRENT, WORDS, make, write
from tests.commands.shell import refused, untouched, weft
from tests.shared import copied, shared_run


@pytest.fixture(scope="module", params=["language", "language in windows", "language in lines"])
def run(request: pytest.FixtureRequest) -> Path:
    return shared_run(request.param)


def test_a_line_is_gone_on_with(run: Path) -> None:
    answer = weft("predict", run, "--beam", 1, stdin=b"the cat\n\none dog\n", code=0)
    assert len(answer.lines) == 3
    assert answer.lines[0].startswith("the cat sat") and answer.lines[2].startswith("one dog ran")
    drawn = [weft("predict", run, "--seed", seed, "--nbest", 12, stdin=b"the\n").lines for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0]) == 12
    assert drawn[0] != weft("predict", run, "--nbest", 12, "--top-k", 1, stdin=b"the\n").lines


def test_what_was_given_stays_as_it_is(run: Path) -> None:
    for given in ("zebra", "the zebra", "the  cat ", "zebra the"):
        (line,) = weft("predict", run, "--set", "max_tokens=3", "--seed", 2, stdin=given.encode()).lines
        assert line.startswith(given)
        added = line[len(given) :]
        assert not added or added.startswith(" ") != given.endswith(" ")
        assert set(added.split()) <= set(WORDS)


def test_what_stops_it(run: Path) -> None:
    several = weft("predict", run, "--set", "max_lines=3", "--set", "max_tokens=40", stdin=b"the\n")
    assert several.lines and len(several.lines) <= 4
    for lines in (1, 5):  # as many as asked for
        asked = weft(
            "predict", run, "--set", f"max_lines={lines}", "--set", "max_tokens=99", stdin=b"the cat\n"
        )
        assert asked.out.removesuffix("\n").count("\n") == lines - 1
    stopped = weft("predict", run, "--beam", 1, "--set", 'stop=[" sat"]', stdin=b"the cat\n")
    assert stopped.lines == ["the cat"]
    assert weft("predict", run, "--set", "max_tokens=0", stdin=b"the cat\n").lines == ["the cat"]


def test_scores_are_those_of_python_and_of_the_evaluation(run: Path, tmp_path: Path) -> None:
    text = "the cat sat"
    shown = weft("predict", run, "--scores", "--set", "max_tokens=0", stdin=text.encode()).lines
    model = package.load(run)
    scored = model.score(text)
    assert scored.pieces == ["▁the", "▁cat", "▁sat", "</s>"]
    assert shown == [f"{scored.total:.4f}\t{text}"]
    best = model.next("the cat", 3)
    assert best[0].piece == "▁sat" and best[0].prob >= best[1].prob >= best[2].prob
    assert math.isclose(math.log(best[0].prob), scored.logp[2], abs_tol=1e-5)
    assert model.predict("the cat").startswith("the cat")
    (tmp_path / "one.txt").write_text(text + "\n")
    weft("evaluate", run, "--data", tmp_path / "one.txt", "--output", tmp_path / "out.txt", code=0)
    assert (tmp_path / "out.txt").read_text() == f"{scored.total:.4f}\n"


def test_the_evaluation_says_how_it_was_made_and_stands_beside_its_baseline(
    run: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    answer = weft("evaluate", run, "--split", "valid", "--set", "mixture=tuned", "--json", report, code=0)
    context = {"language": "streamed", "windows": "windows of 7, stride 7", "lines": "the line"}
    kind = run.parent.name.split("-")[-1]
    assert f"|with </s>|vocabulary:space 16|context:{context[kind]}|unknown:0|" in answer.unfolded
    assert (
        "baseline: KN5, contexts within a line" in answer.out and "each half tuned on the other" in answer.out
    )
    found = json.loads(report.read_text())
    own, words, bits, mixture = found["scores"].values()
    (lowest,) = own["baselines"].values()
    worse = own["value"] > lowest and ": worse than the best baseline" in answer.unfolded
    assert ("hint: by perplexity" in answer.out) == worse
    assert all(one["low"] < one["value"] < one["high"] for one in found["scores"].values())
    total = math.log(own["value"]) * found["tokens"]
    lines = (run.parent / "toy" / "valid.txt").read_text().split("\n")[:-1]
    assert found["tokens"] == found["words"] == sum(len(line.split()) + 1 for line in lines)
    assert found["characters"] == sum(len(line) + 1 for line in lines)
    assert math.isclose(bits["value"], total / found["characters"] / math.log(2))
    assert math.isclose(words["value"], total / found["words"])
    assert mixture["value"] <= 1.05 * min(own["value"], lowest)
    given = weft("evaluate", run, "--split", "valid", "--set", "mixture=0.5")
    assert "weight of KN5 0.5, as given" in given.out
    if kind != "language":
        answer = weft("evaluate", run, "--split", "valid", "--set", "cache=20")
        assert "decoding.cache: needs data.batches: stream" in refused(answer)
    if kind == "windows":
        assert "stride 2|" in weft("evaluate", run, "--split", "valid", "--set", "stride=2").unfolded


def test_without_the_training_text_there_is_no_baseline_and_no_mixture(tmp_path: Path) -> None:
    recipe = make(tmp_path, updates=1)
    assert weft("train", recipe, "--run", tmp_path / "run").code == 0
    (tmp_path / "train.txt").unlink()
    answer = weft("evaluate", tmp_path / "run", "--split", "valid", code=0)
    assert "no baseline because the training text that it counts is missing" in answer.unfolded
    assert "put it back, or leave mixture out" in refused(
        weft("evaluate", tmp_path / "run", "--split", "valid", "--set", "mixture=0.5")
    )


def test_pictures(run: Path, tmp_path: Path) -> None:
    plot = tmp_path / "report.png"
    answer = weft(
        "evaluate", run, "--split", "valid", "--set", "mixture=0.3", "--plot", plot, "--full", code=0
    )
    assert plot.stat().st_size > 5000 and "nats per token by how often" in answer.out
    answer = weft("predict", run, "--pictures", tmp_path / "looks", stdin=b"the cat\n\n", code=0)
    assert (tmp_path / "looks" / "1.png").stat().st_size > 3000 and "2 pictures" in answer.err


@pytest.mark.parametrize("kind", ["word", "character"])
def test_a_longer_line_than_the_context_and_unseen_characters_are_no_trouble(
    tmp_path: Path, kind: str
) -> None:
    recipe = make(tmp_path, kind=kind, batches="windows", updates=2)
    assert weft("train", recipe, "--run", tmp_path / "run").code == 0
    long = "the cat Ω sat " * 20
    answer = weft("predict", tmp_path / "run", stdin=long.encode())
    assert answer.code == 0 and len(answer.lines) == 1
    (tmp_path / "long.txt").write_text(long + "\n")
    answer = weft("evaluate", tmp_path / "run", "--data", tmp_path / "long.txt")
    assert answer.code == 0 and "unknown:20|" in answer.unfolded, answer.err


def test_the_last_part_of_a_file_validates(tmp_path: Path) -> None:
    recipe = make(tmp_path, kind="character", updates=1)
    recipe.write_text(recipe.read_text().replace("valid: valid.txt", "valid_share: 0.25"))
    assert weft("train", recipe, "--run", tmp_path / "run").code == 0
    report = tmp_path / "report.json"
    answer = weft("evaluate", tmp_path / "run", "--split", "valid", "--json", report)
    assert "train.txt[0.75:1]" in answer.out and "KN7, contexts over line ends" in answer.out
    whole = (tmp_path / "train.txt").read_text()
    assert json.loads(report.read_text())["characters"] == len(whole[int(0.75 * len(whole)) :])


def test_a_text_without_words_and_a_state_that_grows_are_refused(tmp_path: Path) -> None:
    recipe = make(tmp_path / "data")
    for text, sentence in ((b"", "the file is empty"), (b" \n\n", "only white space")):
        (tmp_path / "data" / "valid.txt").write_bytes(text)
        assert sentence in refused(weft("train", recipe, "--run", tmp_path / "run"))
    recipe.write_text(recipe.read_text().replace(RECURRENT, GPT))
    said = untouched(tmp_path, lambda: weft("train", recipe, "--run", tmp_path / "other"))
    assert "all that it has read, so it cannot be carried" in said and "data.batches: windows" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--beam", 3, "--temperature", 0.5],
            "temperature: applies to sampling, but the search is beam",
        ),
        (["--length-penalty", 0.5], "--length-penalty: applies to beam search, but the search is sample"),
        (["--beam", 1, "--nbest", 2], "raise beam to 2"),
        (["--alignments", "x"], "--alignments is not an option of the task language"),
    ],
)
def test_options_that_do_not_go_together(run: Path, options: list[object], sentence: str) -> None:
    assert sentence in refused(weft("predict", run, *options, stdin=b"the\n"))


@pytest.mark.parametrize(
    ("line", "kind"),
    [("one , two .", "space"), ("one, two.", "word")],
)
def test_init_sees_what_the_text_is_like(tmp_path: Path, line: str, kind: str) -> None:
    (tmp_path / "a: b.txt").write_text(f"{line}\n" * 20)
    answer = weft("init", "language", "--train", tmp_path / "a: b.txt", "-o", tmp_path / "new.yaml")
    assert f"vocabulary: {{kind: {kind}}}" in answer.out and "valid_share: 0.1" in answer.out
    small = "training.max_updates=1", "data.batch_rows=2"
    assert weft("train", tmp_path / "new.yaml", "--run", tmp_path / "run", *small).code == 0


def test_files_are_checked(tmp_path: Path) -> None:
    folder = write(tmp_path)
    good = weft("data", "check", "--task", "language", folder / "train.txt", folder / "valid.txt")
    assert good.code == 0 and "no problems found" in good.out
    (folder / "bad.txt").write_bytes(b"one\n\xff two\nthree \x02\nfour \xef\xbf\xbd\n")
    (folder / "none.txt").write_bytes(b" \n")
    (folder / "empty.txt").write_bytes(b"")
    bad = weft(
        "data", "check", "--task", "language", *(folder / f"{n}.txt" for n in ("bad", "none", "empty"))
    )
    assert bad.code == 1
    for sentence in (
        "bad.txt:2: not UTF-8 (byte 0xff",
        "bad.txt:3: U+0002 inside the line",
        "bad.txt:4: U+FFFD",
        "none.txt: expected text",
        "empty.txt: the file is empty",
    ):
        assert sentence in bad.out


def test_a_run_whose_recipe_has_earlier_names_of_settings_is_used_and_resumed(tmp_path: Path) -> None:
    run = copied(shared_run("language"), tmp_path)
    recipe = (run / "recipe.yaml").read_text("utf-8")
    assert "\n  batch_rows: 5\n" in recipe
    (run / "recipe.yaml").write_text(recipe.replace("\n  batch_rows: 5\n", "\n  rows: 5\n"))
    assert weft("predict", run, "--set", "max_tokens=3", stdin=b"the cat\n").code == 0
    for given in (run / "recipe.yaml", shared_run("language").parent / "toy" / "my.yaml"):
        answer = weft("train", given, "--run", run)
        assert answer.code == 0 and "training ended" in answer.out, answer.err


def test_a_cache_is_mixed_in(tmp_path: Path) -> None:
    recipe, run, text = make(tmp_path), tmp_path / "run", tmp_path / "other.txt"
    assert weft("train", recipe, "--run", run).code == 0
    text.write_text((tmp_path / "valid.txt").read_text())
    answer = weft("evaluate", run, "--split", "valid", "--set", "cache=20", "--set", "mixture=tuned", code=0)
    assert "of a mixture (the model, a cache of 20 tokens and KN5, weights of the cache " in answer.unfolded
    answer = weft("evaluate", run, "--data", text, "--set", "cache=20")
    assert "(the model and a cache of 20 tokens, weight of the cache " in answer.unfolded, answer.err
    assert "tuned on the validation text" in answer.unfolded
    answer = weft("predict", run, "--set", "cache=20", "--set", "mixture=0.2", stdin=b"the cat\n")
    assert answer.code == 0 and answer.out.startswith("the cat"), answer.err
    assert weft("train", recipe, "--run", run, "decoding.cache=20").code == 0
    said = refused(weft("export", run, "--to", "onnx", "--output", tmp_path / "exported"))
    assert "decoding.cache: --to onnx expects a search without it" in said
