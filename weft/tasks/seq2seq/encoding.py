"""How pairs of texts become tokens and batches in training: vocabularies, the store, tensors.

Pairs may be joined, sources get mistakes, texts get other segmentations. These random changes depend only on
the seed, the epoch and the batch, so a resumed training repeats them; validation and use change nothing.
Read next: batch_search.py, which reads sources; ../../data/store.py; ../../text/augmentation.py.

Source: Kondo et al. 2021, "Sentence Concatenation Approach to Data Augmentation for Neural Machine
Translation"; Nguyen, Murray and Chiang 2021, "Data Augmentation by Concatenation for Low-Resource
Translation". They add joined pairs to the training text; we join those of a batch, which costs no time.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from weft.data.building import EncodedPairs, PairEncoder
from weft.data.shortlist import Shortlist
from weft.data.store import JoinedStores, TokenStore, content_key
from weft.errors import CheckpointError, DataError
from weft.masks import fill, grid, repeat, to_device
from weft.nn.randomness import open_generator
from weft.store.files import cache_directory
from weft.tasks.seq2seq.batch_search import SourceReader, SourceVocabulary, pad
from weft.tasks.seq2seq.glossary import DomainText
from weft.tasks.seq2seq.sections import AugmentSettings, PairData, VocabularySettings
from weft.tasks.task import Progress
from weft.text import augmentation
from weft.text.augmentation import Noise, SampledPieces
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from weft.wording import plural


def encode_pairs(
    source: SourceVocabulary, target: Vocabulary, sources: Sequence[str], targets: Sequence[str]
) -> EncodedPairs:
    """Sources and targets as tokens; an unknown target word found in the source gets its copy number."""
    read, written = source.encode_batch(sources), target.encode_batch(targets)
    for place, row in enumerate(written):
        if UNK in row and (copyable := source.copyable(sources[place])):
            written[place] = target.extended(copyable).encode(targets[place])
    return EncodedPairs(read, written)


SHORTLIST = "shortlist.json"
LEARNING = "learning the vocabulary"
TOLD = 2**17  # lines between progress reports


class Vocabularies(NamedTuple):
    """The vocabularies of a run."""

    source: Vocabulary
    target: Vocabulary  # the same object if both sides share it
    reading: SourceReader  # reads sources
    run: Path  # which keeps them


def vocabularies(run: Path, data: PairData, *, copies: bool) -> Vocabularies:
    """Read the vocabularies that a run keeps."""
    source, target = vocabulary_paths(run, data)
    first = load_vocabulary(source)
    second = first if source == target else load_vocabulary(target)
    return Vocabularies(first, second, SourceReader(first, cut=data.cut_source, copies=copies), run)


def vocabulary_paths(run: Path, data: PairData) -> tuple[Path, Path]:
    """The run's files of the source and target vocabularies; the same file if they share one."""
    if data.vocabulary.shared:
        return run / "tokenizer.json", run / "tokenizer.json"
    return run / "tokenizer.source.json", run / "tokenizer.target.json"


def learn(data: PairData, texts: Sequence[Any], run: Path, progress: Progress) -> None:
    """Learn the vocabularies of all training texts, and write them into the run."""
    settings = data.vocabulary
    source_path, target_path = vocabulary_paths(run, data)
    progress(LEARNING, 0, None)
    if settings.shared:
        both = (side for pair in chain.from_iterable(texts) for side in pair[1:])
        settings.learn(_reported(both, progress)).save(source_path)
        return
    targets = (target for _, _, target in chain.from_iterable(texts))
    target = settings.learn(_reported(targets, progress))
    sources = (source for _, source, _ in chain.from_iterable(texts))
    source = settings.learn(_reported(sources, progress))
    target.save(target_path)
    source.save(source_path)  # last, since its existence means that both are saved


def _reported(lines: Iterable[str], progress: Progress) -> Iterator[str]:
    """The lines; progress is reported every TOLD lines."""
    for number, line in enumerate(lines, 1):
        if number % TOLD == 0:
            progress(LEARNING, number, None)
        yield line


