"""Train tiny models with OpenNMT-py and keep them with its own outputs: python make.py PREFIX fixture.tar.xz

PREFIX.es and PREFIX.en are sentences (here: short ones of the LibreOffice help, MPL-2.0). Run once with
OpenNMT-py 3.5.1, then with 2.3.0 (and torchtext 0.5.0), which adds its model; both with subword-nmt 0.3.8 and
PyTorch 2.13.0. Nothing of the two was patched; `fasttext` and `spacy`, which 3.5.1 imports but does not need
here, may be empty modules. To keep the file small, weights are rounded to bfloat16 before its outputs are
taken, the state of the optimiser is left out, and the tables of sinusoids are cut to 64 positions.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from argparse import Namespace
from collections import Counter
from pathlib import Path

import onmt
import torch
from onmt.model_builder import load_test_model
from safetensors.torch import load_file, save_file
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

OLD = onmt.__version__.startswith("2")
STEPS = 120
TESTED = 7  # sentences
LONGEST = 12  # tokens of an output
POSITIONS = 64
DATA = """
save_data: run
overwrite: true
data:
  corpus: {path_src: train.es, path_tgt: train.en, transforms: [], weight: 1}
  valid: {path_src: train.es, path_tgt: train.en, transforms: []}
bucket_size: 1000
batch_size: 32
valid_steps: 100000
report_every: 100
seed: 1
optim: adam
learning_rate: 0.01
dropout: [0.1]
train_steps: 120
save_checkpoint_steps: 120
"""
SHARED = "src_vocab: vocab.both\ntgt_vocab: vocab.both\nshare_vocab: true\n"
APART = "src_vocab: vocab.es\ntgt_vocab: vocab.en\n"
TRANSFORMER = """
encoder_type: transformer
decoder_type: transformer
layers: 1
heads: 2
word_vec_size: 8
transformer_ff: 12
param_init: 0
param_init_glorot: true
"""
NEW = {
    "sinusoidal": SHARED
    + TRANSFORMER
    + "hidden_size: 8\nposition_encoding: true\nshare_embeddings: true\nshare_decoder_embeddings: true\n"
    + "label_smoothing: 0.1\nattention_dropout: [0.2]\n",
    "rotary": APART
    + TRANSFORMER
    + "hidden_size: 8\nmax_relative_positions: -1\nrotary_interleave: false\nlayer_norm: rms\nnum_kv: 1\n"
    + "pos_ffn_activation_fn: silu\nadd_ffnbias: false\nsave_format: safetensors\n",
    "lstm": APART + "encoder_type: brnn\nlayers: 2\nhidden_size: 8\nword_vec_size: 6\nbridge: true\n",
    "gru": APART
    + "encoder_type: rnn\nrnn_type: GRU\nlayers: 1\nhidden_size: 8\nword_vec_size: 8\ninput_feed: 0\n"
    + "global_attention: mlp\n",
}
BEFORE = {"old": APART + TRANSFORMER + "rnn_size: 8\nposition_encoding: true\n"}


SEARCHES = {"greedy": "-beam_size 1", "beam": "-beam_size 3 -length_penalty none -alpha 0"}
PROGRAM = """
import runpy, sys, torch
load = torch.load
torch.load = lambda *args, **others: load(*args, **{**others, "weights_only": False})
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


def run(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, *words], cwd=folder, check=True)


def texts(prefix: str, folder: Path) -> list[tuple[str, str]]:
    """Write the BPE codes and vocabularies; the tested pairs, in whole words."""
    pairs = list(
        zip(*(Path(f"{prefix}.{one}").read_text("utf-8").splitlines() for one in ("es", "en")), strict=True)
    )
    with open(folder / "codes", "w", encoding="utf-8") as codes:
        learn_bpe(io.StringIO("\n".join(" ".join(pair) for pair in pairs)), codes, 20)
    with open(folder / "codes", encoding="utf-8") as codes:
        bpe = BPE(codes)
    counts = {}
    for side, language in enumerate(("es", "en")):
        lines = [bpe.process_line(pair[side]) for pair in pairs]
        (folder / f"train.{language}").write_text("\n".join(lines) + "\n", "utf-8")
        (folder / f"test.{language}").write_text("\n".join(lines[:TESTED]) + "\n", "utf-8")
        counts[language] = Counter(" ".join(lines).split())
    counts["both"] = counts["es"] + counts["en"]
    for name, found in counts.items():
        rows = [f"{token}\t{count}" for token, count in found.most_common(60)]
        (folder / f"vocab.{name}").write_text("\n".join(rows) + "\n", "utf-8")
    return pairs[:TESTED]


