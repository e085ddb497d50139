"""Taggers: the sentences of a document, a paragraph or a speaker stay in one part of the split."""

from pathlib import Path

import pytest

from tests.commands.shell import refused, weft
from weft.errors import ConfigError, DataError
from weft.tasks.tag.data import TagData

WORD = "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def write(path: Path, sizes: list[int]) -> Path:
    """Documents of so many sentences; every word is `document.sentence`."""
    text = ""
    for document, size in enumerate(sizes):
        for number in range(size):
            begin = f"# newdoc id = {document}\n" if number == 0 else ""
            text += f"{begin}# speaker = {'Ann' if document % 2 else 'Bo'}\n" + WORD.format(
                f"{document}.{number}"
            )
    path.write_text(text)
    return path


def split(path: Path, **settings: object) -> dict[str, set[str]]:
    data = TagData(train=path.name, folder=path.parent, hold_out=4, split_seed=1, **settings)  # type: ignore[arg-type]
    parts = {part: [one.forms[0] for one in data.sentences(part)] for part in ("train", "valid")}  # type: ignore[arg-type]
    assert len(parts["train"]) + len(parts["valid"]) == 37 and not {*parts["train"]} & {*parts["valid"]}
    return {part: {word.split(".")[0] for word in words} for part, words in parts.items()}


def test_a_document_is_in_one_part_and_each_part_has_its_share(tmp_path: Path) -> None:
    path = write(tmp_path / "train.conllu", [1, 7, 2, 3, 5, 2, 3, 4, 3, 2, 5])
    alone, grouped = split(path), split(path, group="newdoc")
    assert alone["train"] & alone["valid"] and not grouped["train"] & grouped["valid"]
    data = TagData(train=path.name, folder=tmp_path, hold_out=4, split_seed=1, group="newdoc")
    assert 8 <= len(list(data.sentences("valid"))) <= 10  # a quarter of 37
    assert (
        data.describe("valid") == "train.conllu (1 in 4 sentences, newdoc kept together, split seed 1) upos"
    )
    speakers = split(path, group="speaker")
    assert speakers["valid"] in ({"0", "2", "4", "6", "8", "10"}, {"1", "3", "5", "7", "9"})


def test_a_missing_comment_or_seed_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "train.conllu", [20, 17])
    for group, line in (("newpar", 1), ("genre", 1)):
        with pytest.raises(DataError, match=rf"train\.conllu:{line}: expected the comment # {group}"):
            split(path, group=group)
    path.write_text(path.read_text().replace("# speaker = Ann\n1\t1.3\t", "1\t1.3\t"))
    with pytest.raises(DataError, match=r"train\.conllu:\d+: expected the comment # speaker = \.\.\."):
        split(path, group="speaker")
    with pytest.raises(ConfigError, match="group: needs hold_out and split_seed"):
        TagData(train="x", valid="y", group="newdoc")
    words = tmp_path / "words.tsv"
    words.write_text("go\tVERB\n\nnow\tADV\n")
    with pytest.raises(DataError, match=r"words\.tsv:1: expected the comment # newdoc"):
        list(
            TagData(train=words.name, folder=tmp_path, hold_out=2, split_seed=1, group="newdoc").sentences(
                "valid"
            )
        )


def test_init_groups_by_document_and_the_recipe_trains(tmp_path: Path) -> None:
    path = write(tmp_path / "train.conllu", [2] * 20)
    recipe = tmp_path / "made.yaml"
    assert weft("init", "tag", "--train", path, "--output", recipe).code == 0
    assert "group: newdoc" in recipe.read_text()
    answer = weft("train", recipe, "--run", tmp_path / "run", "training.max_epochs=1")
    assert answer.code == 0, answer.err
    path.write_text(path.read_text().replace("newdoc", "document"))
    said = refused(weft("train", recipe, "--run", tmp_path / "other"))
    assert "train.conllu:1: expected the comment # newdoc" in said
