"""Words and what is near them, in a table of word vectors."""

from weft.errors import DataError
from weft.run import Opened
from weft.tasks.shared.inspected.inspected import Kind, Subject, Vectors, checked, example

NEAREST = 10


class EmbeddingsSubject(Kind):
    """The text is words, spaces between them; those without a vector are left out, and named."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        vectors = opened.task.predictor(opened.model)
        asked = text.split()
        known = [word for word in asked if word in vectors]
        if not known:
            raise DataError(
                f"{' '.join(asked)[:60]}: none of these words has a vector, the run knows "
                f"{len(vectors.words):,}; give some of its text"
            )
        rows = [vectors.list.number[vectors.data.word(word)] for word in known]
        near = " ".join(one.word for one in vectors.nearest(known[0], NEAREST))
        unknown = [word for word in asked if word not in vectors]
        left = f" (without a vector: {' '.join(unknown)[:200]})" if unknown else ""
        return Subject(
            opened=opened,
            text=text,
            answer=f"near {known[0]}: {near}{left}",
            vectors=Vectors(vectors.words, vectors.matrix, rows, known, None),
        )
