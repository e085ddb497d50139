"""What a student was distilled from: teacher.json in its run, and in the corpus that the teacher wrote.

Read next: ../commands/distill.py, which trains students; card.py, which shows the teacher.
"""

from pathlib import Path

from weft.errors import CheckpointError
from weft.store import jsonfile
from weft.store.files import is_file

FILE = "teacher.json"


class Teacher(jsonfile.Schema):
    """The run that wrote the targets of a corpus, and how."""

    run: str  # absolute path
    weights: str  # SHA-256 of its model.safetensors
    about: str  # its task and data
    decoding: str  # its search settings
    sources: list[str]  # the texts that it read
    ensemble: list[str] = jsonfile.field(default_factory=list)  # further runs that it was averaged with
    files: dict[str, list[list[str]]] = jsonfile.field(
        default_factory=dict
    )  # digests of files and runs it used
    mixed: bool = False  # whether the student was trained on original pairs too

    def save(self, folder: Path) -> None:
        """Write it into a folder, atomically."""
        jsonfile.save(folder / FILE, jsonfile.plain(self))

    def paragraph(self) -> str:
        """Teacher and settings for a model card."""
        also = ", together with the original pairs" if self.mixed else ""
        others = f" in an ensemble with {', '.join(self.ensemble)}" if self.ensemble else ""
        return (
            f"The training targets were written by a teacher, the run `{self.run}` ({self.about}){others}: "
            f"{self.decoding}, for the sources of {', '.join(self.sources)}{also}. "
            f"SHA-256 of the teacher's weights: `{self.weights}`."
        )


def teacher_of(folder: Path) -> Teacher | None:
    """The teacher of a run or a corpus; None if it has none."""
    if not is_file(folder / FILE):
        return None
    return jsonfile.load(folder / FILE, Teacher, "remove it, or distill again", error=CheckpointError)
