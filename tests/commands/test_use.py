"""The main job from files to translations, as a user types it: N lines in are N lines out, in order."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch

from tests.commands.corpus import WORDS, translated, write
from tests.commands.shell import evaluated, refused, weft
from tests.shared import copied

TEXT = "alpha beta\ngamma\ntheta zeta eta\n"


def test_training_says_what_it_left_and_what_comes_next(trained: Path, tmp_path: Path) -> None:
    run = copied(trained, tmp_path)
    again = weft("train", trained.parent / "toy" / "toy.yaml", "--run", run, code=0)
    assert re.search(r"400 updates \(max_updates\).* bleu \d+\.\d+", again.out)
    for command in ("evaluate", "predict", "show"):
        assert f"weft {command} {run}" in again.out
    made = {path.name for path in run.iterdir()}
    assert {"recipe.yaml", "run.json", "model.safetensors", "metrics.jsonl", "README.md"} <= made
    assert {"tokenizer.source.json", "tokenizer.target.json", "checkpoints", "checkpoints.json"} <= made


def test_predicting_runs_nothing_of_the_training(trained: Path) -> None:
    code = (
        "import sys\nfrom weft.cli import main\n"
        f"sys.argv = ['weft', 'predict', {str(trained)!r}]\n"
        "try:\n    main()\nexcept SystemExit as leave:\n    assert not leave.code\n"
        "print('loaded:', *[name for name in sys.modules if name.startswith('weft.train')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=TEXT, capture_output=True, text=True, check=True
    )
    assert done.stdout == translated_lines(TEXT) + "loaded:\n"


def translated_lines(text: str) -> str:
    return "".join(translated(line) + "\n" for line in text.splitlines())


def test_evaluate_prints_signed_scores_baselines_and_lengths(trained: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "out.txt", tmp_path / "lengths.png"
    answer, figures = evaluated(trained, "--full", "--output", out, "--plot", plot)
    assert "17 pairs, beam 3, length penalty 1" in answer.out
    wanted = ("BLEU", "chrF2", "METEOR", "version:", "perplexity", "baseline: source copied", "<=10", ">30")
    assert [shown for shown in wanted if shown not in answer.out] == []
    outputs = out.read_text("utf-8").splitlines()
    sources = (trained.parent / "toy" / "test.xx").read_bytes()
    assert outputs == weft("predict", trained, stdin=sources).lines
    right = [translated(source) for source in sources.decode().splitlines()]
    assert sum(output == wanted for output, wanted in zip(outputs, right, strict=True)) >= 12
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert figures["scores"]["BLEU"]["value"] == pytest.approx(bleu(outputs, right))
    assert figures["scores"]["BLEU"]["baselines"]["source copied"] == 0
    assert 1 <= figures["scores"]["perplexity"]["value"] < 1.5
    words = [len(" ".join(side).split()) for side in (outputs, right)]
    assert figures["length_ratio"] == pytest.approx(words[0] / words[1])


def bleu(outputs: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(outputs, [references]).score


def test_evaluate_takes_other_files_and_another_search(trained: Path, tmp_path: Path) -> None:
    write(tmp_path, "other", 5, 7)
    answer = weft("evaluate", trained, "--data", tmp_path / "other", "--beam", 1, code=0)
    assert f"{tmp_path / 'other'} xx-yy, 5 pairs, greedy" in answer.unfolded
    assert "13 pairs" in weft("evaluate", trained, "--split", "valid").out


def test_predict_reads_a_file_and_shows_scores_of_the_n_best(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(TEXT)
    best = weft("predict", trained, tmp_path / "in.txt")
    assert best.out == translated_lines(TEXT)
    answer = weft("predict", trained, tmp_path / "in.txt", "--nbest", 3, "--scores")
    rows = [line.split("\t") for line in answer.lines]
    assert len(rows) == 3 * 3
    scores = np.array([float(score) for score, _ in rows]).reshape(3, 3)
    assert (np.diff(scores) <= 0).all() and (scores <= 0).all()
    assert [text for _, text in rows[::3]] == best.lines
    assert all(len({text for _, text in rows[at : at + 3]}) == 3 for at in (0, 3, 6))


def test_more_answers_than_the_recipe_keeps_widen_the_beam(trained: Path) -> None:
    assert len(weft("predict", trained, "--nbest", 4, stdin=b"alpha\n").lines) == 4


def test_samples_follow_the_seed(trained: Path) -> None:
    def drawn(seed: int) -> list[str]:
        text = b"alpha beta gamma\n" * 12
        options = ("--sample", "--temperature", 5, "--top-k", 6, "--top-p", 0.99, "--seed", seed)
        return weft("predict", trained, *options, stdin=text, code=0).lines

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 6
    assert set(" ".join(drawn(1)).split()) <= set(WORDS.values())


def test_alignments_and_pictures_show_where_it_looked(trained: Path, tmp_path: Path) -> None:
    pharaoh, pictures = tmp_path / "out.pharaoh", tmp_path / "new" / "pictures"
    asked = ("--alignments", pharaoh, "--pictures", pictures, "--max-pictures", 2)
    text = b"alpha beta gamma\n\ntheta zeta\niota\n"
    answer = weft("predict", trained, *asked, stdin=text, code=0)
    assert f"2 pictures: {pictures}" in answer.err
    aligned = pharaoh.read_text().split("\n")
    assert [len(line.split()) for line in aligned] == [3, 0, 2, 1, 0]
    assert all(re.fullmatch(r"(\d+-\d+ ?)*", line) for line in aligned)
    assert sorted(path.name for path in pictures.iterdir()) == ["1.png", "1.svg", "3.png", "3.svg"]
    assert "gamma" in (pictures / "1.svg").read_text("utf-8")


def test_show_prints_the_whole_recipe_and_the_validations(trained: Path) -> None:
    answer = weft("show", trained, code=0)
    for shown in ("batch_tokens: 300", "max_length: 128", "clip_norm: 1.0", "update      200", "<- best"):
        assert shown in answer.out
    assert re.search(r"checkpoints: step-\d{8}", answer.out)
    assert re.search(r"  all +[\d,]+\n", answer.out)


def test_the_model_card_holds_scores_and_recipe(trained: Path) -> None:
    card = (trained / "README.md").read_text("utf-8")
    assert "xx to yy" in card and "seed 1" in card
    assert re.search(r"\| bleu \| \d+\.\d{4} \|", card)
    assert f'weft.load("{trained}")' in card


def test_doctor_knows_what_an_update_costs() -> None:
    """On a CPU; what it prints of a GPU was not seen on one."""
    from weft.commands.doctor import _update

    (cost,) = _update(torch.device("cpu"), size=64, num_layers=1, rows=2, steps=3)
    shown = r"Transformer 1 x 64, update of 2 x 3 in (bfloat16|float32): [\d.]+ ms, [\d,]+ tokens/s"
    assert re.fullmatch(shown, cost)


@pytest.mark.slow
def test_doctor_measures_this_machine() -> None:
    answer = weft("doctor", code=0)
    for shown in ("torch 2.", "threads: torch uses 1", "OMP_WAIT_POLICY=", "GFLOP/s", "token stores:"):
        assert shown in answer.out


def test_data_check_finds_bytes_that_are_no_text_and_says_so_by_its_code(tmp_path: Path) -> None:
    write(tmp_path, "train", 30, 3)
    files = tmp_path / "train.xx", tmp_path / "train.yy"
    files[1].write_bytes(files[1].read_bytes().replace(b"\n", b"\xff\n", 1))
    answer = weft("data", "check", *files, code=1)
    assert f"{files[1]}:1: not UTF-8" in answer.out and "lines that are not UTF-8 text: 1" in answer.out


def test_a_line_is_split_into_sentences_and_its_white_space_kept(trained: Path) -> None:
    pytest.importorskip("sentencex", reason="sentencex is not installed: pip install -e .[documents]")
    parts = ["Alpha beta.", "Gamma eta!", "Delta?"]
    alone = weft("predict", trained, "--nbest", 2, stdin="".join(f"{one}\n" for one in parts).encode()).lines
    text = f" \t{parts[0]}  {parts[1]} {parts[2]} \n\n"
    found = weft("predict", trained, "--split-sentences", "--nbest", 2, stdin=text.encode(), code=0)
    ranks = [alone[::2], alone[1::2]]
    assert found.lines == [*(f" \t{one[0]}  {one[1]} {one[2]} " for one in ranks), "", ""]
    assert "--split-sentences" in refused(weft("predict", trained, "--split-sentences", "--prefix", "uno"))


def test_alignments_of_sentences_are_counted_through_the_line(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("sentencex", reason="sentencex is not installed: pip install -e .[documents]")
    file = tmp_path / "out.pharaoh"
    options = ("--split-sentences", "--alignments", file)
    answer = weft("predict", trained, *options, stdin=b"beta gamma! Eta alpha\n")
    pairs = [tuple(map(int, pair.split("-"))) for pair in file.read_text().split()]
    assert [target for _, target in pairs] == list(range(len(answer.lines[0].split())))
    first = len(weft("predict", trained, stdin=b"beta gamma!\n").lines[0].split())
    assert all((source < 2) == (target < first) for source, target in pairs)


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        (b"\n", [""]),
        (b"alpha", ["uno"]),
        (b"alpha\n\n\nbeta\n", ["uno", "", "", "due"]),
        (b"alpha\r\n\r\nbeta\r\n", ["uno", "", "due"]),
        (b"\xef\xbb\xbfalpha\nbeta", ["uno", "due"]),
        ("alpha\u2028beta\ngamma\n".encode(), ["uno due", "tre"]),
        ("alpha\x0cbeta\x85gamma\n".encode(), ["uno due tre"]),
        (b"  \t \n alpha   beta \n", ["", "uno due"]),
    ],
    ids=["empty", "no-end", "gaps", "crlf", "bom", "u2028", "form-feed", "spaces"],
)
def test_as_many_lines_come_out(trained: Path, text: bytes, outputs: list[str]) -> None:
    answer = weft("predict", trained, stdin=text, code=0)
    assert answer.out == "".join(f"{line}\n" for line in outputs)


@pytest.mark.parametrize("options", [("--nbest", 3), ("--nbest", 3, "--sample")])
def test_an_empty_line_has_as_many_answers_as_the_others(trained: Path, options: tuple[object, ...]) -> None:
    answer = weft("predict", trained, *options, stdin=b"alpha\n\nbeta\n")
    assert len(answer.lines) == 9
    assert answer.lines[3:6] == ["", "", ""]


def test_more_lines_than_a_window_keep_their_order(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.tasks.seq2seq.translator import Translator

    monkeypatch.setattr(Translator, "piped", 5)
    words = ["alpha", "", "beta gamma", "delta", "zeta eta theta", "iota"] * 4
    one_by_one = [weft("predict", trained, stdin=f"{word}\n".encode()).out for word in words[:6]] * 4
    assert weft("predict", trained, stdin="\n".join(words).encode()).out == "".join(one_by_one)
