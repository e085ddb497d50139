"""Checkpoints that JoeyNMT wrote become runs with its outputs.

The zip files of the folder joeynmt hold tiny models that JoeyNMT 2.3.0 trained on help texts that Weft
ships, and its own outputs. JoeyNMT's files no longer change, so the script that made them is in the history
only: git log -- tests/importing/kits/joeynmt/make.py
"""

import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from tests.commands.shell import weft
from tests.laws.members import close
from tests.shared import quick_first
from weft.errors import WeftError
from weft.importing.runs import import_run
from weft.run import LoadedRun, open_run
from weft.tasks.seq2seq.encoding import collate_pairs

HERE = Path(__file__).parent
LEADING = ("gru-words", "transformer-bpe")
CASES = sorted(HERE.glob("joeynmt/*.zip"), key=lambda path: path.stem not in LEADING)


class Imported(NamedTuple):
    """A run, and what the toolkit computes."""

    run: Path
    opened: LoadedRun
    expected: dict[str, Any]


@pytest.fixture(scope="module", params=quick_first({path.stem: path for path in CASES}, len(LEADING)))
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    folder = tmp_path_factory.mktemp("kit")
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(folder)
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    import_run(folder / expected["path"], folder / "run")
    return Imported(folder / "run", open_run(folder / "run", device="cpu"), expected)


def original(vocabulary: Any, numbers: list[int]) -> list[int]:
    """The toolkit's numbers, if the vocabulary keeps them."""
    return [vocabulary.order[number] for number in numbers]


@torch.no_grad()
def test_pieces_and_probabilities_are_joeynmt_s(imported: Imported) -> None:
    source, target = imported.opened.pipeline.source, imported.opened.pipeline.target
    model = imported.opened.model.eval()
    for row in imported.expected["rows"]:
        read, written = source.encode(row["source"]), target.encode(row["target"])
        if hasattr(source, "order"):
            assert original(source, read) == row["read"]
            assert original(target, written) == row["written"][:-1]
        batch = collate_pairs([read], [written])
        found = model.head(model.features(batch))[0].gather(1, batch.target_out[0][:, None])[:, 0]
        close(found.double(), torch.tensor(row["logp"], dtype=torch.float64), 1e-5)


@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_outputs_are_joeynmt_s(imported: Imported, search: str) -> None:
    expected = imported.expected
    options = {
        "search": search,
        "max_ratio": 0.0,
        "max_extra": expected["most"],
        **expected.get("search", {}),
    }
    options |= expected["beam"] if search == "beam" else {}
    opened = imported.opened
    translator = opened.pipeline.translator(opened.model, replace(opened.pipeline.decoding, **options))
    # a beam search that reaches the limit may choose between finished and cut texts in another way
    rows = [row for row in expected["rows"] if search == "greedy" or len(row["beam_ids"]) < expected["most"]]
    found = [next(translator.translate([row["source"]]))[0] for row in rows]
    other = [place for place, row in enumerate(rows) if found[place].text != row[search].strip()]
    if search == "beam":  # JoeyNMT's search goes past an end; then ours must be the better one by their score
        other = [place for place in other if not found[place].score > rows[place].get("beam_score", math.inf)]
        same = sum(one.text == row["beam"].strip() for one, row in zip(found, rows, strict=True))
        assert same >= 0.75 * len(rows) > 0
    assert [(found[place].text, rows[place][search]) for place in other] == []


