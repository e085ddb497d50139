"""What `weft init draw` writes: a recipe for a user's pictures, with the reasons as comments."""

from typing import ClassVar

from weft.tasks.shared.pictures.init import CaptionsInit


class Draw(CaptionsInit):
    """A recipe that learns to draw pictures from their captions."""

    about: ClassVar[str] = "Pictures for captions."
    largest: ClassVar[int] = 32
    metric: ClassVar[str] = "loss"
    decoding: ClassVar[str] = "{search: sample, temperature: 1.0, seed: 1}"

    def model(self, side: int | None) -> str:
        """An encoder for the caption and a decoder that writes tiles."""
        return """  tile: 4                           # side of a tile in pixels; one tile is drawn at a time
  tiles: 512                        # maximum size of the palette, learnt from the training pictures
model:
  encoder: {use: recurrent, cell: gru, sizes: [96], bidirectional: true}
  decoder: {use: transformer, size: 128, num_layers: 2, num_heads: 4, dropout: 0.1, positions: learned}
"""
