"""Terms of a glossary: how often answers use them, how often they double a word, and what they cost.

    python experiments/terms.py RUN

Of held-back pairs, 300 with a term that is drawn from their references: the word of the source and the word of
the reference that occur together most reliably in the training pairs (Dice's coefficient). The glossary has one
translation for each term, and every pair of the test part with the term has that translation in its reference.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from weft.data.corpora import corpus
from weft.metrics import Chrf
from weft.metrics.scored import scored
from weft.run.loading import open_run
from weft.tasks.seq2seq.glossary import Glossary
from weft.tasks.seq2seq.sections import TranslationSettings
from weft.words import words

LINES, LETTERS, SURE = 300, 4, 0.3


def content(text: str) -> set[str]:
    """The words of a text that may be terms, in lower case."""
    return {word.lower() for word in words(text) if word.isalpha() and len(word) >= LETTERS}


def drawn(pairs: Sequence[tuple[str, str]], known: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Terms and their translations, by the training pairs, that fit all of these pairs."""
    left, right, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for source, target in known:
        sources, targets = content(source), content(target)
        left.update(sources)
        right.update(targets)
        both.update((one, other) for one in sources for other in targets)

    def dice(one: str, other: str) -> float:
        return 2 * both[one, other] / max(1, left[one] + right[other])

    found: dict[str, str] = {}
    wrong = set[str]()
    for source, target in pairs:
        for one in content(source):
            value, best = max(((dice(one, other), other) for other in content(target)), default=(0.0, ""))
            if value < SURE or best == one or found.setdefault(one, best) != best:
                wrong.add(one)
    return {one: other for one, other in found.items() if one not in wrong}


def doubled(plain: str, answer: str, reference: str, terms: Sequence[str]) -> bool:
    """Whether a new term is next to a form of itself, or to all words that were there without it."""
    before, found, wanted = ([word.lower() for word in words(text)] for text in (plain, answer, reference))
    new = [term for term in terms if term not in before and term in found]
    for at in (found.index(term) for term in new):
        near = [*found[max(0, at - 2) : at], *found[at + 1 : at + 3]]
        if any(word[:LETTERS] == found[at][:LETTERS] and word not in wanted for word in near):
            return True
    lost = {word for word in content(plain) if word not in wanted}
    return bool(new and lost) and len(found) > len(before) and lost <= {*found} - {*new}


def main() -> None:
    """Translate without a glossary and with it, and print a row for each."""
    opened = open_run(Path(sys.argv[1]))
    known = [(pair.source, pair.target) for pair in corpus("libreoffice-help", "en", "es", "train")]
    held = [(pair.source, pair.target) for pair in corpus("libreoffice-help", "en", "es", "test")]
    terms = drawn(held, known)
    glossary = Glossary(list(terms.items()))
    pairs = [pair for pair in held if glossary.required(pair[0])][:LINES]
    sources, references = [one for one, _ in pairs], [other for _, other in pairs]
    wanted = [glossary.required(source) for source in sources]
    print(f"{len(pairs)} pairs, {len(terms)} terms, {sum(map(len, wanted))} places")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "terms.tsv"
        path.write_text("".join(f"{one}\t{other}\n" for one, other in terms.items()), "utf-8")
        plain = list[str]()
        for name, given in (("without a glossary", {}), ("with it", {"glossary": path})):
            translator = opened.pipeline.predictor(opened.model, TranslationSettings(search=given))
            answers = list(translator.answers(sources))
            texts = [answer.text() for answer in answers]
            plain = plain or texts
            used = [term in content(text) for text, each in zip(texts, wanted, strict=True) for term in each]
            twice = [doubled(*each) for each in zip(plain, texts, references, wanted, strict=True)]
            named = sum("term" in answer.lost for answer in answers)
            score = scored(Chrf(), texts, references, sources)
            print(
                f"{name}: {sum(used) / len(used):.1%} of terms used, {sum(twice)} answers with a doubled word, "
                f"{named} named, {score.score.value:.2f} [{score.score.low:.2f}, {score.score.high:.2f}] chrF"
            )
            for before, text, reference, each in zip(plain, texts, references, wanted, strict=True):
                if before != text and "-v" in sys.argv:
                    print(
                        "-", each, before, text, reference, doubled(before, text, reference, each), sep="\n  "
                    )


if __name__ == "__main__":
    main()
