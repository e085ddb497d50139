"""The work that every engine is given: token ids of Multi30k, made once and kept as one .npz.

A joint byte-level BPE is trained on the training side by Hugging Face tokenizers. Training batches hold
neighbours in length up to a budget of real target tokens; test batches hold neighbours in source length.
Read next: worker.py, which loads it in every engine's process.
"""

import gzip
import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from peers.engine import EOS, PAD, SOS, Batch

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
LONGEST = 100  # training pairs with more tokens on a side are left out
VERSION = 1


class Workload(NamedTuple):
    """Token ids without sos and eos, and which of them make a batch."""

    sources: list[np.ndarray]
    targets: list[np.ndarray]
    batches: list[np.ndarray]  # numbers of training pairs
    test_sources: list[np.ndarray]
    test_targets: list[np.ndarray]
    test_batches: list[np.ndarray]  # numbers of test pairs

    def train_batch(self, number: int) -> Batch:
        """Training batch `number`, counted round and round."""
        rows = self.batches[number % len(self.batches)]
        source, lengths = _padded([self.sources[row] for row in rows])
        target, tokens = _padded([np.concatenate([[SOS], self.targets[row]]) for row in rows])
        return Batch(source, lengths, target, int(tokens.sum()) - len(rows))

    def test_batch(self, number: int, forced: bool) -> tuple[np.ndarray, np.ndarray, int, int]:
        """Sources [B, S], lengths [B], and the shortest and longest output allowed.

        Args:
            forced: every output gets the mean length of the batch's references; untrained weights never
                stop by themselves at a sensible place.
        """
        rows = self.test_batches[number]
        source, lengths = _padded([self.test_sources[row] for row in rows])
        if forced:
            length = round(float(np.mean([len(self.test_targets[row]) for row in rows])))
            return source, lengths, length, length
        return source, lengths, 1, int(1.5 * source.shape[1]) + 10

    def save(self, path: Path) -> None:
        parts = {}
        for name, rows in self._asdict().items():
            parts[name] = np.concatenate(rows).astype(np.int32)
            parts[name + "_ends"] = np.cumsum([len(row) for row in rows])
        np.savez(path, **parts)

    @classmethod
    def load(cls, path: Path) -> "Workload":
        with np.load(path) as parts:
            cut = {n: np.split(parts[n].astype(np.int64), parts[n + "_ends"][:-1]) for n in cls._fields}
        return cls(**cut)


def make(
    data: Path,
    languages: tuple[str, str],
    test: str,
    cache: Path,
    *,
    size: int,
    max_tokens: int,
    rows: int,
) -> tuple[Path, Path, list[str]]:
    """Read, encode, batch and keep; the second call with the same arguments only finds the files.

    Args:
        data: folder with train.<language> and <test>.<language>, plain or .gz.
        languages: source and target.
        test: name of the test set.
        cache: where what is made is kept.
        size: pieces of the joint vocabulary.
        max_tokens: real target tokens of a training batch.
        rows: sentences of a test batch.

    Returns:
        path of the .npz, path of the tokenizer, test references as text.
    """
    train = [_lines(data, f"train.{language}") for language in languages]
    held = [_lines(data, f"{test}.{language}") for language in languages]
    key = hashlib.sha256(repr((VERSION, size, max_tokens, rows, train, held)).encode()).hexdigest()[:16]
    folder = cache / "workloads" / key
    npz, vocabulary = folder / "workload.npz", folder / "tokenizer.json"
    if not npz.exists():
        folder.mkdir(parents=True, exist_ok=True)
        coder = _train_bpe(train[0] + train[1], size)
        coder.save(str(vocabulary))
        ids = [[np.array(code.ids) for code in coder.encode_batch(lines)] for lines in train + held]
        pairs = [pair for pair in zip(*ids[:2], strict=True) if all(0 < len(row) <= LONGEST for row in pair)]
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        order = np.argsort([len(row) for row in ids[2]], kind="stable")
        tests = [order[i : i + rows] for i in range(0, len(order), rows)]
        Workload(sources, targets, _batches(sources, targets, max_tokens), ids[2], ids[3], tests).save(npz)
    return npz, vocabulary, held[1]


def _batches(sources: list[np.ndarray], targets: list[np.ndarray], max_tokens: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    batches, now, tokens = [], [], 0
    order = sorted(random.permutation(len(targets)), key=lambda i: (len(targets[i]), len(sources[i])))
    for number in order:
        size = len(targets[number]) + 1
        if now and tokens + size > max_tokens:
            batches.append(np.array(now))
            now, tokens = [], 0
        now.append(number)
        tokens += size
    batches.append(np.array(now))
    return [batches[i] for i in random.permutation(len(batches))]


def _padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows with eos added, [B, S], and their lengths."""
    lengths = np.array([len(row) + 1 for row in rows])
    padded = np.full((len(rows), lengths.max()), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
        padded[i, len(row)] = EOS
    return padded, lengths


def _lines(data: Path, name: str) -> list[str]:
    plain, packed = data / name, data / f"{name}.gz"
    if not plain.exists() and not packed.exists():
        raise SystemExit(f"{plain}: no such file, nor with .gz; --data needs train.* and the files of --test")
    text = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return text.decode().removesuffix("\n").split("\n")


def _train_bpe(lines: list[str], size: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    coder = Tokenizer(models.BPE(unk_token="<unk>"))
    coder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    coder.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    coder.train_from_iterator(lines, trainer)
    return coder
