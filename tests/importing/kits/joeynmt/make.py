"""Make the checkpoints of this folder with JoeyNMT itself, and its own outputs for them.

Runs where JoeyNMT 2.3.0, subword-nmt and sentencepiece are installed: python make.py. The models learn for
some seconds from the help texts that Weft ships. The files here were made with torch 2.13.0, subword-nmt
0.3.8 and sentencepiece 0.2.0 (later ones lack SetVocabulary).
"""

import io
import json
import lzma
import tempfile
import zipfile
from pathlib import Path

import sentencepiece
import torch
import yaml
from joeynmt.batch import Batch
from joeynmt.config import load_config, parse_global_args
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.tokenizers import build_tokenizer
from joeynmt.vocabulary import build_vocab
from subword_nmt import apply_bpe, learn_bpe

HERE = Path(__file__).parent
CORPUS = HERE.parents[3] / "weft" / "data" / "corpora" / "libreoffice-help" / "valid.tsv.xz"
CASES = {
    "gru-words": ({"cell": "gru", "attention": "bahdanau", "init_hidden": "bridge"}, "word"),
    "lstm-codes": ({"cell": "lstm", "attention": "luong", "init_hidden": "bridge", "layers": 2}, "codes"),
    "lstm-last": ({"cell": "lstm", "attention": "bahdanau", "init_hidden": "last"}, "char"),
    "gru-zero": (
        {"cell": "gru", "attention": "luong", "init_hidden": "zero", "input_feeding": False},
        "word",
    ),
    "transformer-before": ({"norm": "pre", "tied_softmax": True, "tied_embeddings": True}, "joint"),
    "transformer-after": ({"norm": "post"}, "unigram"),
    "transformer-bpe": ({"norm": "pre", "activation": "gelu"}, "bpe"),
}
SIZE = 8


def pairs() -> list[tuple[str, str]]:
    """Short English and Spanish lines."""
    rows = [line.split("\t") for line in lzma.decompress(CORPUS.read_bytes()).decode().splitlines()]
    names, rows = rows[0], rows[1:]
    found = [(row[names.index("en")], row[names.index("es")]) for row in rows]
    return [pair for pair in found if all(5 < len(side.strip()) < 60 for side in pair)][:400]


def side(kind: str, language: str) -> dict:
    """The section data.src or data.trg."""
    one = {"lang": language, "lowercase": language == "en", "max_length": 100}
    if kind in ("word", "char"):
        return one | {"level": kind, "voc_limit": 100}
    if kind in ("codes", "joint"):
        return one | {
            "level": "bpe",
            "tokenizer_type": "subword-nmt",
            "tokenizer_cfg": {"codes": "codes.txt"},
        }
    return one | {
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": "spm.model"},
    }


def model(about: dict) -> dict:
    """The section `model`."""
    both = {
        "embeddings": {"embedding_dim": SIZE, "scale": "norm" in about},
        "dropout": 0.1,
        "hidden_size": SIZE,
    }
    if "norm" in about:
        both |= {
            "type": "transformer",
            "num_layers": 2,
            "num_heads": 2,
            "ff_size": 12,
            "layer_norm": about["norm"],
        }
        both |= {"activation": about.get("activation", "relu")}
        encoder, decoder = both, both
    else:
        both |= {"type": "recurrent", "rnn_type": about["cell"], "num_layers": about.get("layers", 1)}
        encoder = both | {"bidirectional": True}
        decoder = (
            both
            | {name: about[name] for name in ("attention", "init_hidden")}
            | {"input_feeding": about.get("input_feeding", True), "hidden_dropout": 0.2}
        )
        if about["init_hidden"] == "last":
            decoder["hidden_size"] = 2 * SIZE
    tied = {name: about[name] for name in ("tied_softmax", "tied_embeddings") if name in about}
    return {"encoder": encoder, "decoder": decoder} | tied


