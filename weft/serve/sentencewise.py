"""The events of the page for a text of several sentences: they are translated one by one, as by /translate.

Read next: watching.py, the events of one sentence; ../documents/plan.py.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.documents.plain import Plain
from weft.documents.plan import DocumentPlan
from weft.documents.segments import WrittenSentence
from weft.errors import DataError, ShapeError
from weft.serve.answers import translator
from weft.serve.edits import ModelEdits, without
from weft.serve.job import Stopped
from weft.serve.limits import Refusal
from weft.serve.served import ServedRun
from weft.tasks.remarks import Remarks
from weft.tasks.seq2seq.translator import SearchResult, Translator


class SentencewiseText:
    """A text of several sentences.

    Args:
        text: what was typed.
        source, target: language codes.
    """

    def __init__(self, text: str, source: str, target: str) -> None:
        self._plain = Plain(text)
        self._plan = DocumentPlan(self._plain.segments, source, target)
        self.sentences = [one.text for one in self._plan.sentences]

    def joined(self, translations: list[str]) -> str:
        """The translation of the text; sentences without one are left out."""
        missing = [""] * (len(self.sentences) - len(translations))
        return self._plain.written(
            self._plan.joined([WrittenSentence(one) for one in [*translations, *missing]])
        )


def several(
    run: ServedRun, text: str, target: str, prefix: str, edits: ModelEdits
) -> SentencewiseText | None:
    """The sentences of a text for a translator; None for one sentence, and where a search is changed.

    Args:
        run: a run with a model.
        text: what was typed.
        target: a target language of the run.
        prefix: how the answer must begin.
        edits: changes to the model.
    """
    source = next((reads for reads, writes in run.directions() if writes == target), None)
    if source is None or prefix or edits.looks:
        return None
    found = SentencewiseText(text, source, target)
    return found if len(found.sentences) > 1 else None


def translate_each(
    run: ServedRun,
    text: SentencewiseText,
    given: dict[str, Any],
    emit: Callable[[dict[str, Any]], None],
    stopped: Stopped,
) -> None:
    """Translate the sentences and report the text so far after each of them.

    Args:
        run: a translator.
        text: the sentences.
        given: the checked request: target, beam, edits.
        emit: called with each event.
        stopped: tells whether the client has left.

    Raises:
        Refusal: a sentence cannot be translated.
    """
    assert run.rewriter is not None
    own, beam = run.rewriter.decoding, given["beam"]
    decoding = replace(own, search="beam", beam=beam, nbest=1, diverse=1, require=())
    model: Any = without(run, given["edits"])
    used = translator(run, given["target"], decoding, stopped, model)
    found: list[str] = []
    remarks = Remarks()
    for sentence in text.sentences:
        ((_, (best, *_)),) = _answered(used, sentence)
        lacking = used.lacking(sentence)
        lacked = used.lacked if lacking else ""
        remarks.see(repr(sentence[:40]), lost=best.lost, lacking=lacking, lacked=lacked)
        found.append(best.text)
        emit({"event": "draft", "text": text.joined(found)})
    pairs = [list(pair) for pair in zip(text.sentences, found, strict=True)]
    done = {"event": "done", "kind": run.kind, "text": text.joined(found), "sentences": pairs}
    emit({**done, "notes": remarks.lines()})


def _answered(used: Translator, sentence: str) -> list[tuple[str, list[SearchResult]]]:
    try:
        return list(used.pairs([sentence]))
    except (DataError, ShapeError) as error:
        raise Refusal(400, f"the sentence {sentence[:40]!r}: {error}") from error
