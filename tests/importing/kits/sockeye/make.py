"""Train tiny models with Sockeye and write models.zip, with what Sockeye says and writes.

Needs sockeye 3.1.34 (pip install --no-deps sockeye, with torch, numpy, pyyaml, sacrebleu and portalocker),
subword-nmt 0.3.8, and Weft for its texts. Made with torch 2.13.0, numpy 2.4.6 and Python 3.11; nothing of
Sockeye had to be changed.

    python -m tests.importing.kits.sockeye.make
"""

import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch

from weft.data.corpora import corpus

HERE = Path(__file__).parent
COMMON = (
    "--use-cpu --no-logfile --overwrite-output --transformer-model-size 8 "
    "--transformer-attention-heads 2 --transformer-feed-forward-num-hidden 12 --batch-type word "
    "--batch-size 500 --max-updates 240 --checkpoint-interval 120 --decode-and-evaluate 0 "
    "--initial-learning-rate 0.01 --learning-rate-warmup 20 --max-seq-len 40 --bucket-width 40 "
    "--label-smoothing 0.1 "
)
MODELS = {
    "before": "--num-layers 1:2 --shared-vocab --weight-tying-type src_trg_softmax",
    "ssru": "--num-layers 1 --decoder ssru_transformer --weight-tying-type trg_softmax "
    "--transformer-positional-embedding-type learned "
    "--transformer-activation-type swish1 --transformer-feed-forward-use-glu",
    "after": "--num-layers 1 --weight-tying-type none --transformer-activation-type gelu "
    "--transformer-preprocess= --transformer-postprocess drn",
}
KEPT = ("config", "params.best", "vocab.src.0.json", "vocab.trg.0.json", "version")


def run(*words: str) -> None:
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)


def texts(there: Path) -> list[tuple[str, str]]:
    """Write BPE codes and texts; returns the raw pairs that are translated."""
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    every = corpus("libreoffice-help", "es", "en", "train")
    pairs = [
        tuple(re.sub("[^a-z ]", "", side.lower()).strip() for side in (one.source, one.target))
        for one in every
    ]
    pairs = [pair for pair in pairs if all(2 < len(side.split()) < 7 for side in pair)]
    pairs, few = pairs[20:2500], pairs[:8]
    merges = io.StringIO()
    learn_bpe([side for pair in pairs for side in pair], merges, 30)
    (there / "codes").write_text(merges.getvalue())
    bpe = BPE(io.StringIO(merges.getvalue()))
    for name, rows in (("train", pairs[300:]), ("valid", pairs[:300]), ("test", few)):
        for side, language in enumerate(("es", "en")):
            lines = [bpe.process_line(" ".join(row[side].split())) for row in rows]
            (there / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    return [(" ".join(one.split()), " ".join(two.split())) for one, two in few]


def logp(folder: Path, sources: list[str], targets: list[str]) -> list[list[float]]:
    """The log-probability of each token of the targets, the end included, by teacher forcing."""
    from sockeye.model import load_model

    model, source, target = load_model(str(folder), device=torch.device("cpu"))
    model.eval()
    found = []
    for one, two in zip(sources, targets, strict=True):
        read = [source[0].get(word, 1) for word in one.split()] + [3]
        written = [target[0].get(word, 1) for word in two.split()]
        x = torch.tensor([read])[..., None].int()
        y = torch.tensor([[2, *written]])[..., None].int()
        with torch.no_grad():
            logits = model(x, torch.tensor([[len(read), 0]]).int(), y, torch.tensor([y.shape[1]]))["logits"]
        wanted = torch.tensor([*written, 3])
        found.append(logits[0].log_softmax(-1)[torch.arange(len(wanted)), wanted].tolist())
    return found


def written(folder: Path, there: Path, *options: str) -> list[str]:
    out = there / "out"
    run(
        "sockeye.translate", "-m", str(folder), "--use-cpu", "--no-logfile", "--batch-size", "1",
        "-i", str(there / "test.es"), "-o", str(out), *options,
    )  # fmt: skip
    return [line.replace("@@ ", "").removesuffix("@@") for line in out.read_text().splitlines()]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        there = Path(name)
        pairs = texts(there)
        expected = {}
        with zipfile.ZipFile(HERE / "models.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.write(there / "codes", "codes")
            for model, options in MODELS.items():
                data = ["-s", "train.es", "-t", "train.en", "-vs", "valid.es", "-vt", "valid.en"]
                data = [word if word[0] == "-" else str(there / word) for word in data]
                run("sockeye.train", *data, "-o", str(there / model), *COMMON.split(), *options.split())
                for file in KEPT:
                    archive.write(there / model / file, f"{model}/{file}")
                sides = [(there / f"test.{side}").read_text().splitlines() for side in ("es", "en")]
                expected[model] = {
                    "logp": [[round(one, 6) for one in line] for line in logp(there / model, *sides)],
                    "greedy": written(there / model, there, "--beam-size", "1", "--greedy"),
                    "beam": written(there / model, there, "--beam-size", "5"),
                }
            archive.writestr("expected.json", json.dumps({"pairs": pairs, **expected}, ensure_ascii=False))
    print((HERE / "models.zip").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