def log_probabilities(path: Path, folder: Path) -> list[list[float]]:
    """Of each token of the tested targets and its end."""
    load = torch.load
    torch.load = lambda *a, **k: load(*a, **{**k, "weights_only": False})
    if OLD:
        fields, model, _ = load_test_model(
            Namespace(models=[str(path)], gpu=-1, fp32=True, int8=False), str(path)
        )
        stoi = [fields[side].base_field.vocab.stoi for side in ("src", "tgt")]
    else:
        options = Namespace(models=[str(path)], world_size=1, gpu=-1, gpu_ranks=[], precision="fp32")
        options.quant_layers, options.quant_type, options.parallel_mode = [], "", "data_parallel"
        vocabs, model, _ = load_test_model(options, device_id=-1, model_path=str(path))
        stoi = [vocabs[side].tokens_to_ids for side in ("src", "tgt")]
    found = []
    lines = [(folder / f"test.{one}").read_text("utf-8").splitlines() for one in ("es", "en")]
    for source, target in zip(*lines, strict=True):
        words = source.split(), ["<s>", *target.split(), "</s>"]
        read, written = (
            torch.tensor([table.get(word, table["<unk>"]) for word in side])[None, :, None]
            for table, side in zip(stoi, words, strict=True)
        )
        if OLD:
            states, _ = model(read.transpose(0, 1), written.transpose(0, 1), torch.tensor([len(words[0])]))
            logits = model.generator(states.transpose(0, 1))
        else:
            states, _ = model(read, written, torch.tensor([len(words[0])]))[:2]
            logits = model.generator(states)
        logp = logits.log_softmax(-1)[0].gather(1, written[0, 1:])[:, 0]
        found.append([round(one, 7) for one in logp.tolist()])
    return found


def tensors_of(path: Path) -> tuple[dict, dict]:
    """The contents of a checkpoint, and the tensors, which may be in another file."""
    content = torch.load(path, weights_only=False)
    beside = path.with_suffix(".safetensors")
    return content, load_file(beside) if beside.exists() else content["model"]


def save(path: Path, content: dict, tensors: dict) -> None:
    if "model" not in content:
        for name in (".safetensors", ".00.safetensors"):  # the first is written, the second read
            save_file(tensors, path.with_suffix(name))
    torch.save(content, path)


def rounded(path: Path) -> None:
    """Round the weights, and leave out the optimiser."""
    content, tensors = tensors_of(path)
    content["optim"] = None
    for table in (tensors, content.get("generator", {})):
        for name, one in table.items():
            if not name.endswith(".pe"):
                one.copy_(one.bfloat16())
    save(path, content, tensors)


def cut(path: Path) -> None:
    """Shorten tables that can be computed."""
    content, tensors = tensors_of(path)
    for name in [name for name in tensors if name.endswith(".pe.pe")]:
        tensors[name] = tensors[name][:POSITIONS].clone()
    save(path, content, tensors)
    path.with_suffix(".00.safetensors").unlink(missing_ok=True)


def main(prefix: str, archive: str) -> None:
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        pairs = texts(prefix, folder)
        expected, kept = {}, {"codes": (folder / "codes").read_bytes()}
        if Path(archive).exists():
            with tarfile.open(archive) as old:
                there = {one.name: old.extractfile(one).read() for one in old.getmembers()}
            assert there["codes"] == kept["codes"], "made from other texts"
            expected = json.loads(there.pop("expected.json"))
            kept |= there
        expected["source"], expected["target"] = (list(side) for side in zip(*pairs, strict=True))
        for model, options in (BEFORE if OLD else NEW).items():
            (folder / f"{model}.yaml").write_text(f"{DATA}{options}save_model: {model}\n", "utf-8")
            run(folder, "onmt.bin.train", "-config", f"{model}.yaml")
            path = folder / f"{model}_step_{STEPS}.pt"
            rounded(path)
            found = {"version": onmt.__version__, "logp": log_probabilities(path, folder)}
            for search, flags in SEARCHES.items():
                words = f"-model {path.name} -src test.es -output out -max_length {LONGEST} {flags}".split()
                words += [] if OLD else ["-max_length_ratio", "0"]
                run(folder, "onmt.bin.translate", *words)
                found[search] = (folder / "out").read_text("utf-8").splitlines()
            expected[model] = found
            cut(path)
            kept |= {file.name: file.read_bytes() for file in folder.glob(f"{model}_step_{STEPS}.*")}
        kept["expected.json"] = json.dumps(expected, ensure_ascii=False).encode()
    with tarfile.open(archive, "w:xz") as made:
        for file, content in sorted(kept.items()):
            member = tarfile.TarInfo(file)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
