"""A sentence and a tag for each of its words."""

import torch

from weft.inspect.subjects.subject import Kind, Subject, Vectors, checked, choices_of, example, table_of
from weft.run import Opened
from weft.tasks.labels.batch import LabelBatch


class TagSubject(Kind):
    """Words stand between spaces."""

    def read(self, opened: Opened, text: str | None) -> Subject:
        """See Kind."""
        text = checked(example(opened) if text is None else text)
        words = text.split()
        tagger = opened.task.predictor(opened.model)
        lexicon, model = tagger.lexicon, tagger.model
        device = next(model.parameters()).device
        spelled, mask = lexicon.spell([words])
        spelled, mask = spelled.to(device), mask.to(device)
        with torch.no_grad():
            h, mask = model.features(spelled, mask)
            best = model.head.best(h, mask)
            logp = model.head(h)[0]
        numbers = best[0].tolist()
        tags = [lexicon.tags[number] for number in numbers]
        table = table_of(model.embed, lexicon.num_words)
        vectors = None
        if table is not None:
            rows = spelled.words[0].tolist()
            names = ["<pad>", "<unk>", *lexicon.words]
            vectors = Vectors(names, table, rows, words, h[0].float().cpu().numpy())
        return Subject(
            opened=opened,
            text=text,
            answer=" ".join(tags),
            source=words,
            batch=LabelBatch(spelled, mask, best, len(words)),
            choices=choices_of(logp, numbers, lexicon.tags, words),
            chosen_what="the tag of each word",
            vectors=vectors,
        )
