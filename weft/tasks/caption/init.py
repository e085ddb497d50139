"""What `weft init caption` writes: a recipe for a user's pictures, with the reasons as comments."""

from typing import ClassVar

from weft.tasks.shared.pictures.init import CaptionsInit


class Caption(CaptionsInit):
    """A recipe that learns to caption pictures."""

    about: ClassVar[str] = "Captions for pictures."
    largest: ClassVar[int] = 64  # largest side at which a small convolutional net is fast on a CPU
    metric: ClassVar[str] = "cider                     # chooses the best checkpoint; or loss, bleu4, exact"
    decoding: ClassVar[str] = "{beam: 3}"

    def model(self, side: int | None) -> str:
        """A front end for pictures, and a decoder that attends to their places."""
        front = "{use: regions, size: 128}" if side is None else "{use: convolution, sizes: [32, 64, 128]}"
        return f"""model:
  front: {front}   # or patches
  encoder: bag                      # the features of each place, unchanged; or non_local, transformer
  decoder: {{use: recurrent, cell: gru, sizes: [256], score: additive, enters: both, dropout: 0.3}}
  width: 128
  smoothing: 0.1
"""
