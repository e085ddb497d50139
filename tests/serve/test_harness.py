"""lm-evaluation-harness itself, over HTTP, gives the numbers of a direct computation in float64.

Its own process asks `local-completions` three small tasks: the last word of a line, a choice between endings,
and the perplexity of documents. Skipped, and said so, where it is not installed.
"""

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.commands.shell import weft
from tests.serve.exact import Exact

pytestmark = pytest.mark.skipif(
    not (find_spec("lm_eval") and find_spec("transformers")),
    reason="lm_eval or transformers is not installed: pip install --group eval-tests",
)

LINES = ["the cat sat", "one dog ran", "the cat zebra", "a mat the", "sat on a mat and one dog"]
CHOICES = [
    {"query": "the cat", "choices": ["sat on", "ran home"], "gold": 0},
    {"query": "one dog", "choices": ["mat and", "ran home .", "the"], "gold": 1},
    {"query": "a mat", "choices": ["and one", "zebra", "dog dog"], "gold": 1},
]
DOCUMENTS = ["the cat sat on a mat and one dog ran home . the cat", "é 日本 the zebra", "one"]
HEAD = (
    "task: {task}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {file}}}}}\ntest_split: test\n"
)
TASKS = {
    "last_word": """output_type: loglikelihood
doc_to_text: "{{text.rsplit(' ', 1)[0]}}"
doc_to_target: " {{text.rsplit(' ', 1)[1]}}"
metric_list:
  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}
  - {metric: acc, aggregation: mean, higher_is_better: true}
""",
    "endings": """output_type: multiple_choice
doc_to_text: query
doc_to_target: gold
doc_to_choice: choices
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
""",
    "documents": """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: text
metric_list:
  - {metric: word_perplexity, aggregation: weighted_perplexity, higher_is_better: false}
""",
}
ROWS: dict[str, list[Any]] = {
    "last_word": [{"text": line} for line in LINES],
    "endings": CHOICES,
    "documents": [{"text": text} for text in DOCUMENTS],
}


def harness(address: str, tokenizer: Path, folder: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The results of each task, and the responses to each of its documents."""
    for task, text in TASKS.items():
        file = folder / f"{task}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in ROWS[task]), "utf-8")
        (folder / f"{task}.yaml").write_text(HEAD.format(task=task, file=file) + text, "utf-8")
    settings = {"base_url": f"{address}/v1/completions", "model": "prose", "tokenizer": tokenizer}
    settings |= {"tokenizer_backend": "huggingface", "add_bos_token": True}
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--log_samples"]
    command += ["--model_args", ",".join(f"{name}={value}" for name, value in settings.items())]
    command += ["--tasks", ",".join(TASKS), "--include_path", folder, "--output_path", folder / "out"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    done = subprocess.run(
        [str(one) for one in command],
        env=os.environ | offline,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (results,) = (folder / "out").rglob("results_*.json")
    samples = {}
    for task in TASKS:
        (file,) = (folder / "out").rglob(f"samples_{task}_*.jsonl")
        rows = sorted(map(json.loads, file.read_text("utf-8").splitlines()), key=lambda row: row["doc_id"])
        samples[task] = [row["resps"] for row in rows]
    return json.loads(results.read_text("utf-8"))["results"], samples


def scored(exact: Exact, text: str, rest: str) -> tuple[float, bool]:
    """The log-likelihood of a continuation, and whether greedy search writes it."""
    row, begin = exact.line(text + rest), len(exact.line(text))
    logp = exact.logp(row)
    own = [float(logp[place - 1, row[place]]) for place in range(begin, len(row))]
    return sum(own), all(int(logp[place - 1].argmax()) == row[place] for place in range(begin, len(row)))


@pytest.mark.slow
def test_the_harness_gives_the_numbers_of_float64(address: str, runs: Path, tmp_path: Path) -> None:
    weft("export", runs / "prose", "--to", "tokenizer", "--output", tmp_path / "tokenizer", code=0)
    results, samples = harness(address, tmp_path / "tokenizer", tmp_path)
    exact = Exact(runs / "prose")

    wanted = [scored(exact, *(line.rpartition(" ")[0], f" {line.rpartition(' ')[2]}")) for line in LINES]
    for (((logp, greedy),),), (exactly, best) in zip(samples["last_word"], wanted, strict=True):
        assert float(logp) == pytest.approx(exactly, abs=1e-4) and str(greedy) == str(best)
    found = results["last_word"]
    assert found["acc,none"] == sum(best for _, best in wanted) / len(wanted) < 1
    mean = sum(logp for logp, _ in wanted) / len(wanted)
    assert found["perplexity,none"] == pytest.approx(math.exp(-mean), rel=1e-4)

    hits = 0
    for row, responses in zip(CHOICES, samples["endings"], strict=True):
        logps = [scored(exact, str(row["query"]), f" {one}")[0] for one in row["choices"]]  # type: ignore[attr-defined]
        assert [float(logp) for ((logp, _),) in responses] == pytest.approx(logps, abs=1e-4)
        hits += logps.index(max(logps)) == row["gold"]
    assert results["endings"]["acc,none"] == hits / len(CHOICES) < 1

    # A document is read after <eos>, which the harness puts first twice: as its prefix, and as asked.
    rows = [[3, *exact.line(text)] for text in DOCUMENTS]
    totals = [float(exact.logp(row)[:-1].gather(1, _next(row)).sum()) for row in rows]
    found_totals = [float(response) for ((response,),) in samples["documents"]]
    assert found_totals == pytest.approx(totals, abs=1e-3)
    words = sum(len(text.split()) for text in DOCUMENTS)
    perplexity = math.exp(-sum(totals) / words)
    assert results["documents"]["word_perplexity,none"] == pytest.approx(perplexity, rel=1e-4)


def _next(row: list[int]) -> Any:
    import torch

    return torch.tensor(row[1:])[:, None]