def subwords(folder: Path, kind: str, texts: list[str]) -> None:
    """Learn BPE codes or a SentencePiece model."""
    if kind in ("codes", "joint"):
        with open(folder / "codes.txt", "w") as out:
            learn_bpe.learn_bpe(io.StringIO("\n".join(texts)), out, 60)
    elif kind in ("unigram", "bpe"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_prefix=str(folder / "spm"),
            vocab_size=130,
            model_type=kind,
            minloglevel=2,
            unk_id=0,
            pad_id=1,
            bos_id=2,
            eos_id=3,
            character_coverage=0.99,
            normalization_rule_name="identity",
        )
        (folder / "spm.vocab").unlink()


def vocabularies(folder: Path, kind: str, columns: dict[str, list[str]]) -> None:
    """Write src_vocab.txt and trg_vocab.txt."""
    cut = {"word": str.split, "char": lambda text: list(text.replace(" ", "\u2581"))}.get(kind)
    if kind in ("codes", "joint"):
        bpe = apply_bpe.BPE(io.StringIO((folder / "codes.txt").read_text("utf-8")))

        def cut(text):
            return bpe.process_line(text).split()

    if cut is None:
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))

        def cut(text):
            return pieces.encode(text, out_type=str)

    for short, texts in columns.items():
        texts = [*columns["src"], *columns["trg"]] if kind == "joint" else texts
        counts: dict[str, int] = {}
        for text in texts:
            for token in cut(text):
                counts[token] = counts.get(token, 0) + 1
        usual = sorted(counts, key=lambda token: (-counts[token], token))[: 100 if kind == "word" else 400]
        (folder / f"{short}_vocab.txt").write_text(
            "\n".join(["<unk>", "<pad>", "<s>", "</s>", *usual]) + "\n", "utf-8"
        )


