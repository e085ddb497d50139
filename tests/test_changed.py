"""CI finds the slow tests that belong to a change."""

from tests.changed import folders_of


def test_each_package_leads_to_its_tests() -> None:
    files = ["weft/nn/cells/lstm.py", "weft/train/loop.py", "recipes/translate/help.yaml", "README.md"]
    assert {path.name for path in folders_of(files)} == {"laws", "oracles", "nn", "train", "test_recipes.py"}
    assert {path.name for path in folders_of(["weft/masks.py", "tests/data/test_audio.py"])} == {
        "test_masks.py",
        "data",
    }
