"""Make the checkpoints of this folder with fairseq itself, and its own outputs for them.

Runs where fairseq 0.12.2, subword-nmt and sentencepiece are installed: python make.py. The models are
trained for seconds; texts are the help texts that Weft ships. The files here were made with Python 3.10,
torch 2.13.0, omegaconf 2.0.6, hydra-core 1.0.7, subword-nmt 0.3.8 and sentencepiece 0.2.1.
"""

import functools
import io
import json
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import sentencepiece
import torch

torch.load = functools.partial(torch.load, weights_only=False)  # fairseq is older than this setting

from fairseq import checkpoint_utils  # noqa: E402
from fairseq.dataclass.utils import omegaconf_no_object_check  # noqa: E402
from fairseq.sequence_generator import SequenceGenerator  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from subword_nmt import apply_bpe, learn_bpe  # noqa: E402

HERE = Path(__file__).parent
CORPUS = HERE.parents[3] / "weft" / "data" / "corpora" / "libreoffice-help" / "valid.tsv.xz"
LANGUAGES = ("en", "es")
MOST = 39  # tokens of an output, without the end
SMALL = """
    --encoder-embed-dim 8 --encoder-ffn-embed-dim 12 --encoder-layers 1 --encoder-attention-heads 2
    --decoder-embed-dim 8 --decoder-ffn-embed-dim 12 --decoder-layers 1 --decoder-attention-heads 2
"""
T2T = """
    --arch transformer_wmt_en_de_big_t2t --encoder-learned-pos --decoder-learned-pos --layernorm-embedding
    --max-source-positions 90 --max-target-positions 80 --activation-fn gelu --no-scale-embedding
"""
LUONG = """
    --arch lstm_luong_wmt_en_de --encoder-embed-dim 8 --decoder-embed-dim 8 --encoder-hidden-size 6
    --decoder-hidden-size 10 --decoder-out-embed-dim 7 --encoder-layers 2 --decoder-layers 2
    --encoder-bidirectional --max-update 300 --lr 0.02
"""
WISEMAN = """
    --arch lstm_wiseman_iwslt_de_en --encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 8
    --encoder-hidden-size 10 --decoder-hidden-size 10 --share-all-embeddings --max-update 300 --lr 0.02
"""
PLAIN = """
    --arch lstm --encoder-embed-dim 8 --decoder-embed-dim 8 --decoder-out-embed-dim 8 --decoder-attention 0
    --share-decoder-input-output-embed --max-update 300 --lr 0.02
"""
TRAINED = """
    -s en -t es --optimizer adam --lr 0.005 --max-tokens 800 --max-update 700 --cpu --seed 1 --num-workers 0
    --no-epoch-checkpoints --no-save-optimizer-state --criterion label_smoothed_cross_entropy
    --label-smoothing 0.1 --disable-validation
"""
CASES = {  # subwords, one dictionary, kind of settings, options
    "transformer-iwslt": (
        "codes",
        True,
        "cfg",
        "--arch transformer_iwslt_de_en --share-all-embeddings" + SMALL,
    ),
    "transformer-t2t": ("pieces", False, "args", T2T + SMALL),
    "lstm-luong": ("codes", False, "container", LUONG),
    "lstm-wiseman": ("codes", True, "args", WISEMAN),
    "lstm-plain": ("codes", False, "cfg", PLAIN),
}


def pairs() -> list[tuple[str, str]]:
    """Short English and Spanish lines."""
    with lzma.open(CORPUS, "rt", encoding="utf-8") as file:
        rows = [line.split("\t") for line in file.read().splitlines()]
    names, rows = rows[0], rows[1:]
    found = [(row[names.index("en")].lower(), row[names.index("es")].lower()) for row in rows]
    return [pair for pair in found if all(5 < len(side.strip()) < 50 for side in pair)][:400]


def segmenters(kind: str, folder: Path, texts: tuple[list[str], ...]) -> tuple[list, list[str]]:
    """How each side is cut, and the files of the checkpoint that say so."""
    if kind == "codes":
        with open(folder / "codes", "w", encoding="utf-8") as file:
            every = "\n".join(texts[0] + texts[1])
            learn_bpe.learn_bpe(io.StringIO(every), file, 50)
        with open(folder / "codes", encoding="utf-8") as file:
            one = apply_bpe.BPE(file).process_line
        return [one, one], ["codes"]
    files = []
    for language, lines in zip(LANGUAGES, texts, strict=True):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=str(folder / language),
            vocab_size=90,
            normalization_rule_name="identity",
            minloglevel=2,
        )
        (folder / f"{language}.vocab").unlink()
        files.append(f"{language}.model")
    models = [sentencepiece.SentencePieceProcessor(model_file=str(folder / file)) for file in files]
    return [lambda line, one=one: " ".join(one.encode(line, out_type=str)) for one in models], files