def make(name: str, about: dict, kind: str) -> None:
    """One checkpoint, zipped with the kit's outputs."""
    rows = pairs()
    columns = {"src": [source.lower() for source, _ in rows], "trg": [target for _, target in rows]}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "checkpoint"
        folder.mkdir()
        subwords(folder, kind, [*columns["src"], *columns["trg"]])
        vocabularies(folder, kind, columns)
        config = {
            "name": name,
            "joeynmt_version": "2.3.0",
            "model_dir": str(folder),
            "use_cuda": False,
            "data": {
                "train": "train",
                "dev": "dev",
                "dataset_type": "plain",
                "src": side(kind, "en"),
                "trg": side(kind, "es"),
            },
            "testing": {"beam_size": 4, "beam_alpha": 0.6},
            "training": {
                "optimizer": "adam",
                "label_smoothing": 0.1,
                "batch_size": 8,
                "batch_type": "sentence",
                "learning_rate": 0.001,
                "epochs": 1,
                "normalization": "batch",
                "scheduling": None,
                "loss": "crossentropy",
            },
            "model": model(about),
        }
        for short in ("src", "trg"):
            options = config["data"][short].get("tokenizer_cfg", {})
            options |= {key: str(folder / value) for key, value in options.items()}
        (folder / "config.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(config)), sort_keys=False))
        args = parse_global_args(load_config(folder / "config.yaml"), rank=0, mode="train")
        cut = build_tokenizer(args.data)
        source, target = build_vocab(args.data, dataset=None, model_dir=folder)
        cut["en"].set_vocab(source)
        cut["es"].set_vocab(target)
        torch.manual_seed(5)
        net = build_model(args.model, src_vocab=source, trg_vocab=target).eval()
        learn(net, cut, source, target, rows[:-16])
        found = [outputs(net, cut, source, target, *row) for row in rows[-16:]]
        state = net.state_dict()
        state |= {
            key: one[:, :16].clone() for key, one in state.items() if key.endswith(".pe.pe")
        }  # computed
        torch.save({"steps": 7, "model_state": state, "optimizer_state": {}}, folder / "7.ckpt")
        text = (folder / "config.yaml").read_text().replace(str(folder), "models/tiny")
        (folder / "config.yaml").write_text(text)
        expected = {
            "path": "checkpoint",
            "search": {"min_length": 1},
            "most": 30,
            "beam": {"beam": 4, "length_penalty": 0.6, "normalisation": "gnmt"},
            "rows": found,
        }
        with zipfile.ZipFile(HERE / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
            for file in sorted(folder.iterdir()):
                if file.is_file():
                    out.write(file, f"checkpoint/{file.name}")
            out.writestr("expected.json", json.dumps(expected, ensure_ascii=False))
    print(name, (HERE / f"{name}.zip").stat().st_size, found[0]["greedy"][:60], "|", found[1]["beam"][:60])


def batch_of(cut, source, target, rows: list[tuple[str, str]]) -> Batch:
    """Pairs as JoeyNMT's batch, the longest source first."""
    read = [cut["en"](cut["en"].pre_process(text)) for text, _ in rows]
    wrote = [cut["es"](cut["es"].pre_process(text)) for _, text in rows]
    ids, lengths, _ = source.sentences_to_ids(read, bos=False, eos=True)
    there, _, _ = target.sentences_to_ids(wrote, bos=True, eos=True)
    order = sorted(range(len(rows)), key=lambda row: -lengths[row])
    return Batch(
        src=torch.tensor(ids)[order],
        src_length=torch.tensor(lengths)[order],
        src_prompt_mask=None,
        trg=torch.tensor(there)[order],
        trg_prompt_mask=None,
        indices=torch.tensor(order),
        device=torch.device("cpu"),
        pad_index=target.pad_index,
        eos_index=target.eos_index,
        is_train=False,
    )


def logits_of(net, batch: Batch) -> torch.Tensor:
    """The logits of the target, [B, T, V]."""
    states, summary, _, _ = net(
        return_type="encode", src=batch.src, src_length=batch.src_length, src_mask=batch.src_mask
    )
    return net(
        return_type="decode",
        trg_input=batch.trg_input,
        encoder_output=states,
        encoder_hidden=summary,
        src_mask=batch.src_mask,
        unroll_steps=batch.trg_input.shape[1],
        trg_mask=batch.trg_mask,
    )[0]


def learn(net, cut, source, target, rows: list[tuple[str, str]]) -> None:
    """Train for some seconds, so that outputs vary and end."""
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    for step in range(400):
        batch = batch_of(cut, source, target, rows[step % 12 :: 12])
        loss = torch.nn.functional.cross_entropy(
            logits_of(net, batch).flatten(0, 1), batch.trg.flatten(), ignore_index=target.pad_index
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@torch.no_grad()
def outputs(net, cut, source, target, text: str, reference: str) -> dict:
    """What JoeyNMT computes for one pair."""
    batch = batch_of(cut, source, target, [(text, reference)])
    there = batch.trg[0]
    logp = logits_of(net, batch).double().log_softmax(-1)[0].gather(1, there[:, None])[:, 0]
    row = {"source": text, "target": reference, "read": batch.src[0].tolist(), "written": there.tolist()}
    row["logp"] = logp.tolist()
    for name, size in (("greedy", 1), ("beam", 4)):
        best, scores, _ = search(
            model=net,
            batch=batch,
            max_output_length=30,
            beam_size=size,
            beam_alpha=0.6 if size > 1 else -1,
            n_best=1,
            generate_unk=False,
            return_prob="hyp",
        )
        words = [word for word in target.arrays_to_sentences(best, cut_at_eos=True)[0] if word != "</s>"]
        row[name] = cut["es"].post_process(words, generate_unk=False) if words else ""
        row |= {f"{name}_score": float(scores[0][0])} if size > 1 else {}
        row[f"{name}_ids"] = [int(one) for one in best[0] if one not in (target.eos_index, target.pad_index)]
    return row


if __name__ == "__main__":
    for name, (about, kind) in CASES.items():
        make(name, about, kind)
