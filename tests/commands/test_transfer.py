"""Training from another run, its parts, rows and rates; other objectives; several texts in one training."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch
import yaml

from tests.commands import corpus, labelled
from tests.commands.corpus import stopped
from tests.commands.shell import refused, weft
from tests.shared import shared_run
from weft.config import read_recipe
from weft.run import open_run
from weft.store import weights
from weft.tasks.seq2seq.base import PairTraining
from weft.train.checkpoints import Checkpoints
from weft.train.schedules import ConstantSchedule, LinearSchedule
from weft.train.settings import TrainingSettings

ENCODER = "model.encoder={use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.1}"
START = ("validate_start=true", "max_updates=2", "validate_every=2", "metric=loss")


@pytest.fixture(scope="module")
def masked() -> Path:
    return shared_run("masked")


@pytest.fixture(scope="module")
def translator() -> Path:
    return shared_run("translate")


def classified(folder: Path, masked: Path, *changes: str) -> tuple[object, ...]:
    recipe = labelled.make_texts(folder / "toy")
    start = [f"training.start={masked}", *(f"training.{one}" for one in START)]
    return ("train", recipe, "--run", folder / "run", ENCODER, "model.embedding.size=16", *start, *changes)


def test_encoder_and_shared_rows_of_a_masked_model_begin_a_classifier(masked: Path, tmp_path: Path) -> None:
    answer = weft(*classified(tmp_path, masked, "training.start_parts=[embed, encoder]"), code=0)
    begun = Checkpoints(tmp_path / "run", print).load(0).weights
    other = weights.load(masked / "model.safetensors")
    for name, tensor in other.items():
        if name.startswith("predictor.encoder."):
            assert torch.equal(begun[name.removeprefix("predictor.")], tensor), name
    vocabularies = [open_run(path, device="cpu").pipeline for path in (tmp_path / "run", masked)]
    own, theirs = vocabularies[0].reader.vocabulary, vocabularies[1].vocabulary
    own, theirs = (each.pieces(range(len(each))) for each in (own, theirs))
    shared = set(own) & set(theirs)
    assert "▁a" in shared and len(shared) < len(own)
    assert f"{len(shared)} of {len(own)} rows, {len(own) - len(shared)} keep" in answer.err
    for number, piece in enumerate(own):
        row = begun["embed.table.weight"][number]
        if piece in shared:
            assert torch.equal(row, other["predictor.embed.table.weight"][theirs.index(piece)]), piece
        else:
            assert not (other["predictor.embed.table.weight"] == row).all(1).any(), piece


def test_with_its_vocabulary_every_row_is_taken(masked: Path, tmp_path: Path) -> None:
    answer = weft(*classified(tmp_path, masked, "training.start_parts=[vocabulary, embed, encoder]"), code=0)
    kept = [path / "tokenizer.json" for path in (masked, tmp_path / "run")]
    assert kept[0].read_bytes() == kept[1].read_bytes() and "keep their" not in answer.err
    begun = Checkpoints(tmp_path / "run", print).load(0).weights["embed.table.weight"]
    other = weights.load(masked / "model.safetensors")["predictor.embed.table.weight"]
    assert torch.equal(begun, other[:-1])  # the last one is the mask


@pytest.mark.slow
def test_a_frozen_encoder_of_another_pair_stays_and_the_old_run_may_go(
    translator: Path, tmp_path: Path
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    changes = [
        "training.max_updates=23",
        "training.validate_every=10",
        "model.decoder={use: recurrent, cell: lstm, sizes: [12], score: additive, dropout: 0.2}",
        "training.start_parts=[source_embed, encoder]",
        "training.freeze=[source_embed, encoder]",
    ]
    runs = []
    for name in ("whole", "broken"):
        old = tmp_path / f"old-{name}"
        shutil.copytree(translator, old)
        runs.append((tmp_path / name, [*changes, f"training.start={old}"]))
    (whole, first), (broken, second) = runs
    assert weft("train", recipe, "--run", whole, *first).code == 0
    assert stopped(recipe, broken, 14, *second).code == 143
    shutil.rmtree(tmp_path / "old-broken")
    answer = weft("train", recipe, "--run", broken, *second)
    assert answer.code == 0 and "resumes after update 14" in answer.err
    assert (whole / "model.safetensors").read_bytes() == (broken / "model.safetensors").read_bytes()
    other, found = (weights.load(run / "model.safetensors") for run in (translator, whole))
    taken = [name for name in found if name.startswith(("encoder.", "source_embed."))]
    assert len(taken) > 5 and all(torch.equal(found[name], other[name]) for name in taken)
    state = Checkpoints(whole, print).newest()
    assert state is not None and not any(key.endswith(tuple(taken)) for key in state.optimiser)
    assert weft("predict", whole, stdin=b"alpha beta\n").code == 0


def test_a_start_that_comes_too_late_is_reported_and_not_recorded(masked: Path, tmp_path: Path) -> None:
    first = classified(tmp_path, masked, "training.start_parts=[embed]")
    assert "is not used" not in weft(*first).err
    assert "is not used" not in weft(*first, "training.max_updates=3").err
    late = weft(*first, f"training.start={tmp_path / 'none'}", "training.max_updates=4")
    assert late.code == 0 and f"training.start={tmp_path / 'none'} is not used" in late.err
    recorded = read_recipe(tmp_path / "run" / "recipe.yaml").plain()["training"]
    assert (recorded["start"], recorded["start_parts"]) == (str(masked), ["embed"])
    assert recorded["max_updates"] == 4


def test_a_part_may_have_another_name_there(masked: Path, tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    decoder = "model.decoder={use: transformer, size: 16, num_layers: 1, num_heads: 2, dropout: 0.1}"
    changes = [
        ENCODER,
        decoder,
        "model.embedding.size=16",
        f"training.start={masked}",
        "training.max_updates=1",
    ]
    part = "training.start_parts={source_embed: embed, encoder: encoder}"
    answer = weft("train", recipe, "--run", tmp_path / "run", *changes, part)
    assert answer.code == 0 and "source_embed (4 of 13 rows" in answer.err, answer.err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["training.start_parts=[encoder, nonsense]"], ["start_parts", "nonsense", "embed, encoder, head"]),
        (
            ["training.start_parts=[encoder]", "model.encoder.num_heads=4"],
            ["model.encoder.num_heads", "2", "4"],
        ),
        (["training.start_parts=[embed]", "model.embedding.size=12"], ["embed.table.weight", "12]", "16]"]),
        (["training.start_parts=[head]"], ["head", "has no"]),
        (["training.start_parts={embed: encoder}"], ["embed", "has no"]),
        (["training.start_parts=7"], ["start_parts", "expected"]),
    ],
)
def test_what_does_not_fit_is_refused(
    masked: Path, tmp_path: Path, changes: list[str], words: list[str]
) -> None:
    said = refused(weft(*classified(tmp_path, masked, *changes)))
    assert all(word in said for word in words), said


@pytest.mark.parametrize("changes", [[], ["training.start_parts=[encoder]"]])
def test_a_start_that_is_no_run_leaves_nothing(masked: Path, tmp_path: Path, changes: list[str]) -> None:
    said = refused(weft(*classified(tmp_path, masked, *changes, "training.start=nowhere")))
    assert "training.start: expected a trained run, got nowhere" in said
    assert not (tmp_path / "run").exists()


def test_a_damaged_start_is_refused(masked: Path, tmp_path: Path) -> None:
    command = classified(tmp_path, masked, "training.start_parts=[encoder]")
    assert weft(*command).code == 0
    start = tmp_path / "run" / "start.safetensors"
    for wrong in ({"parts": 3}, {"rows": []}, {"rows": 1}, {"named": {"0.x": -1}}):
        about = {"run": "x", "parts": {}, "rows": [], "named": {"0.x": 0}, "scales": {}, **wrong}
        about["named"] = {"0.x": 1} if wrong == {"rows": []} else about["named"]
        packed = weights.pack(weights.load(start), **{"training.start_parts": json.dumps(about)})
        start.write_bytes(packed)
        assert "start.safetensors: is damaged" in refused(weft(*command, "training.max_updates=5")), wrong


MORE = ("training.max_updates=6", "training.validate_every=2")


def validations(run: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((run / "checkpoints.json").read_bytes())["validations"]
    return found


def rates(run: Path) -> list[float]:
    events = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [event["lr"] for event in events if event["event"] == "update"]


def test_the_start_is_scored_first_and_kept_where_no_update_is_better(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    harmful = ("training.optimiser.lr=0.5", "training.start_rate=1")
    answer = weft("train", toy, "--run", run, f"training.start={trained}", *MORE, *harmful)
    assert answer.code == 0 and f"the model of {trained} is validated first, and kept if" in answer.err
    first, *later = validations(run)
    (own,) = (one for one in validations(trained) if one["update"] == 400)
    assert first == {"update": 0, "scores": own["scores"]}  # of the same validation data
    assert len(later) == 3 and all(one["scores"]["loss"] > own["scores"]["loss"] for one in later)  # type: ignore[index]
    assert f"the best model, that of {trained}, since no update was better, is in {run}" in answer.out
    text = b"alpha beta gamma\n"
    assert weft("predict", run, stdin=text).out == weft("predict", trained, stdin=text).out


def test_the_learning_rate_is_gentle_after_a_start_and_may_be_set(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    change = ("training.optimiser.lr=0.001", "training.schedule=constant", "training.log_every=1")
    for name, more, last in (("usual", (), 0.0003), ("set", ("training.start_rate=0.5",), 0.0005)):
        run = tmp_path / name
        answer = weft("train", toy, "--run", run, f"training.start={trained}", *MORE, *change, *more, code=0)
        assert f"are {last / 0.001:g} times those of the recipe (training.start_rate)" in answer.err
        assert rates(run) == pytest.approx([last] * 6)  # a tenth of six updates is less than one
    run = tmp_path / "new"
    assert weft("train", toy, "--run", run, *MORE, *change).code == 0
    assert rates(run) == pytest.approx([0.001] * 6)


def test_the_factor_of_the_learning_rate_after_a_start() -> None:
    new = TrainingSettings(max_updates=2000, schedule=LinearSchedule(warmup=10))
    start = TrainingSettings(max_updates=2000, schedule=LinearSchedule(warmup=10), start=Path("run"))
    parts = TrainingSettings(max_updates=2000, start=Path("run"), start_parts=("encoder",))
    for update in (1, 7, 50, 100, 150, 2000):
        done = update / 2000
        usual = new.factor(update, done, {})
        assert usual == pytest.approx(LinearSchedule(warmup=10).factor(update, done, {}))
        assert start.factor(update, done, {}) == pytest.approx(usual * 0.3 * min(1, update / 100))
        assert parts.factor(update, done, {}) == ConstantSchedule().factor(update, done, {}) == 1
    short = TrainingSettings(max_updates=50, start=Path("run"), start_rate=0.2)
    assert [short.factor(n, n / 50, {}) for n in (1, 2, 5, 6)] == pytest.approx([0.04, 0.08, 0.2, 0.2])
    endless = TrainingSettings(patience=3, start=Path("run"))
    assert endless.factor(50, 0.0, {}) == pytest.approx(0.15)


@pytest.mark.slow
def test_a_training_from_a_start_resumes_bit_identically_without_its_name(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    change = ("training.max_updates=9", "training.optimiser.lr=0.01", "training.validate_every=5")
    start = f"training.start={trained}"
    assert weft("train", toy, "--run", whole, start, *change).code == 0
    assert stopped(toy, broken, 7, start, *change).code == 143
    assert weft("train", toy, "--run", broken, *change).code == 0  # the run knows its start
    for name in ("model.safetensors", "optimiser.safetensors"):
        last = Path("checkpoints") / "step-00000009" / name
        assert (whole / last).read_bytes() == (broken / last).read_bytes(), name
    recorded = yaml.safe_load((broken / "recipe.yaml").read_text())["training"]
    assert (recorded["start"], recorded["start_rate"]) == (str(trained), 0.3)


@pytest.mark.slow
def test_a_run_that_an_earlier_version_started_keeps_its_learning_rate(
    toy: Path, trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    change = ("training.optimiser.lr=0.001", "training.schedule=constant", "training.log_every=1")
    start = f"training.start={trained}"
    assert weft("train", toy, "--run", run, start, "training.start_rate=1", *MORE, *change).code == 0
    recipe = (run / "recipe.yaml").read_text()
    (run / "recipe.yaml").write_text(re.sub(r"\n +start_rate: .*", "", recipe))
    assert weft("train", toy, "--run", run, start, *MORE, *change, "training.max_updates=8").code == 0
    assert rates(run)[-2:] == pytest.approx([0.001] * 2)
    again = weft("train", toy, "--run", run, *change, "training.start_rate=0.5", "training.max_updates=10")
    assert again.code == 0 and rates(run)[-1] == pytest.approx(0.0005)  # may change, as the rate may


FEW = ("training.max_updates=9", "training.validate_every=5", "model.decoder.dropout=0.2")
PROFESSOR = "training.objective={use: professor_forcing, size: 5, fools_above: 0.0, learns_below: 1.0}"
RISK = "training.objective={use: minimum_risk, candidates: 4, likelihood: 0.1}"


def names(path: Path) -> set[str]:
    with safetensors.safe_open(path, "pt") as file:
        return set(file.keys())


@pytest.fixture(scope="module")
def forced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few updates, trained by professor forcing."""
    folder = tmp_path_factory.mktemp("objectives")
    weft("train", corpus.make(folder / "toy"), "--run", folder / "run", *FEW, PROFESSOR, code=0)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(PROFESSOR, id="professor_forcing"),
        pytest.param(RISK, id="minimum_risk", marks=pytest.mark.slow),
    ],
)
def test_stopped_and_gone_on_with_is_the_unbroken_run(
    toy: Path, forced: Path, tmp_path: Path, objective: str
) -> None:
    changes = (*FEW, objective, *((f"training.start={forced}",) if objective == RISK else ()))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert weft("train", toy, "--run", whole, *changes).code == 0
    assert stopped(toy, broken, 7, *changes).code == 143
    if objective == RISK:
        (forced / "model.safetensors").rename(forced / "elsewhere")  # what was copied is enough
    try:
        assert weft("train", toy, "--run", broken, *changes).code == 0
    finally:
        if objective == RISK:
            (forced / "elsewhere").rename(forced / "model.safetensors")
    last = [run / "checkpoints" / "step-00000009" for run in (whole, broken)]
    kept = {path.name for path in last[0].glob("*.safetensors")}
    assert ("objective.safetensors" in kept) == (objective == PROFESSOR)
    for name in kept:
        assert (last[0] / name).read_bytes() == (last[1] / name).read_bytes(), name


