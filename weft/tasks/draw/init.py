"""What `weft init draw` writes: a recipe for a user's pictures, with the reasons as comments."""

from typing import ClassVar

from weft.tasks.shared.pictures.init import CaptionsInit


class Draw(CaptionsInit):
    """Pictures with captions, to learn to draw the pictures."""

    about: ClassVar[str] = "Pictures for captions."
    largest: ClassVar[int] = 32
    metric: ClassVar[str] = "loss"
    decoding: ClassVar[str] = "{search: sample, temperature: 1.0, seed: 1}"

    def model(self, side: int | None) -> str:
        """An encoder of the caption, and a decoder that writes tiles."""
        return """  tile: 4                           # pixels of a side of what is written at a time
  tiles: 512                        # different ones at most, chosen from the training pictures
model:
  encoder: {use: recurrent, cell: gru, sizes: [96], bidirectional: true}
  decoder: {use: transformer, size: 128, num_layers: 2, num_heads: 4, dropout: 0.1, positions: learned}
"""