def saved_as(kind: str, path: Path) -> None:
    """Save a checkpoint's settings in another of fairseq's ways, and in `args` with the names of 2018."""
    state = torch.load(path)
    if kind == "container":
        with omegaconf_no_object_check():
            state["cfg"] = OmegaConf.create(state["cfg"])
    if kind == "args":
        state["args"], state["cfg"] = state["cfg"]["model"], None
        model = state["model"]
        norms = {"self_attn_layer_norm": "0", "final_layer_norm": "1"}
        for name in [name for name in model if name.startswith("encoder.layers.")]:
            pieces = name.split(".")
            if len(pieces) == 5 and pieces[3] in norms:
                model[".".join([*pieces[:3], "layer_norms", norms[pieces[3]], pieces[4]])] = model.pop(name)
        for place in ("encoder.layers.0.self_attn", "decoder.layers.0.encoder_attn"):
            for part in ("weight", "bias"):
                names = [f"{place}.{letter}_proj.{part}" for letter in "qkv"]
                if names[0] in model:
                    model[f"{place}.in_proj_{part}"] = torch.cat([model.pop(name) for name in names])
        if "decoder.output_projection.weight" in model:
            model["decoder.embed_out"] = model.pop("decoder.output_projection.weight")
    torch.save(state, path)


def make(name: str) -> None:
    """One case."""
    kind, joined, style, options = CASES[name]
    every = pairs()
    texts = tuple([pair[side] for pair in every] for side in (0, 1))
    with tempfile.TemporaryDirectory() as made:
        folder, data = Path(made) / "checkpoint", Path(made) / "data"
        folder.mkdir()
        cuts, subwords = segmenters(kind, folder, texts)
        for language, lines, cut in zip(LANGUAGES, texts, cuts, strict=True):
            (Path(made) / f"text.{language}").write_text("".join(cut(line) + "\n" for line in lines), "utf-8")
        run = [sys.executable, "-m", "fairseq_cli.preprocess", "-s", "en", "-t", "es", "--destdir", str(data)]
        run += ["--trainpref", f"{made}/text", "--validpref", f"{made}/text"]
        run += ["--joined-dictionary"] if joined else []
        subprocess.run(run, check=True, capture_output=True)
        run = [sys.executable, "-m", "fairseq_cli.train", str(data), "--save-dir", str(folder)]
        subprocess.run([*run, *TRAINED.split(), *options.split()], check=True, capture_output=True)
        best = (folder / "checkpoint_last.pt").replace(folder / "checkpoint_best.pt")
        for language in LANGUAGES:
            (data / f"dict.{language}.txt").replace(folder / f"dict.{language}.txt")
            (data / f"dict.{language}.txt").write_bytes((folder / f"dict.{language}.txt").read_bytes())
        saved_as(style, best)
        expected = {"path": "checkpoint/checkpoint_best.pt" if joined else "checkpoint"}
        expected |= {"subwords": [f"checkpoint/{file}" for file in subwords]} if kind == "pieces" else {}
        expected |= {"most": MOST, "beam": {"beam": 5, "length_penalty": 1.0, "normalisation": "length"}}
        expected |= {
            "rows": rows(best, data, every, cuts, "sentencepiece" if kind == "pieces" else "subword_nmt")
        }
        with zipfile.ZipFile(HERE / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.iterdir()):
                archive.write(file, f"checkpoint/{file.name}")
            archive.writestr("expected.json", json.dumps(expected, ensure_ascii=False))
        print(name, (HERE / f"{name}.zip").stat().st_size, expected["rows"][0])


@torch.no_grad()
def rows(best: Path, data: Path, every: list, cuts: list, joins: str) -> list[dict]:
    """fairseq's outputs for some lines; those without <unk>, which Weft never writes."""
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(best)], arg_overrides={"data": str(data)}
    )
    model, known = models[0].eval(), (task.source_dictionary, task.target_dictionary)
    searches = {
        name: SequenceGenerator(models, known[1], beam_size=beam, max_len_b=MOST)
        for name, beam in (("greedy", 1), ("beam", 5))
    }
    found = []
    for pair in every:
        read, written = (
            one.encode_line(cut(line), add_if_not_exist=False).long()
            for one, cut, line in zip(known, cuts, pair, strict=True)
        )
        given = {"src_tokens": read[None], "src_lengths": torch.tensor([len(read)])}
        before = torch.cat([written[-1:], written[:-1]])[None]
        logits = model(**given, prev_output_tokens=before)
        logp = model.get_normalized_probs(logits, log_probs=True)[0].gather(1, written[:, None])[:, 0]
        best_of = {
            name: search.generate(models, {"net_input": given})[0][0]["tokens"]
            for name, search in searches.items()
        }
        if any(known[1].unk() in tokens for tokens in best_of.values()):
            continue
        row = {"source": pair[0], "target": pair[1], "read": read.tolist(), "written": written.tolist()}
        row |= {name: known[1].string(tokens, joins) for name, tokens in best_of.items()}
        row |= {"logp": logp.tolist(), "beam_ids": best_of["beam"].tolist()}
        if row["greedy"] not in [one["greedy"] for one in found]:
            found.append(row)
        if len(found) == 12:
            break
    return found


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        make(case)