def test_the_discriminator_is_no_part_of_the_model(forced: Path) -> None:
    assert not any(
        "judge" in name or name.startswith("objective") for name in names(forced / "model.safetensors")
    )
    inside = names(forced / "checkpoints" / "step-00000009" / "objective.safetensors")
    assert "judge.0.weight" in inside
    assert weft("predict", forced, stdin=b"alpha beta\n").code == 0


def test_a_run_begins_where_another_ended(toy: Path, forced: Path, tmp_path: Path) -> None:
    run, first = tmp_path / "next", tmp_path / "first"
    shutil.copytree(forced, first)
    (first / "scores.json").write_text("{}")  # a user's, of the first run and not of the next
    changes = (*FEW, f"training.start={first}", "training.optimiser.lr=0", "training.max_updates=1")
    assert weft("train", toy, "--run", run, *changes).code == 0
    for name in ("tokenizer.source.json", "tokenizer.target.json"):
        assert (run / name).read_bytes() == (forced / name).read_bytes()
    assert not (run / "scores.json").exists()
    text = b"alpha beta gamma\n"
    assert weft("predict", run, stdin=text).out == weft("predict", forced, stdin=text).out


def test_another_objective_in_the_middle_and_another_model_are_refused(
    toy: Path, forced: Path, tmp_path: Path
) -> None:
    changes = ("training.max_updates=10", "training.objective=likelihood")
    answer = weft("train", forced / "recipe.yaml", "--run", forced, *changes)
    assert answer.code == 2
    assert "was trained with an objective that has weights of its own" in answer.err
    other = (f"training.start={forced}", "model.embedding.size=23")
    answer = weft("train", toy, "--run", tmp_path / "other", *FEW, *other)
    assert answer.code == 2 and "contains a different model from the recipe" in answer.err
    assert "name the parts to take, such as training.start_parts" in answer.err
    answer = weft(
        "train", toy, "--run", tmp_path / "mixed", *FEW, RISK, "training.feeding={use: constant, p: 0.5}"
    )
    assert answer.code == 2 and "training.feeding={use: constant, p: 0.5}: " in answer.err


