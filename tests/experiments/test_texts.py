"""Language models and translators at equal CPU seconds: scores are right, and the page follows from runs."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from weft.nn.heads.head import Loss

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
LETTERS = "to be, or not to be\n" * 400


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, whose neighbours are text_data.py, texts_page.py and equal.py."""
    monkeypatch.syspath_prepend(FOLDER)
    import texts

    return texts


@pytest.fixture
def data(texts: ModuleType) -> ModuleType:
    """text_data.py, next to it."""
    import text_data

    return text_data


class Uniform(nn.Module):
    """Knows nothing: every symbol has the same probability; remembers what it was asked."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.symbols, self.asked = symbols, torch.zeros(0, dtype=torch.int64)

    def loss(self, batch: Any) -> Loss:
        self.asked = torch.cat([self.asked, batch.target_out[batch.target_mask]])
        count = batch.target_mask.sum()
        return Loss(count * math.log(self.symbols), count)


@pytest.mark.parametrize("letters", [17, 64, 101])
def test_windows_score_every_symbol_once_and_in_order(data: ModuleType, letters: int) -> None:
    text, length = torch.arange(letters), 8
    scored = torch.cat([one.target_out[one.target_mask] for one in data.windows(text, length, rows=3)])
    assert scored.tolist() == list(range(1, 1 + data.counted(text, length)))
    assert letters - length // 2 <= data.counted(text, length) < letters


def test_a_model_that_knows_nothing_has_the_bits_of_a_uniform_letter(
    data: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "input.txt").write_text(LETTERS, "utf-8")
    found = data.shakespeare(tmp_path / "input.txt")
    assert found.symbols == len(set(LETTERS)) + 1
    assert len(found.text.train) == len(LETTERS) * 90 // 100 and len(found.text.valid) == len(LETTERS) // 20
    assert found.scores(Uniform(16)) == {"bits": 4.0}


def test_counts_of_single_letters_have_their_entropy_and_longer_ones_know_the_line(
    data: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "input.txt").write_text(LETTERS, "utf-8")
    found = data.shakespeare(tmp_path / "input.txt")
    shares = np.array([LETTERS.count(letter) for letter in set(LETTERS)]) / len(LETTERS)
    assert found.grams(1)["bits"] == pytest.approx(-(shares * np.log2(shares)).sum(), rel=3e-3)
    assert 0 < found.grams(5)["bits"] < 0.2


def test_perplexity_is_of_words_and_line_ends(data: ModuleType, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(data, "PIECES", 12)
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text(" a bad cab \n\n" * 100, "utf-8")
    found = data.wikitext(tmp_path)
    model = Uniform(found.symbols)
    pieces = len(found.text.valid) / 100  # of a line, its end included
    words = 3 + 1
    expected = found.symbols ** (pieces / words)
    assert found.scores(model)["perplexity"] == pytest.approx(expected, rel=0.02)
    assert len(model.asked) == data.counted(found.text.valid, 64)


def pairs(folder: Path, lines: int = 60) -> Path:
    for split in ("train", "val"):
        for language, words in (("en", "a dog runs"), ("de", "ein Hund läuft")):
            (folder / f"{split}.{language}").write_text(f"{words}\n" * lines, "utf-8")
    return folder


@pytest.mark.slow
def test_a_second_call_measures_only_what_is_missing_and_the_page_says_what_was_found(
    texts: ModuleType, data: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import texts_page

    for name, place in (("PAGE", tmp_path / "texts.md"), ("PICTURE", tmp_path / "texts")):
        monkeypatch.setattr(texts_page, name, place)
    monkeypatch.setattr(data, "PIECES", 24)
    monkeypatch.setattr(texts_page, "FEWEST", 1)
    (tmp_path / "input.txt").write_text(LETTERS, "utf-8")
    file = tmp_path / "runs.jsonl"
    common = ["texts.py", "--runs", str(file)]
    asked = [*common, "--seconds", "0.1", "--parameters", "9000", "--seeds", "1"]
    asked += ["--shakespeare", str(tmp_path / "input.txt"), "--multi30k", str(pairs(tmp_path))]
    for models in (["lstm"], ["lstm", "transformer", "mamba", texts.PLAIN, "5-gram"]):
        monkeypatch.setattr(sys, "argv", [*asked, "--models", *models])
        texts.main()
    runs = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [one["model"] for one in runs[:2]] == ["lstm", "lstm"] and len(runs) == 9
    assert [one["text"] for one in runs if one["model"] == "5-gram"] == ["shakespeare"]
    runs = [one for one in runs if one["model"] != "5-gram"]
    assert all(one["decoder"] <= 9000 and one["updates"] > 0 for one in runs)
    assert all(one.get("bits", 1) > 0 and 0 <= one.get("bleu", 0) <= 100 for one in runs)
    monkeypatch.setattr(sys, "argv", [*common, "--write"])
    texts.main()
    page = (tmp_path / "texts.md").read_text("utf-8")
    assert "0.1 CPU seconds of training a run; seeds 11." in page
    assert f"Processor: {runs[0]['machine']}, one" in page
    assert "Not measured yet: Subwords: WikiText-2." in page
    assert page.count("Kneser-Ney") == 1 and "Bits per letter: 5-gram 0.1023 (" in page
    assert (tmp_path / "texts.png").stat().st_size > 1000


def test_a_difference_is_judged_by_its_paired_interval(texts: ModuleType) -> None:
    from texts_page import against

    other = {1: 2.0, 2: 2.2, 3: 2.1}
    lower = {seed: value - 0.5 + seed / 100 for seed, value in other.items()}
    assert against(lower, other, less=True).endswith("**better**")
    assert against(lower, other, less=False).endswith("**worse**")
    assert against({1: 2.1, 2: 2.1, 3: 2.1}, other, less=True).endswith("undecided")
    assert against({1: 1.0, 2: 1.0}, other, less=True) == ""


def test_every_cell_fits_its_decoder(texts: ModuleType, data: ModuleType) -> None:
    running = data.Running(data.Text(torch.arange(40), torch.arange(40), 41), 8, 2, 1, "bits")
    batch = running.draw(np.random.default_rng(1))
    for name in texts.NAMES:
        assert torch.isfinite(texts.model(name, running, 8).loss(batch).total), name


def test_processors_are_named_with_their_models_if_there_are_several(texts: ModuleType) -> None:
    runs = [{"machine": "one", "model": "gru"}, {"machine": "one", "model": "gru"}]
    assert texts.machines(runs) == "one"
    assert texts.machines([*runs, {"machine": "two", "model": "delta"}]) == ("one (for gru); two (for delta)")
