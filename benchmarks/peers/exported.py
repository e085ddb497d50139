"""CTranslate2 with the weights that Weft trained, as `weft export --to ctranslate2` writes them.

Its outputs are as good as Weft's, so that speed can be compared at equal quality; beside the hybrid it has
the Transformer of the run before. Needs ctranslate2 beside Weft too, which converts the weights.
"""

from pathlib import Path

from peers.ctranslate2 import CTranslate2
from peers.engine import EXPORTED


class Exported(CTranslate2):
    """ctranslate2.Translator with Weft's weights."""

    def load(self, folder: Path) -> None:
        if not (folder / EXPORTED / "model.bin").exists():
            raise ValueError("exported: nothing was converted; pip install ctranslate2==4.8.5 beside Weft")
        self.open(folder / EXPORTED)