def stored(
    text: Any, data: PairData, reading: SourceReader, target: Vocabulary, run: Path, progress: Progress
) -> TokenStore:
    """The token store of a training text; an existing one is opened."""
    length = data.max_length
    key = content_key(
        text.files,
        vocabularies=[path.read_text("utf-8") for path in vocabulary_paths(run, data)],
        max_length=length,
        languages=[data.source, data.target],
        reading=[reading.cut, reading.copies],
        **({"hold_out": data.hold_out} if data.hold_out else {}),
        **({"domain": text.domain} if isinstance(text, DomainText) else {}),
    )

    def encode(sources: list[str], targets: list[str]) -> EncodedPairs:
        found = encode_pairs(reading, target, sources, targets)
        return found._replace(cut=reading.num_cut(sources))

    store = built(key, text, encode, length, progress)
    report = store.report
    cut = f", {plural(report['cut'], 'source')} cut after {reading.cut} tokens" if report["cut"] else ""
    name = f" of {text.name}" if data.mixed or data.domains else ""
    progress(
        f"training pairs{name}: {report['kept']:,} of {report['pairs']:,} kept "
        f"({report['too_long']:,} longer than {length} tokens, {report['empty']:,} with an empty side"
        f"{cut})",
        0,
        0,
    )
    return store


def built(
    key: str, text: Any, encode: PairEncoder, length: int, progress: Progress, of: str = ""
) -> TokenStore:
    """The token store with this key; made from the text unless the cache has it."""
    return TokenStore.build(
        cache_directory() / "stores" / key[:32],
        text,
        encode,
        max_length=length,
        key=key,
        progress=lambda lines: progress(f"reading training pairs{of}", lines, None),
    )


def shortlist(known: Vocabularies, data: PairData, progress: Progress) -> Shortlist:
    """The run's shortlist (`decoding.shortlist`); made from the training texts unless the run has it."""
    source, target, reading, run = known
    path, sizes = run / SHORTLIST, (len(source), len(target))
    key = content_key(vocabulary_paths(run, data), cut=reading.cut)
    found = Shortlist.open(path, key, *sizes)
    if found is not None:
        return found
    try:
        texts = data.texts()
    except DataError as error:
        raise CheckpointError(
            f"shortlist: {path} is missing, and so is the training data to make it from; where the data is, "
            f"type `weft evaluate {run} --set shortlist=100` and copy the file ({error})"
        ) from error
    progress(f"making {SHORTLIST} from the training pairs, for decoding.shortlist", 0, None)
    pairs = JoinedStores([stored(text, data, reading, target, run, progress) for text in texts])
    found = Shortlist.learn(pairs, *sizes, shared=source is target)
    found.save(path, key)
    return found


class PairBatch(NamedTuple):
    """Sources and targets for a weft.models.Generator."""

    source: Tensor  # [B, S] int64, padded; or frames or pictures
    source_mask: Tensor  # [B, S] bool
    target_in: Tensor  # [B, T] <sos> w_1 .. w_n
    target_out: Tensor  # [B, T] w_1 .. w_n <eos>
    target_mask: Tensor  # [B, T] bool
    target_tokens: int  # real target positions, with <eos>
    joined: bool = False  # whether a row has more than one pair
    fixed: bool = False  # whether each source has the same places, as pictures do

    def to(self, device: torch.device) -> "PairBatch":
        """The same batch on a device."""
        return to_device(self, device)

    def rows(self, chosen: slice) -> "PairBatch | None":
        """Some rows, with the batch's padding; None if pairs are joined, because rows are not pairs then."""
        if self.joined:
            return None
        tensors = [part[chosen] for part in self[:5]]
        count = int(tensors[4].sum())
        return PairBatch(tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], count, fixed=self.fixed)

    def filled(self) -> "PairBatch":
        """The same batch with masked rows and columns, so that few shapes occur; see train/captured.py.

        A masked row has no targets, and a source as an empty line has, or one silent frame; pictures repeat.
        """
        rows, target = grid(len(self.source)), grid(self.target_in.shape[1])
        found = [fill(part, rows, target) for part in self[2:5]]
        if self.fixed:
            sources = [repeat(part, rows) for part in self[:2]]
        else:
            sources = [fill(part, rows, grid(self.source.shape[1])) for part in self[:2]]
            sources[1][len(self.source) :, 0] = True
        return PairBatch(sources[0], sources[1], found[0], found[1], found[2], *self[5:])


