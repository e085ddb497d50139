"""Train tiny models with Eole and keep them with its own outputs: python make.py PREFIX fixture.tar.xz

PREFIX.es and PREFIX.en are sentences (here: short ones of the LibreOffice help, MPL-2.0). Made with
eole 0.6.4, PyTorch 2.13.0 and subword-nmt 0.3.8; nothing was patched. To keep the file small, weights are
rounded to bfloat16 before the outputs are taken, and the tables of sinusoids are cut to 64 positions.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import torch
from eole.config.run import PredictConfig
from eole.models.model import get_model_class
from eole.models.model_saver import get_metadata
from safetensors.torch import load_file, save_file
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

TESTED, LONGEST, POSITIONS = 7, 12, 64
COMMAND = [sys.executable, "-W", "ignore", "-c", "from eole.bin.main import main; main()"]
RECIPE = """
data:
  corpus: {path_src: train.es, path_tgt: train.en, transforms: []}
  valid: {path_src: train.es, path_tgt: train.en, transforms: []}
overwrite: true
seed: 1
report_every: 100
save_data: run
training:
  batch_size: 32
  bucket_size: 1000
  num_workers: 0
  train_steps: 120
  valid_steps: 100000
  save_checkpoint_steps: 120
  optim: adam
  learning_rate: 0.01
  dropout: [0.1]
  attention_dropout: [0.2]
  label_smoothing: 0.1
  compute_dtype: fp32
  world_size: 1
  gpu_ranks: []
"""
MODELS = {
    "sinusoidal": """
src_vocab: vocab.both
tgt_vocab: vocab.both
share_vocab: true
model:
  architecture: transformer
  layers: 1
  heads: 2
  hidden_size: 8
  transformer_ff: 12
  share_embeddings: true
  share_decoder_embeddings: true
  embeddings: {word_vec_size: 8, position_encoding_type: SinusoidalInterleaved}
""",
    "rotary": """
src_vocab: vocab.es
tgt_vocab: vocab.en
model:
  architecture: transformer
  layers: 1
  heads: 2
  hidden_size: 8
  transformer_ff: 12
  layer_norm: rms
  mlp_activation_fn: gated-silu
  heads_kv: 1
  rope_config: {rotary_interleave: false}
  encoder: {rope_config: {rotary_interleave: false}}
  decoder: {rope_config: {rotary_interleave: false}}
  embeddings: {word_vec_size: 8, position_encoding_type: Rotary}
""",
    "learned": """
src_vocab: vocab.es
tgt_vocab: vocab.en
model:
  architecture: transformer
  layers: 1
  heads: 2
  hidden_size: 8
  transformer_ff: 12
  mlp_activation_fn: gated-gelu-tanh
  add_ffnbias: true
  embeddings: {word_vec_size: 8, position_encoding_type: Learned, n_positions: 40}
""",
}
SEARCHES = {
    "greedy": "-beam_size 1 -ban_unk_token",
    "beam": "-beam_size 3 -length_penalty none -alpha 0 -ban_unk_token",
}


def texts(prefix: str, folder: Path) -> list[tuple[str, str]]:
    """Write the BPE codes and vocabularies; the tested pairs, in whole words."""
    lines = [Path(f"{prefix}.{one}").read_text("utf-8").splitlines() for one in ("es", "en")]
    pairs = list(zip(*lines, strict=True))
    with open(folder / "codes", "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO("\n".join(" ".join(pair) for pair in pairs)), codes, 20)
    with open(folder / "codes", encoding="utf-8") as codes:
        bpe = BPE(codes)
    counts = {}
    for side, language in enumerate(("es", "en")):
        cut = [bpe.process_line(pair[side]) for pair in pairs]
        (folder / f"train.{language}").write_text("\n".join(cut) + "\n", "utf-8")
        (folder / f"test.{language}").write_text("\n".join(cut[:TESTED]) + "\n", "utf-8")
        counts[language] = Counter(" ".join(cut).split())
    counts["both"] = counts["es"] + counts["en"]
    for name, found in counts.items():
        rows = [f"{token}\t{count}" for token, count in found.most_common(60)]
        (folder / f"vocab.{name}").write_text("\n".join(rows) + "\n", "utf-8")
    return pairs[:TESTED]


def changed(weights: Path, change) -> None:
    save_file({name: change(name, one).clone() for name, one in load_file(weights).items()}, weights)


def log_probabilities(model: Path, folder: Path) -> list[list[float]]:
    """Of each token of the tested targets and its end."""
    config = PredictConfig(
        model_path=[str(model)], src="test.es", world_size=1, gpu_ranks=[], compute_dtype="fp32"
    )
    made = get_model_class(get_metadata(str(model))["config"].model)
    network, vocabs, _ = made.for_inference(config, -1, str(model))
    found = []
    lines = [(folder / f"test.{one}").read_text("utf-8").splitlines() for one in ("es", "en")]
    for source, target in zip(*lines, strict=True):
        words = source.split(), ["<s>", *target.split(), "</s>"]
        read, written = (
            torch.tensor([[vocabs[side].tokens_to_ids.get(word, vocabs[side]["<unk>"]) for word in row]])
            for side, row in zip(("src", "tgt"), words, strict=True)
        )
        states = network(read, written, torch.tensor([len(words[0])]))[0]
        logp = network.generator(states).log_softmax(-1)[0].gather(1, written[0, 1:, None])[:, 0]
        found.append([round(one, 7) for one in logp.tolist()])
    return found


def main(prefix: str, archive: str) -> None:
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        pairs = texts(prefix, folder)
        kept = {"codes": (folder / "codes").read_bytes()}
        expected = dict(
            zip(("source", "target"), (list(side) for side in zip(*pairs, strict=True)), strict=True)
        )
        for model, recipe in MODELS.items():
            (folder / f"{model}.yaml").write_text(f"{RECIPE}  model_path: {model}\n{recipe}", "utf-8")
            subprocess.run([*COMMAND, "train", "-config", f"{model}.yaml"], cwd=folder, check=True)
            weights = (folder / model / "model.00.safetensors").resolve()
            changed(weights, lambda key, one: one if key.endswith(".pe.pe") else one.bfloat16().float())
            expected[model] = {"logp": log_probabilities(folder / model, folder)}
            for search, flags in SEARCHES.items():
                words = f"predict -model_path {model} -src test.es -output out -max_length {LONGEST} "
                words += f"-max_length_ratio 0 {flags} -compute_dtype fp32"
                subprocess.run([*COMMAND, *words.split()], cwd=folder, check=True)
                expected[model][search] = (folder / "out").read_text("utf-8").splitlines()
            changed(weights, lambda key, one: one[:POSITIONS] if key.endswith(".pe.pe") else one)
            for file in ("config.json", "vocab.json", "model.00.safetensors"):
                kept[f"{model}/{file}"] = (folder / model / file).read_bytes()
        kept["expected.json"] = json.dumps(expected, ensure_ascii=False).encode()
    with tarfile.open(archive, "w:xz") as made:
        for file, content in sorted(kept.items()):
            member = tarfile.TarInfo(file)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
