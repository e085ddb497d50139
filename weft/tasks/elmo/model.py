"""A recipe's section `model` for ELMo, and the file from which another task builds the model again."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from weft.errors import ConfigError
from weft.nn.embed.contextual import BothWays
from weft.setting_types import Count, DropoutRate, Size
from weft.store import jsonfile
from weft.tasks.lexicon import Lexicon

LEXICON, SIZES = "tokenizer.elmo.json", "tokenizer.elmo-sizes.json"


@dataclass(frozen=True, kw_only=True)
class ElmoModel:
    """Two language models, forward and backward.

    Args:
        size: H, of every layer in each direction.
        num_layers: L.
        letter_size: features of a letter.
        spelled: number of filters over letters.
        residual: layers above the first add their input to their output.
        dropout: of the input of every layer and of the softmax.
    """

    size: Size = 256
    num_layers: Count = 2
    letter_size: Size = 16
    spelled: int = 128
    residual: bool = True
    dropout: DropoutRate = 0.1

    def __post_init__(self) -> None:
        for name in ("size", "num_layers", "letter_size", "spelled"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout: expected a share from 0 to below 1, got {self.dropout}")

    def build(self, num_words: int, num_letters: int) -> BothWays:
        """A new model."""
        return BothWays(
            num_words,
            num_letters,
            self.size,
            num_layers=self.num_layers,
            letter_size=self.letter_size,
            spelled=self.spelled,
            residual=self.residual,
            dropout=self.dropout,
        )


class Elmo(NamedTuple):
    """The vocabulary and sizes from which another task builds the model again."""

    lexicon: Lexicon
    sizes: ElmoModel

    def save(self, folder: Path) -> None:
        """Write two files into a run directory."""
        self.lexicon.save(folder / LEXICON)
        jsonfile.save(folder / SIZES, asdict(self.sizes))

    @classmethod
    def load(cls, folder: Path) -> "Elmo":
        """Read what `save` wrote.

        Raises:
            CheckpointError: the folder is no run of the task elmo, or damaged.
        """
        remedy = "this is not a run of the task elmo; train one with recipes/elmo"
        sizes = jsonfile.load(folder / SIZES, ElmoModel, remedy)
        return cls(Lexicon.load(folder / LEXICON), sizes)

    def model(self) -> BothWays:
        """A new model of these sizes."""
        return self.sizes.build(self.lexicon.num_words, self.lexicon.num_letters)
