"""The driver of the GPU's figures: ratios from lines, verdicts, resuming. It runs nothing here."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "gpu_aims.py"
spec = importlib.util.spec_from_file_location("gpu_aims", FILE)
assert spec is not None and spec.loader is not None
gpu_aims: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_aims)

TRAIN = {"section": "train", "size": "base", "tokens": 32000}
SPEEDS = {"weft": 300, "weft_graphs": 660, "transformers": 380, "transformers_compiled": 500}
GREEDY = {"weft_float32_1": 90, "weft_float32_5": 500, "transformers_bfloat16_1": 30}
LINES = [
    {"section": "machine", "device": "NVIDIA H200", "gpu": True},
    TRAIN | {"tokens_per_s": {"weft": 1, "transformers_compiled": 1}},  # an earlier run
    TRAIN | {"tokens_per_s": SPEEDS},
    {"section": "lm", "tokens_per_s": {"weft": 9}, "model_teraflops_per_s": {"weft": 200}},
    {"section": "search", "size": "base", "rows": 64, "sentences_per_s": GREEDY},
    {"section": "cells", "cell": "slstm", "times_lstm": 3.5},
    {"section": "mixers", "cell": "gla", "weft": 4.0, "weft_graph": 2.0, "fla": 2.5},
    {"section": "profile", "model": "transformer base", "graphs": True, "busy_ms": 27, "ms_per_update": 30},
]


def test_an_aim_is_a_ratio_of_the_last_figures() -> None:
    found = {aim.what: aim for aim in gpu_aims.aims(LINES)}
    by_hand = {
        "Transformer base over transformers compiled": (1.32, "met"),
        "GPT-2 small, % of the peak": (20.222, "MISSED"),
        "greedy search, 64 sentences, over transformers": (3.0, "MISSED"),
        "slstm, times cuDNN's LSTM": (3.5, "MISSED"),
        "gla, time over flash-linear-attention's": (0.8, "met"),
        "card busy during an update of base, %": (90.0, "met"),
    }
    for what, (value, verdict) in by_hand.items():
        assert found[what].found == pytest.approx(value, rel=1e-3)
        assert found[what].verdict().startswith(verdict)
    assert found["RNN with attention 512 over a tutorial's loop"].verdict().startswith("no figure")


def test_a_file_is_resumed_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(json.dumps(LINES[0]) + '\n{"done": "train"}\n{"section": "rnn", "wid')
    monkeypatch.setattr(sys, "argv", ["gpu_aims.py", "--file", str(file)])
    monkeypatch.setenv("WEFT_BENCH_DEVICE", "cpu")
    begun: list[str] = []
    gpu_aims.main(lambda section, _: begun.append(section))
    assert begun == [section for section in gpu_aims.LIMITS if section != "train"]
    assert sum(gpu_aims.LIMITS.values()) <= 540
