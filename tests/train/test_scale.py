"""`training.scale: gpu` makes updates large enough for a GPU; no GPU is needed to test the numbers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from weft import machine
from weft.commands.init import for_this_machine
from weft.config import dump, read_recipe
from weft.run.training import CheckedRecipe, check_recipe
from weft.train.training_state import too_small


def checked(recipe: str, *changes: str) -> CheckedRecipe:
    return check_recipe(read_recipe(recipe, changes))


def test_a_recipe_has_its_own_numbers_by_default() -> None:
    plain = checked("recipes/translate/multi30k-transformer-tiny.yaml").plain
    assert (plain["data"]["batch_tokens"], plain["training"]["accumulate"]) == (1000, 2)


def test_batches_grow_eightfold_and_the_rate_by_the_square_root() -> None:
    name = "recipes/translate/multi30k-transformer-tiny.yaml"
    before, after = checked(name).plain, checked(name, "training.scale=gpu")
    training, old = after.plain["training"], before["training"]
    assert after.plain["data"]["batch_tokens"] == 16_000 and training["accumulate"] == 1
    assert after.settings.optimiser.lr == pytest.approx(old["optimiser"]["lr"] * 8**0.5, rel=1e-2)
    warmup = old["schedule"].get("warmup")
    assert not warmup or training["schedule"]["warmup"] == round(warmup / 8)
    assert "data.batch_tokens=16000" in after.note
    assert after.plain["model"] == before["model"]


@pytest.mark.parametrize(
    ("recipe", "key", "least"),
    [
        ("language/help-gpt", "batch_rows", 16_000),
        ("images/moving-local", "batch_rows", 512),
        ("tag/ewt-bilstm", "batch_tokens", 16_000),
        ("forecast/waves-lstm", "batch_rows", 512),
    ],
)
def test_every_kind_of_batch_grows(recipe: str, key: str, least: int) -> None:
    data = checked(f"recipes/{recipe}.yaml", "training.scale=gpu").plain["data"]
    assert least <= data[key] * (data.get("length", 1) if key == "batch_rows" else 1) < 1.2 * least


def test_a_run_of_its_recipe_keeps_the_numbers(tmp_path: Path) -> None:
    first = checked("recipes/translate/help-demo.yaml", "training.scale=gpu")
    (tmp_path / "recipe.yaml").write_text(dump(first.plain))
    again = checked(str(tmp_path / "recipe.yaml"))
    assert again.plain == first.plain and not again.note


def test_large_batches_stay_as_they_are() -> None:
    found = checked("recipes/translate/help-demo.yaml", "training.scale=gpu", "data.batch_tokens=40000")
    assert found.plain["data"]["batch_tokens"] == 80_000  # two batches become one
    assert found.settings.optimiser == checked("recipes/translate/help-demo.yaml").settings.optimiser


def test_weft_init_writes_a_recipe_for_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path("recipes/translate/help-demo.yaml").read_text("utf-8")
    monkeypatch.setattr(machine, "has_gpu", lambda: False)
    assert for_this_machine(text) == text
    monkeypatch.setattr(machine, "has_gpu", lambda: True)
    assert "\ntraining:\n  scale: gpu " in for_this_machine(text)


def test_a_gpu_with_small_updates_is_told() -> None:
    def said(tokens: int, device: str) -> str:
        session: Any = SimpleNamespace(device=torch.device(device), processes=SimpleNamespace(count=1))
        return too_small(tokens, session)

    assert "1,200 target tokens" in said(1_200, "cuda") and "training.scale: gpu" in said(1_200, "cuda")
    assert said(1_200, "cpu") == said(16_000, "cuda") == ""
