"""Random models by Marian's names and settings, as Marian 1.12 saves them. Read next: formulas.py."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from weft.importing.runs import import_run

HERE = Path(__file__).parent
SIZE, INNER, PIECES = 12, 20, 160
SETTINGS: dict[str, Any] = {
    "type": "transformer",
    "dim-emb": SIZE,
    "dim-vocabs": [PIECES, PIECES],
    "enc-depth": 2,
    "dec-depth": 2,
    "dec-cell": "gru",
    "input-types": [],
    "layer-normalization": False,
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 0,
    "transformer-dim-ffn": INNER,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-heads": 3,
    "transformer-no-projection": False,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-preprocess": "",
    "transformer-tied-layers": [],
    "transformer-train-positions": False,
    "version": "v1.12.0 65bf82f 2023-02-21 09:56:29 -0800",
}
SSRU = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru", "transformer-ffn-activation": "relu"}
BEFORE = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
}
RMS = {"transformer-preprocess": "", "transformer-postprocess": "dar"}
APART = {"tied-embeddings-all": False, "output-omit-bias": True, "transformer-decoder-dim-ffn": 16}
FORMS = {
    "base": {},
    "ssru": SSRU,
    "before": BEFORE | {"tied-embeddings-all": False, "tied-embeddings-src": True},
    "ssru before": SSRU | BEFORE | {"tied-embeddings-all": False, "tied-embeddings": True},
    "rms": RMS,
    "apart": APART,
    "tied layers": SSRU | {"dec-depth": 3, "transformer-tied-layers": [1, 2, 1]},
}


def drawn(settings: dict[str, Any], seed: int = 3) -> dict[str, np.ndarray]:
    """Random tensors by Marian's names."""
    generator, found = np.random.default_rng(seed), {}

    def draw(name: str, *shape: int, centre: float = 0.0) -> None:
        found[name] = (centre + 0.4 * generator.standard_normal(shape)).astype(np.float32)

    def norm(name: str, before: bool) -> None:
        end = "_pre" if before else ""
        if "r" in settings["transformer-postprocess"] + settings["transformer-preprocess"]:
            draw(f"{name}_rms_scale{end}", 1, SIZE, centre=1.0)
            return
        draw(f"{name}_ln_scale{end}", 1, SIZE, centre=1.0)
        draw(f"{name}_ln_bias{end}", 1, SIZE)

    before, rows = bool(settings["transformer-preprocess"]), settings["dim-vocabs"]
    one = settings["tied-embeddings-all"] or settings["tied-embeddings-src"]
    for name, count in [("Wemb", rows[0])] if one else [("encoder_Wemb", rows[0]), ("decoder_Wemb", rows[1])]:
        draw(name, count, SIZE)
    if not (settings["tied-embeddings-all"] or settings["tied-embeddings"]):
        draw("decoder_ff_logit_out_Wt", rows[1], SIZE)
    if not settings["output-omit-bias"]:
        draw("decoder_ff_logit_out_b", 1, rows[1])
    for side in ("encoder", "decoder"):
        inner = (settings["transformer-decoder-dim-ffn"] if side == "decoder" else 0) or INNER
        numbers = settings["transformer-tied-layers"] if side == "decoder" else []
        for layer in set(numbers) or range(1, settings[f"{side[:3]}-depth"] + 1):
            attentions = ["self", "context"] if side == "decoder" else ["self"]
            if side == "decoder" and settings["transformer-decoder-autoreg"] == "rnn":
                attentions = ["context"]
                for name in ("W", "Wf"):
                    draw(f"decoder_l{layer}_rnn_{name}", SIZE, SIZE)
                draw(f"decoder_l{layer}_rnn_bf", 1, SIZE)
                norm(f"decoder_l{layer}_rnn" + ("" if before else "_ffn"), before)
            for attention in attentions:
                for part in "qkvo":
                    draw(f"{side}_l{layer}_{attention}_W{part}", SIZE, SIZE)
                    draw(f"{side}_l{layer}_{attention}_b{part}", 1, SIZE)
                norm(f"{side}_l{layer}_{attention}_Wo", before)
            for part, sizes in (("1", (SIZE, inner)), ("2", (inner, SIZE))):
                draw(f"{side}_l{layer}_ffn_W{part}", *sizes)
                draw(f"{side}_l{layer}_ffn_b{part}", 1, sizes[1])
            norm(f"{side}_l{layer}_ffn_ffn", before)
        if settings["transformer-postprocess-top"]:
            norm(f"{side}_top", before=False)
    return found


def as_yaml(settings: dict[str, Any]) -> bytes:
    """What Marian keeps in the file: YAML, and a zero at the end."""
    shown = {True: "true", False: "false"}
    rows = [f"{name}: {shown.get(value, json.dumps(value))}" if isinstance(value, bool | str)
            else f"{name}: {json.dumps(value)}" for name, value in settings.items()]  # fmt: skip
    return "\n".join(rows).encode() + b"\0"


def saved(there: Path, settings: dict[str, Any], tensors: dict[str, np.ndarray], **more: Any) -> Path:
    """Write a model.npz with a vocabulary beside it."""
    there.mkdir(exist_ok=True)
    raw = np.frombuffer(as_yaml(settings), dtype=np.int8)
    np.savez(there / "model.npz", **{"special:model.yml": raw}, **tensors, **more)
    shutil.copy(HERE / "vocab.spm", there / "vocab.spm")
    return there / "model.npz"


def imported(path: Path, run: Path, **options: Any) -> str:
    return import_run(path, run, **{"source": "es", "target": "en"} | options)
