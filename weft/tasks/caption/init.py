"""What `weft init caption` writes: a recipe for a user's pictures, with the reasons as comments."""

from typing import ClassVar

from weft.tasks.shared.pictures.init import CaptionsInit


class Caption(CaptionsInit):
    """Pictures with captions, to learn to write the captions."""

    about: ClassVar[str] = "Captions for pictures."
    largest: ClassVar[int] = 64  # up to which a small convolution net is quick on a processor
    metric: ClassVar[str] = (
        "cider                     # what chooses the best checkpoint; also loss, bleu4, exact"
    )
    decoding: ClassVar[str] = "{beam: 3}"

    def model(self, side: int | None) -> str:
        """A front for pictures, and a decoder that looks at their places."""
        front = "{use: regions, size: 128}" if side is None else "{use: convolution, sizes: [32, 64, 128]}"
        return f"""model:
  front: {front}   # also patches
  encoder: bag                      # the places as they are; also non_local, transformer
  decoder: {{use: recurrent, cell: gru, sizes: [256], score: additive, enters: both, dropout: 0.3}}
  width: 128
  smoothing: 0.1
"""
