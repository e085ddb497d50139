"""How pairs of texts become tokens and batches: vocabularies, the reader of sources, the store, tensors.

A source is read whole or cut, with unknown words that the output may copy. A pointer
(../../nn/decoders/pointer.py) copies words that the vocabulary does not have. So that they can be written,
the unknown pieces of each text get numbers after those of the vocabulary, in order of appearance: the
extended vocabulary of See et al. The numbers are valid for that text only.

In training, pairs may be joined, sources get mistakes, texts get other segmentations. These random changes
depend only on the seed, the epoch and the batch, so a resumed training repeats them; validation and use
change nothing.
Read next: translator.py; ../../data/store.py; ../../text/vocabulary.py, ../../text/augmentation.py.

Source: Kondo et al. 2021, "Sentence Concatenation Approach to Data Augmentation for Neural Machine
Translation"; Nguyen, Murray and Chiang 2021, "Data Augmentation by Concatenation for Low-Resource
Translation". They add joined pairs to the training text; we join those of a batch, which costs no time.
"""

import random
from abc import ABC, abstractmethod
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
from weft.search.offered import Decoding
from weft.store.files import cache_directory
from weft.tasks.seq2seq.glossary import DomainText, in_domain, read_glossary
from weft.tasks.seq2seq.sections import AugmentSettings, PairData, VocabularySettings
from weft.tasks.task import Progress
from weft.text import augmentation
from weft.text.augmentation import Noise, SampledPieces
from weft.text.loading import load_vocabulary
from weft.text.vocabulary import EOS, PAD, SOS, UNK, Vocabulary, Word
from weft.wording import plural


class SourceVocabulary(ABC):
    """What a translator requires of its source vocabulary; `base` numbers the pieces."""

    base: Vocabulary

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of many texts."""

    @abstractmethod
    def extended(self, pieces: Sequence[str]) -> "SourceVocabulary":
        """The same with more pieces, numbered after those of the vocabulary."""

    def encode(self, text: str) -> list[int]:
        """The numbers of one text."""
        return self.encode_batch([text])[0]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are shown."""
        return self.base.pieces(ids)

    def words(self, ids: Sequence[int], text: str | None = None) -> list[Word]:
        """The words with the positions of their pieces."""
        return self.base.words(ids, text)

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text that the output may copy, in the order of their numbers."""
        return ()


class SourceReader(SourceVocabulary):
    """A vocabulary that reads the first tokens of a source and numbers its unknown pieces if it copies."""

    def __init__(self, vocabulary: Vocabulary, *, cut: int | None, copies: bool) -> None:
        self.base = vocabulary
        self.cut = cut
        self.copies = copies
        # Imported models expect symbols at the end of a text, also of one that is cut.
        self._end = [] if cut is None else vocabulary.encode("")[len(vocabulary.begin()) :]

    def __str__(self) -> str:
        cut = "whole sources" if self.cut is None else f"the first {plural(self.cut, 'token')} of a source"
        return f"{cut}, {'unknown words to be copied' if self.copies else 'nothing to be copied'}"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = [self._shortened(row) for row in self.base.encode_batch(texts)]
        if self.copies:
            for place, row in enumerate(rows):
                if UNK in row:
                    rows[place] = self._named(row, texts[place])[0]
        return rows

    def num_cut(self, texts: Sequence[str]) -> int:
        """How many texts are cut."""
        if self.cut is None:
            return 0
        return sum(len(row) > self.cut for row in self.base.encode_batch(texts))

    def counted(self, target: Vocabulary) -> PairEncoder:
        """An encoder of pairs, see `encode_pairs`, that also counts the sources it cuts."""

        def encode(sources: list[str], targets: list[str]) -> EncodedPairs:
            found = encode_pairs(self, target, sources, targets)
            return found._replace(cut=self.num_cut(sources))

        return encode

    def copyable(self, text: str) -> Sequence[str]:
        """The unknown pieces of a text after cutting, each once."""
        if not self.copies:
            return ()
        row = self._shortened(self.base.encode(text))
        return self._named(row, text)[1] if UNK in row else ()

    def extended(self, pieces: Sequence[str]) -> "SourceReader":
        return SourceReader(self.base.extended(pieces), cut=self.cut, copies=False)

    def _shortened(self, row: list[int]) -> list[int]:
        if self.cut is None or len(row) <= self.cut:
            return row
        return (
            [*row[: self.cut - len(self._end)], *self._end] if len(self._end) < self.cut else row[: self.cut]
        )

    def _named(self, row: list[int], text: str) -> tuple[list[int], list[str]]:
        unknown = iter(self.base.unknown(text))
        size, numbers = len(self.base), dict[str, int]()
        found = [
            number if number != UNK else numbers.setdefault(next(unknown), size + len(numbers))
            for number in row
        ]
        return found, list(numbers)


class AnnotatingReader(SourceVocabulary):
    """Another reading that also reads what is written into its sources: a domain, translations of terms."""

    def __init__(self, reading: SourceVocabulary, annotated: Callable[[str], str]) -> None:
        self._reading, self._annotated, self.base = reading, annotated, reading.base

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self._reading.encode_batch([*map(self._annotated, texts)])

    def copyable(self, text: str) -> Sequence[str]:
        return self._reading.copyable(self._annotated(text))

    def extended(self, pieces: Sequence[str]) -> SourceVocabulary:
        return self._reading.extended(pieces)


def annotating(reading: SourceVocabulary, how: Decoding) -> SourceVocabulary:
    """The reading, with the domain and the terms that the settings of a search write into sources."""
    if how.domain:
        reading = AnnotatingReader(reading, partial(in_domain, how.domain))
    if how.terms == "annotate" and how.glossary is not None:
        reading = AnnotatingReader(reading, read_glossary(how.glossary).annotated)
    return reading


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
    store = built(key, text, reading.counted(target), length, progress)
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


def pad(rows: Sequence[Sequence[int] | np.ndarray], width: int | None = None) -> tuple[Tensor, Tensor]:
    """Token lists to [B, S] int64 and their mask [B, S]; S is the longest row by default."""
    lengths = _lengths(rows)
    places = np.arange(width or max(1, lengths.max()))
    tokens = np.full((len(rows), len(places)), PAD, dtype=np.int64)
    tokens[places < lengths[:, None]] = _joined(rows)
    return torch.from_numpy(tokens), torch.from_numpy(places < np.maximum(lengths, 1)[:, None])


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
    lengths, words = _lengths(targets)[:, None], _joined(targets)
    places = np.arange(lengths.max() + 1)
    inside = places < lengths  # [B, T], where target_out has words
    target_in, target_out = (np.full(inside.shape, PAD, dtype=np.int64) for _ in range(2))
    target_in[:, 0] = SOS
    target_in[:, 1:][inside[:, :-1]] = words
    target_out[inside] = words
    np.put_along_axis(target_out, lengths, EOS, 1)
    before, after, mask = map(torch.from_numpy, (target_in, target_out, places <= lengths))
    return PairBatch(source, source_mask, before, after, mask, len(words) + len(lengths))


def _lengths(rows: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _joined(rows: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    """The tokens of all rows, [N]."""
    return np.concatenate(rows, dtype=np.int64, casting="unsafe")  # an empty list counts as float


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