def test_a_command_uses_it(imported: Imported) -> None:
    line = imported.expected["rows"][0]["source"] + "\n"
    assert len(weft("predict", imported.run, stdin=line.encode(), code=0).lines) == 1


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    with zipfile.ZipFile(HERE / "joeynmt" / "lstm-codes.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "checkpoint"


def test_normalised_text_has_no_space_at_its_ends(tmp_path: Path) -> None:
    """As JoeyNMT's tokenizer: NFKC, one space between words, none before a mark, none at either end."""
    with zipfile.ZipFile(HERE / "joeynmt" / "lstm-last.zip") as archive:  # of characters
        archive.extractall(tmp_path)
    config = tmp_path / "checkpoint" / "config.yaml"
    config.write_text(
        config.read_text("utf-8").replace("level: char", "level: char\n    normalize: true"), "utf-8"
    )
    import_run(tmp_path / "checkpoint", tmp_path / "run")
    pipeline = open_run(tmp_path / "run", device="cpu").pipeline
    for side in (pipeline.source, pipeline.target):
        plain = side.encode("a file, and more.")
        assert side.encode(" a file, and more.") == plain == side.encode("a file, and more. ")
        assert side.encode("\u3000a  \ufb01le , and more .  ") == plain


def test_an_encoder_reads_both_ways_if_nothing_is_said(checkpoint: Path, tmp_path: Path) -> None:
    config = checkpoint / "config.yaml"
    lines = config.read_text("utf-8").split("\n")
    silent = [line for line in lines if "bidirectional: true" not in line.lower()]
    assert len(silent) == len(lines) - 1
    config.write_text("\n".join(silent), "utf-8")
    import_run(checkpoint, tmp_path / "run")
    assert "bidirectional: true" in (tmp_path / "run" / "recipe.yaml").read_text("utf-8")


def refused(checkpoint: Path, said: str, **options: Any) -> None:
    with pytest.raises(WeftError, match=said):
        import_run(checkpoint, checkpoint.parent / "run", **options)
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["checkpoint", "expected.json"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("attention: luong", "attention: cosine", "attention: expected bahdanau or luong, got cosine"),
        ("rnn_type: lstm", "rnn_type: sru", "rnn_type: expected gru or lstm"),
        ("num_layers: 2", "num_layers: 3", r"7\.ckpt: .* tensors are missing \(decoder\.rnn"),
        ("num_layers: 2", "num_layers: 1", r"7\.ckpt: .* tensors are not part of the model"),
        ("num_layers: 2", "num_layers: many", "num_layers: expected a number of at least 0, got many"),
        ("hidden_size: 8", "hidden_size: 9", r"a different model from the recipe \(decoder\.attention"),
        (
            "hidden_size: 8",
            "hidden_size: 3000000",
            r"decoder\.attention\.score.* do these settings belong",
        ),
        (
            "dropout: 0.1",
            "dropout: 7",
            r"checkpoint: model\.\S*dropout: expected a number from 0 to below 1, got 7",
        ),
        ("level: bpe", "level: pixel", "level: expected word or char or bpe"),
        ("lang: en", "language: en", "give it with --source"),
        ("model:\n", "models:\n", "config.yaml: expected a table 'model'"),
    ],
)
def test_settings_that_do_not_fit_are_named(checkpoint: Path, old: str, new: str, said: str) -> None:
    config = checkpoint / "config.yaml"
    content = config.read_text("utf-8")
    assert old in content
    config.write_text(content.replace(old, new), "utf-8")
    refused(checkpoint, said)


def test_files_that_are_missing_or_damaged_are_named(checkpoint: Path) -> None:
    codes = (checkpoint / "codes.txt").read_bytes()
    (checkpoint / "codes.txt").unlink()
    refused(checkpoint, r"expected codes\.txt in it, got no such file")
    (checkpoint / "codes.txt").write_bytes(b"#version: 0.1\na b\n")
    refused(checkpoint, r"codes\.txt:1: expected codes of version 0\.2, got 0\.1")
    (checkpoint / "codes.txt").write_bytes(b"#version: 0.2\na b\nabc\n")
    refused(checkpoint, r"codes\.txt:3: expected two pieces")
    (checkpoint / "codes.txt").write_bytes(codes)
    words = (checkpoint / "trg_vocab.txt").read_text("utf-8")
    (checkpoint / "trg_vocab.txt").write_text(f"{words}more\n", "utf-8")
    refused(checkpoint, r"does it belong to this model\?")
    (checkpoint / "trg_vocab.txt").write_text(words.replace("<unk>", "unknown"), "utf-8")
    refused(checkpoint, "is it a vocabulary of JoeyNMT")
    (checkpoint / "trg_vocab.txt").unlink()
    refused(checkpoint, r"expected trg_vocab\.txt in it")
    (checkpoint / "trg_vocab.txt").write_text(words, "utf-8")
    weights = (checkpoint / "7.ckpt").read_bytes()
    (checkpoint / "7.ckpt").write_bytes(weights[: len(weights) // 2])
    refused(checkpoint, r"7\.ckpt: expected a file of torch\.save")
    (checkpoint / "7.ckpt").write_bytes(weights)
    refused(checkpoint, "expected one file for both sides, or two, got 3", subwords=(Path("a"),) * 3)


def test_a_run_that_is_there_stays(checkpoint: Path) -> None:
    (checkpoint.parent / "run").mkdir()
    with pytest.raises(WeftError, match="already exists"):
        import_run(checkpoint, checkpoint.parent / "run")
    assert not list((checkpoint.parent / "run").iterdir())


def test_what_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    with pytest.raises(WeftError, match="no such file or directory; name a checkpoint"):
        import_run(tmp_path / "missing", tmp_path / "run")
    (tmp_path / "some.pt").write_bytes(b"some bytes")
    with pytest.raises(WeftError, match=r"or a checkpoint of JoeyNMT, .*Marian; weft import --help says"):
        import_run(tmp_path / "some.pt", tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["some.pt"]
