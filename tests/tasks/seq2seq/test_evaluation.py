"""The figures of an evaluation, compared with sums done by hand and with sacrebleu itself."""

import json
import math
from dataclasses import replace

import pytest
import sacrebleu
import torch

from tests.commands import corpus
from tests.commands.shell import weft
from weft.errors import DataError
from weft.metrics import Cer, Rouge, Wer
from weft.metrics.scored import of_lines
from weft.run import LoadedRun, open_run
from weft.tasks.evaluation import Validation, perplexity
from weft.tasks.multilingual.predictor import together
from weft.tasks.seq2seq import evaluation
from weft.tasks.seq2seq.evaluation import loss_of_pairs
from weft.tasks.seq2seq.sections import TranslationEvaluationSettings
from weft.tasks.summarise.task import lead_sentence, lead_words


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> LoadedRun:
    folder = tmp_path_factory.mktemp("evaluated")
    changes = "training.max_updates=50", "training.validate_every=50", "model.smoothing=0.2"
    assert weft("train", corpus.make(folder / "toy"), "--run", folder / "run", *changes).code == 0
    return open_run(folder / "run")


def test_the_loss_is_the_negative_log_probability_of_the_targets(
    opened: LoadedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = [[5, 6], [7], [8, 9, 4]], [[4], [5, 6, 7], []]
    total, count = 0.0, 0
    device = next(opened.model.parameters()).device
    with torch.no_grad(), device:
        for source, target in zip(sources, targets, strict=True):
            state = opened.model.start(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
            for fed, wanted in zip([2, *target], [*target, 3], strict=True):
                logp, state = opened.model.step(torch.tensor([fed]), state)
                total, count = total - float(logp[0, wanted]), count + 1
    assert count == 2 + 4 + 1
    for tokens in (1, 4000):  # a batch for each, and one for all
        monkeypatch.setattr(evaluation, "TOKENS", tokens)
        assert loss_of_pairs(opened.model, sources, targets)[0] == pytest.approx(total / count, abs=1e-5)


def test_chinese_is_scored_and_counted_in_characters(opened: LoadedRun) -> None:
    lines = ["我喜欢喝红茶。", "他明天去公园看书。"]
    validated = opened.task.with_scores(Validation({}, [], [of_lines(lines, lines)]))
    assert validated.scores["bleu"] == pytest.approx(100) and validated.notes == []
    translator = opened.pipeline.searcher(opened.model)
    chinese = evaluation.evaluate(translator, lines, lines, title="chinese")
    assert "|tok:zh|" in chinese.scores[0].score.signature and "|tok:zh|" in chinese.scores[3].score.signature
    assert chinese.scores[0].baselines["source copied"] == pytest.approx(100)
    assert "as long as the references (characters)" in chinese.text()
    assert "BLEU by source length (characters):\n  characters sentences" in chinese.text()
    assert chinese.length == "characters in the source sentence"
    latin = evaluation.evaluate(translator, ["a b"], ["c d"], title="latin")
    assert "BLEU by source length (words):" in latin.text()
    mean = together({"aa-zh": chinese, "aa-bb": latin}, []).scores[0].score
    assert "|tok:zh+tok:13a|" in mean.signature and "mean of 2 sets" in mean.signature


def test_a_validation_says_what_must_be_known_of_its_scores() -> None:
    found = Validation({}, [], [of_lines(["我喜欢茶"], ["我喜欢水"])]).with_metrics([Wer(), Cer()])
    assert found.scores == {"wer": 100.0, "cer": 25.0} and len(found.notes) == 1 and "CER" in found.notes[0]


def test_summaries_are_led_by_a_sentence_and_by_signs_in_chinese() -> None:
    assert lead_sentence("今天天气很好。我们去公园。") == "今天天气很好。"
    assert lead_sentence("यह पहला वाक्य है। यह दूसरा है।") == "यह पहला वाक्य है।"
    assert Rouge().score([lead_words("今天天气很好。", 4)], ["今天天气"]).value == pytest.approx(100)


def test_perplexity_is_e_to_the_loss() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(17)) == pytest.approx(17)
    assert perplexity(1e6) == math.inf


def test_scores_are_sacrebleus_and_baselines_stand_beside(opened: LoadedRun) -> None:
    report = opened.pipeline.evaluate(opened.model, split="test")
    pairs = list(opened.task.data.open("test"))
    references = [target for _, _, target in pairs]
    by_name = {one.score.name: one.value for one in report.scores}
    assert by_name["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(report.outputs, [references]).score)
    assert by_name["chrF2"] == pytest.approx(sacrebleu.corpus_chrf(report.outputs, [references]).score)
    copied, nearest = report.scores[0].baselines.values()
    assert copied == 0  # no word is the same in both languages
    assert 0 < nearest < 100
    assert sum(row.sentences for row in report.lengths) == len(pairs) == 17
    assert report.scores[-1].score.size == sum(len(target.split()) + 1 for target in references)
    assert json.loads(report.json())["scores"]["BLEU"]["value"] == by_name["BLEU"]


def test_lowercase_scores_in_small_letters_and_says_so(opened: LoadedRun) -> None:
    report = opened.pipeline.evaluate(opened.model, settings=TranslationEvaluationSettings(lowercase=True))
    references = [target for _, _, target in opened.task.data.open("test")]
    want = sacrebleu.corpus_bleu(report.outputs, [references], lowercase=True).score
    assert report.scores[0].value == pytest.approx(want)
    assert "case:lc" in report.scores[0].score.signature


def test_without_the_training_data_its_baseline_is_left_out(
    opened: LoadedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = type(opened.task.data).open

    def gone(data: object, split: str) -> object:
        if split == "train":
            raise DataError("train.xx: no such file")
        return read(data, split)

    monkeypatch.setattr(type(opened.task.data), "open", gone)
    report = opened.pipeline.evaluate(opened.model)
    assert list(report.scores[0].baselines) == ["source copied"]


def test_a_model_worse_than_the_baseline_is_told(opened: LoadedRun) -> None:
    report = opened.pipeline.evaluate(opened.model, split="valid")
    high = [one._replace(baselines={"oracle": 100.1}) for one in report.scores]
    assert "oracle 100.10  <- the model is worse than the baseline" in replace(report, scores=high).text()
    none = [one._replace(baselines={}) for one in report.scores]
    assert "worse" not in replace(report, scores=none).text()


def test_validation_is_what_evaluation_says(opened: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last validation of training, in metrics.jsonl, against the greedy evaluation of the same split.
    lines = [json.loads(line) for line in (opened.path / "metrics.jsonl").read_text("utf-8").splitlines()]
    scores = next(line["scores"] for line in reversed(lines) if line["event"] == "validation")
    report = opened.pipeline.evaluate(
        opened.model, split="valid", settings=TranslationEvaluationSettings(search={"beam": 1})
    )
    assert report.title == "valid xx-yy, 13 pairs, greedy"
    assert report.scores[0].value == pytest.approx(scores["bleu"])
    assert report.scores[-1].value == pytest.approx(scores["perplexity"], rel=1e-4)
