"""`training.scale: gpu` makes updates large enough for a GPU; no GPU is needed to test the numbers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from weft import machine
from weft.config import dump, read_recipe
from weft.run.training import CheckedRecipe, begin_run, check_recipe, gpu_overrides
from weft.tasks.init import NewRecipe
from weft.train.training_state import too_small
from weft.tune.recipes import for_this_machine


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
    assert for_this_machine(NewRecipe(text)).recipe == text
    monkeypatch.setattr(machine, "has_gpu", lambda: True)
    assert "\ntraining:\n  scale: gpu " in for_this_machine(NewRecipe(text)).recipe


def test_a_gpu_with_small_updates_is_told() -> None:
    def said(tokens: int, device: str, count: int = 1, scale: str = "cpu") -> str:
        settings = SimpleNamespace(scale=scale, cuda_graphs=False)
        processes = SimpleNamespace(count=count)
        session: Any = SimpleNamespace(device=torch.device(device), processes=processes, settings=settings)
        return too_small(tokens, session)

    assert "1,200 target tokens" in said(1_200, "cuda") and "training.scale: gpu" in said(1_200, "cuda")
    assert "1,500 target tokens for each" in said(12_000, "cuda", count=8)
    assert said(1_200, "cpu") == said(16_000, "cuda") == said(512, "cuda", scale="gpu") == ""


def plain(data: dict[str, Any], **training: Any) -> dict[str, Any]:
    return {"data": data, "training": {"accumulate": 1, "optimiser": {"lr": 0.001}, **training}}


@pytest.mark.parametrize(
    ("data", "key", "size"),
    [
        (
            {"batch_rows": 20, "length": 35},
            "batch_rows",
            458,
        ),  # 458 x 35 = 16,030; 457 rows have 15,995 tokens
        ({"batch_frames": 4000, "batch_rows": 0}, "batch_frames", 64_000),
        ({"batch_tokens": 900, "batch_rows": 30}, "batch_tokens", 16_000),
    ],
)
def test_what_was_enlarged_is_large_enough(data: dict[str, Any], key: str, size: int) -> None:
    found = dict(one.split("=") for one in gpu_overrides(plain(data)))
    assert int(found[f"data.{key}"]) == size
    assert gpu_overrides(plain({**data, key: size})) == []


def test_settings_that_count_updates_shrink() -> None:
    counted = {"max_updates": 800, "monitors": 40, "schedule": {"warmup": 100}}
    fed = {
        "updates": ({"use": "linear", "updates": 400}, 50),
        "k": ({"use": "exponential", "k": 0.9}, 0.9**8),
    }
    for name, (feeding, value) in fed.items():
        changes = gpu_overrides(plain({"batch_tokens": 2000}, **counted, feeding=feeding))
        found = {key: float(number) for key, number in (one.split("=") for one in changes)}
        assert found[f"training.feeding.{name}"] == pytest.approx(value, rel=1e-5)
        assert [found[f"training.{one}"] for one in ("max_updates", "monitors")] == [100, 5]
    sigmoid = {"use": "inverse_sigmoid", "k": 300.0}
    assert "training.feeding.k=37.5" in gpu_overrides(plain({"batch_tokens": 2000}, feeding=sigmoid))
    assert not any("monitors" in one for one in gpu_overrides(plain({"batch_tokens": 2000}, monitors=True)))


def test_batches_for_a_gpu_on_a_cpu_are_spoken_of(tmp_path: Path) -> None:
    copied = tmp_path / "my.yaml"
    copied.write_text(Path("recipes/memory/adding-lstm.yaml").read_text("utf-8"))
    recipe = read_recipe(copied, ["training.scale=gpu", "training.device=cpu"])
    first, second = begin_run(tmp_path / "run", recipe).note.splitlines()
    assert "data.batch_rows=80" in first and "slow on a CPU" in second
