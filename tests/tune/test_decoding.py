"""weft tune: search settings are tried on the trained model, as weft evaluate scores them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.commands import corpus
from tests.commands.shell import weft
from tests.tune.searches import needs_optuna
from weft.config import read_recipe
from weft.errors import ConfigError
from weft.metrics.accuracy import Accuracy
from weft.metrics.scored import scored
from weft.run import open_run
from weft.tune import decoding
from weft.tune.decoding import DecodingTrials, best_of, key, tried_of
from weft.tune.plan import plan

SPACE = "training.optimiser.lr: [0.01, 0.02]\ndecoding.beam: [1, 2]\ndecoding.length_penalty: [0.0, 1.0]\n"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    return corpus.make(tmp_path / "toy")


@pytest.mark.slow
@needs_optuna
def test_every_value_is_scored_once_as_evaluate_does(recipe: Path, tmp_path: Path) -> None:
    space, study = tmp_path / "space.yaml", tmp_path / "study"
    short = "training.max_updates=30", "training.validate_every=30"
    words = ["tune", recipe, *short, "--space", space, "--study", study, "--trials", 2, "--seeds", 1]
    answer = weft(*words, code=0)
    (path,) = study.glob("retrained/*/seed-1/decoding.json")
    tried = tried_of(path.parent)
    own = read_recipe(study / "best.yaml").plain()["decoding"]
    beams = {value for name in tried.scores for value in [name.split()[0].rpartition("=")[2]]}
    assert tried.metric == "BLEU" and beams == {"1", "2", "3"}  # 3 is the recipe's
    assert len(tried.scores) in (4, 5)
    for settings, score in tried.scores.items():
        opened = open_run(path.parent, changes=settings.split())
        assert opened.pipeline.evaluate(opened.model, split="valid").scores[0].value == score
    best = max(tried.scores.values())
    assert (
        tried.scores[key({f"decoding.{name}": own.get(name, 1.0) for name in ("beam", "length_penalty")})]
        == best
    )
    assert "search settings of trial" in answer.out and f"{best:.4g}" in answer.out
    before = path.stat().st_mtime_ns
    again = weft(*words)
    assert again.out == answer.out and path.stat().st_mtime_ns == before and "decoding" not in again.err


def test_search_settings_are_scored_on_the_validation_part(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, parts = plan(recipe, (), tmp_path / "study", space=tmp_path / "space.yaml"), []
    study = SimpleNamespace(plan=ready, best=lambda: SimpleNamespace(number=3))
    weights = ready.trial(3) / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"")

    def evaluate(*, split: str = "test") -> SimpleNamespace:
        parts.append(split)
        return SimpleNamespace(scores=[scored(Accuracy(), ["a", "b"], ["a", "b"])])

    opened = SimpleNamespace(evaluate=evaluate)
    monkeypatch.setattr(decoding, "open_run", lambda run, **_: opened)
    decoding.search_decoding(study, lambda said: None)
    assert parts == ["valid"] * len(tried_of(weights.parent).scores) and len(parts) > 2


def test_a_setting_changes_only_for_a_better_score(recipe: Path, tmp_path: Path) -> None:
    ready = plan(recipe, (), tmp_path / "study", space=tmp_path / "space.yaml")
    assert list(ready.decoding) == ["decoding.beam", "decoding.length_penalty"]
    assert list(ready.space) == ["training.optimiser.lr"]
    own = {"decoding.beam": 3, "decoding.length_penalty": 1.0}
    scores = {key(own): 7.0, key({**own, "decoding.beam": 1}): 7.0, key({**own, "decoding.beam": 2}): 6.0}
    assert best_of(ready, DecodingTrials("BLEU", True, scores), own, "decoding.beam") == own
    assert best_of(ready, DecodingTrials("WER", False, scores), own, "decoding.beam")["decoding.beam"] == 2
    assert "decoding.beam" in plan(recipe, (), tmp_path / "other").decoding
    assert not plan(recipe, ["decoding.search=sample"], tmp_path / "third").decoding
    (tmp_path / "space.yaml").write_text("training.optimiser.lr: [0.01]\ndecoding.beam: {low: 1, high: 5}\n")
    with pytest.raises(ConfigError, match=r"decoding\.beam: expected a list of values"):
        plan(recipe, (), tmp_path / "fourth", space=tmp_path / "space.yaml")