LARGE, SMALL = 397, 41


@pytest.mark.parametrize(
    ("weight", "temperature", "share"),
    [
        (1, 1, SMALL / (LARGE + SMALL)),
        (1, 2, SMALL**0.5 / (LARGE**0.5 + SMALL**0.5)),
        (3, 5, (3 * SMALL) ** 0.2 / (LARGE**0.2 + (3 * SMALL) ** 0.2)),
    ],
)
def test_an_epoch_reads_the_share_that_weight_and_temperature_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: int, temperature: int, share: float
) -> None:
    recipe = corpus.make(tmp_path / "toy")
    corpus.write(tmp_path / "toy", "more", SMALL, 9)
    read: list[int] = []
    collate = PairTraining.collate

    def counted(self: PairTraining, numbers: Any) -> Any:
        read.extend(numbers.tolist())
        return collate(self, numbers)

    monkeypatch.setattr(PairTraining, "collate", counted)
    answer = weft(
        "train", recipe, "--run", tmp_path / "run", f"data.mixed={{{tmp_path}/toy/more: {weight}}}",
        f"data.temperature={temperature}", "training.max_epochs=1", "training.validate_every=0",
        code=0)  # fmt: skip
    small = [number for number in read if number >= LARGE]
    assert len(read) == LARGE + SMALL and max(read) < LARGE + SMALL
    assert len(small) == pytest.approx(share * len(read), abs=0.5)
    times = [small.count(number) for number in range(LARGE, LARGE + SMALL)]
    assert max(times) - min(times) <= 1
    assert f"{len(small)} ({100 * len(small) / len(read):.1f} %) of " in answer.err


def test_a_weight_of_nothing_is_refused(tmp_path: Path) -> None:
    recipe = corpus.make(tmp_path / "toy")
    said = refused(
        weft("train", recipe, "--run", tmp_path / "run", f"data.mixed={{{tmp_path}/toy/valid: 0}}")
    )
    assert "data.mixed" in said and "weight above 0" in said
