"""A map of each word and what is nearest to it."""

from typing import Any

import numpy as np

from weft.figures.answers import Look
from weft.figures.picture import save
from weft.figures.wordmap import word_map
from weft.tasks.embeddings.predictor import WordVectors


class EmbeddingsLook(Look):
    """A picture a line."""

    predictor: WordVectors

    def see(self, look: Any) -> None:
        """Draw one answer."""
        if self.plot is None or self.drawn >= self.limit:
            return
        self.drawn += 1
        asked, words = look
        vectors = np.stack([self.predictor.vector(word) for word in words])
        figure = word_map(words, vectors, title=f"what is near {' '.join(words[:asked])}", marked=asked)
        for suffix in ("png", "svg"):
            save(figure, self.plot / f"{self.drawn}.{suffix}")
