"""Taggers: the sentences of a document, a paragraph or a speaker stay in one part of the split."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import refused, weft
from weft.errors import ConfigError, DataError
from weft.tasks.tag.data import TagData
from weft.tasks.task import SPLITS

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


@pytest.mark.parametrize(
    "settings", [{}, {"split_seed": 3}, {"group": "newdoc"}, {"group": "newdoc", "split_seed": 2}]
)
def test_every_sentence_is_tested_in_one_fold_and_is_then_in_no_other_part(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    path = write(tmp_path / "train.conllu", [1, 7, 2, 3, 5, 2, 3, 4, 3, 2, 5])
    whole = sorted(one.forms[0] for one in TagData(train=str(path), valid="x").sentences("train"))
    tested: list[str] = []
    for fold in range(3):
        data = TagData(train=str(path), folds=3, fold=fold, hold_out=4, **settings)
        parts = {split: [one.forms[0] for one in data.sentences(split)] for split in SPLITS}
        assert sorted(chain(*parts.values())) == whole and 11 <= len(parts["test"]) <= 14
        if "group" in settings:
            documents = [{word.split(".")[0] for word in words} for words in parts.values()]
            assert sum(map(len, documents)) == 11
        by = " by newdoc" if "group" in settings else ""
        seed = f" (split seed {settings['split_seed']})" if "split_seed" in settings else ""
        assert data.describe("test") == f"train.conllu fold {fold} of 3{seed}{by} upos"
        tested += parts["test"]
    assert sorted(tested) == whole


def test_folds_leave_a_validation_file_alone(tmp_path: Path) -> None:
    path, other = write(tmp_path / "train.conllu", [5, 6]), write(tmp_path / "dev.conllu", [3])
    data = TagData(train=str(path), valid=str(other), folds=2)
    assert [len(list(data.sentences(split))) for split in ("train", "valid", "test")] == [5, 3, 6]
    with pytest.raises(DataError, match="at least 3 values of newdoc"):
        list(TagData(train=str(path), folds=3, hold_out=4, group="newdoc").sentences("test"))


def test_a_missing_comment_or_seed_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "train.conllu", [20, 17])
    for group, line in (("newpar", 1), ("genre", 1)):
        with pytest.raises(DataError, match=rf"train\.conllu:{line}: expected the comment # {group}"):
            split(path, group=group)
    path.write_text(path.read_text().replace("# speaker = Ann\n1\t1.3\t", "1\t1.3\t"))
    with pytest.raises(DataError, match=r"train\.conllu:\d+: expected the comment # speaker = \.\.\."):
        split(path, group="speaker")
    with pytest.raises(ConfigError, match="group: needs hold_out or folds"):  # as all that splits.py checks
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
    weft("train", recipe, "--run", tmp_path / "run", "training.max_epochs=1", code=0)
    path.write_text(path.read_text().replace("newdoc", "document"))
    said = refused(weft("train", recipe, "--run", tmp_path / "other"))
    assert "train.conllu:1: expected the comment # newdoc" in said