def collate_pairs(
    sources: Sequence[np.ndarray | Sequence[int]], targets: Sequence[np.ndarray | Sequence[int]]
) -> PairBatch:
    """Sources and targets without special symbols to a batch [B, S] and [B, T] with them.

    Example:
        >>> batch = collate_pairs([[4, 5], [6]], [[7], [8, 9]])
        >>> batch.source.tolist(), batch.target_out.tolist()  # [B, S], [B, T]; 3 ends a target
        ([[4, 5], [6, 0]], [[7, 3, 0], [8, 9, 3]])
    """
    source, source_mask = pad(sources)
    lengths = np.fromiter(map(len, targets), np.int64, len(targets))[:, None]
    words = np.concatenate(targets, dtype=np.int64, casting="unsafe")  # an empty list counts as float
    places = np.arange(lengths.max() + 1)
    inside = places < lengths  # [B, T], where target_out has words
    target_in, target_out = (np.full(inside.shape, PAD, dtype=np.int64) for _ in range(2))
    target_in[:, 0] = SOS
    target_in[:, 1:][inside[:, :-1]] = words
    target_out[inside] = words
    np.put_along_axis(target_out, lengths, EOS, 1)
    before, after, mask = map(torch.from_numpy, (target_in, target_out, places <= lengths))
    return PairBatch(source, source_mask, before, after, mask, len(words) + len(lengths))


Row = np.ndarray | Sequence[int]
Pair = tuple[Row, Row]


class AugmentedPairs:
    """Makes batches of pairs, changed as the recipe says while a model is trained.

    A row that would be longer than `longest`, of source and target, is kept. So many `tags` before each
    source, such as its target language, stay, and only pairs with the same ones are joined.
    """

    def __init__(
        self,
        vocabulary: VocabularySettings,
        augment: AugmentSettings,
        source: Vocabulary,
        target: Vocabulary,
        longest: tuple[int, int],
        *,
        tags: int = 0,
    ) -> None:
        self._tags = tags
        self._sides: tuple[SampledPieces, ...] = ()
        self._longest = longest
        self._concatenate = augment.concatenate
        self._noise: Noise | None = None
        if augment.noisy:
            drop, swap, typos = augment.drop_words, augment.swap_words, augment.typos
            self._noise = Noise(source, drop=drop, swap=swap, typos=typos)
        if augment.concatenate:
            augmentation.check_splittable(source)
            self._between = augmentation.space(source), augmentation.space(target)
        if vocabulary.sampled:
            make = partial(SampledPieces, dropout=vocabulary.dropout, alpha=vocabulary.alpha)
            one = make(source)
            self._sides = one, one if target is source else make(target)

    def collate(self, pairs: Sequence[Pair]) -> PairBatch:
        """A batch of pairs, changed by numbers from the open generator; as they are outside of training."""
        count, generator = len(pairs), open_generator()
        steps: list[Callable[[Sequence[Pair], random.Random], Sequence[Pair]]] = []
        steps += [self._joined] if self._concatenate else []
        steps += [self._with_mistakes] if self._noise else []
        steps += [self._segmented] if self._sides else []
        for step in steps if generator is not None else []:
            pairs = step(pairs, random.Random(int(torch.randint(2**62, (), generator=generator))))
        batch = collate_pairs([source for source, _ in pairs], [target for _, target in pairs])
        return batch._replace(joined=len(pairs) < count)

    def _joined(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        """The pairs two by two, in random order, if it is this batch's turn; a long one stays alone."""
        if chance.random() >= self._concatenate:
            return pairs
        heads = [[int(one) for one in source[: self._tags]] for source, _ in pairs]
        order = sorted(chance.sample(range(len(pairs)), len(pairs)), key=lambda number: heads[number])
        found: list[Pair] = [pairs[order[-1]]] if len(pairs) % 2 else []
        for first, second in zip(order[::2], order[1::2], strict=False):
            (source, target), (source2, target2) = pairs[first], pairs[second]
            one = (
                [*source, *self._between[0], *source2[self._tags :]],
                [*target, *self._between[1], *target2],
            )
            fits = all(len(row) <= most for row, most in zip(one, self._longest, strict=True))
            found += [one] if fits and heads[first] == heads[second] else [pairs[first], pairs[second]]
        return found

    def _with_mistakes(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        assert self._noise is not None
        draw, at = self._noise.draw, self._tags
        drawn = [[*source[:at], *draw(source[at:], chance)] for source, _ in pairs]
        return [(self._fitting(0, new, old), target) for new, (old, target) in zip(drawn, pairs, strict=True)]

    def _segmented(self, pairs: Sequence[Pair], chance: random.Random) -> Sequence[Pair]:
        return [
            (
                self._fitting(0, self._sides[0].draw(source, chance), source),
                self._fitting(1, self._sides[1].draw(target, chance), target),
            )
            for source, target in pairs
        ]

    def _fitting(self, side: int, drawn: Row, row: Row) -> Row:
        return drawn if len(drawn) <= self._longest[side] else row
