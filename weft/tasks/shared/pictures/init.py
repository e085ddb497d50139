"""What `weft init caption`, `images` and `draw` write: recipes for a user's pictures, with the reasons."""

from collections import Counter
from pathlib import Path
from statistics import median

from weft.data.captions import SAID, Captioned, read_captions
from weft.data.images import is_clip, read_clip, read_folders
from weft.data.lines import read_lines
from weft.errors import ConfigError, DataError
from weft.tasks.shared.pictures.data import read
from weft.tasks.translate.init import VALID_NAMES, quoted

LARGEST = 64
"""Pixels of a side up to which a small convolution net is quick on a processor."""


def caption_recipe(
    train: Path, valid: Path | None, test: Path | None, images: Path | None, *, draws: bool = False
) -> str:
    """A commented recipe for pictures with captions.

    Args:
        train, valid, test: captions files; the last two are looked for beside the first if None, or are
            the first where its records say their split.
        images: folder of the pictures.
        draws: captions become pictures instead.

    Raises:
        ConfigError: there are no validation captions.
        DataError: files are missing or damaged.
    """
    valid = valid or _beside(train, VALID_NAMES) or _itself(train, "valid")
    test = test or _beside(train, ("test",)) or _itself(train, "test")
    if valid is None:
        raise ConfigError(f"no validation captions stand beside {train}; name them with --valid")
    found = read_captions(train, images, split="train")
    captions = [caption for one in found for caption in one.captions]
    longest = max(len(caption.split()) for caption in captions)
    side = _side(found, 32 if draws else LARGEST)
    folder = f"\n  images: {quoted(images)}" if images else ""
    tested = f"  test: {quoted(test)}" if test else "  # test: path/test.tsv            for `weft evaluate`"
    epochs = max(4, min(60, 80_000 // len(captions)))
    size = f"  size: {side}                          # pixels of a side; every picture is scaled to it\n"
    if side is None:
        size = "  # given features: nothing is scaled\n"
    head = f"""# {len(found):,} pictures with {len(captions):,} captions (the longest has {longest} words).
# Written by `weft init`; every line may be changed.
#   weft train THIS-FILE
task: {"draw" if draws else "caption"}
data:
  train: {quoted(train)}{folder}
  valid: {quoted(valid)}
{tested}
{size}  vocabulary: {{kind: word, size: null, lowercase: true}}   # also character, bpe
  max_length: {max(10, longest + 4)}                    # tokens of a caption
  batch_rows: 64
"""
    front = "{use: regions, size: 128}" if side is None else "{use: convolution, sizes: [32, 64, 128]}"
    if draws:
        model = """  tile: 4                           # pixels of a side of what is written at a time
  tiles: 512                        # different ones at most, chosen from the training pictures
model:
  encoder: {use: recurrent, cell: gru, sizes: [96], bidirectional: true}
  decoder: {use: transformer, size: 128, num_layers: 2, num_heads: 4, dropout: 0.1, positions: learned}
"""
    else:
        model = f"""model:
  front: {front}   # also patches
  encoder: bag                      # the places as they are; also non_local, transformer
  decoder: {{use: recurrent, cell: gru, sizes: [256], score: additive, enters: both, dropout: 0.3}}
  width: 128
  smoothing: 0.1
"""
    metric = (
        "loss"
        if draws
        else "cider                     # what chooses the best checkpoint; also loss, bleu4, exact"
    )
    return f"""{head}{model}training:
  optimiser: {{use: adamw, lr: 0.001, weight_decay: 0.01}}
  schedule: {{use: cosine, warmup: 100}}
  max_epochs: {epochs}
  metric: {metric}
  patience: 6
  seed: 1
decoding: {"{search: sample, temperature: 1.0, seed: 1}" if draws else "{beam: 3}"}
"""


def images_recipe(train: Path, valid: Path | None, test: Path | None) -> str:
    """A commented recipe for pictures or clips in a folder for each class.

    Raises:
        DataError: folders are missing, or hold one class only.
    """
    valid = valid or _folder_beside(train, VALID_NAMES)
    test = test or _folder_beside(train, ("test",))
    found = read_folders(train)
    counts = Counter(one.label for one in found)
    if len(counts) < 2:
        raise DataError(
            f"{train}: {len(counts)} class was found, two or more are needed; see weft data check"
        )
    clips = is_clip(found[0].path)
    shapes = [(read_clip if clips else lambda path: read(path, None))(one.path).shape for one in found[:20]]
    side = _rounded(median(max(shape[-3:-1]) for shape in shapes), LARGEST)
    frames = (
        f"  frames: {min(shape[0] for shape in shapes)}                         # of a clip, evenly apart\n"
    )
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(6))
    chosen = (
        f"  valid: {quoted(valid)}"
        if valid
        else "  hold_out: 10                      # a tenth of the pictures chooses the checkpoint\n"
        "  split_seed: 1                     # shuffled first, every class in proportion"
    )
    tested = f"  test: {quoted(test)}" if test else "  # test: path/test                 for `weft evaluate`"
    return f"""# {len(counts)} classes, {len(found):,} {"clips" if clips else "pictures"}: {shown}.
# Written by `weft init`; every line may be changed.
#   weft train THIS-FILE
task: images
data:
  train: {quoted(train)}
{chosen}
{tested}
  size: {side}                          # pixels of a side; every picture is scaled to it
{frames if clips else ""}  batch_rows: 32
model:
  # also patches with encoder: {{use: transformer, ...}}; non_local: [2] puts a block after the second stage
  front: {{use: convolution, sizes: [32, 64, 128], non_local: [2]}}
  encoder: bag                      # the places as they are
  pool: mean
training:
  optimiser: {{use: adamw, lr: 0.001, weight_decay: 0.01}}
  schedule: {{use: cosine, warmup: 50}}
  max_epochs: {max(4, min(60, 40_000 // len(found)))}
  metric: accuracy                  # what chooses the best checkpoint; also loss, f1
  patience: 8
  seed: 1
"""


def _beside(train: Path, names: tuple[str, ...]) -> Path | None:
    for name in names:
        candidate = train.with_name(train.name.replace("train", name))
        if candidate != train and candidate.is_file():
            return candidate
    return None


def _folder_beside(train: Path, names: tuple[str, ...]) -> Path | None:
    found = [train.with_name(name) for name in names if train.with_name(name).is_dir()]
    return found[0] if found else None


def _itself(train: Path, split: str) -> Path | None:
    """A .jsonl whose records say their split holds the others too."""
    if train.suffix.lower() != ".jsonl":
        return None
    said = (f'"split": "{name}"' for name, known in SAID.items() if known == split)
    wanted = tuple(said)
    return train if any(any(each in line for each in wanted) for line in read_lines(train)) else None


def _side(found: list[Captioned], most: int) -> int | None:
    if found[0].path.suffix.lower() == ".npy":
        return None
    return _rounded(median(max(read(one.path, None).shape[:2]) for one in found[:20]), most)


def _rounded(side: float, most: int) -> int:
    """A multiple of 8 that is not larger than needed."""
    return int(max(8, min(most, 8 * round(side / 8))))
