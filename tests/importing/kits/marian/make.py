"""Train vocab.spm as Marian does and write pieces.json, how the library cuts lines with it.

Needs sentencepiece 0.2.3. Marian itself cannot be installed; see formulas.py.

    python -m tests.importing.kits.marian.make
"""

import io
import json
from pathlib import Path

from weft.data.corpora import corpus

HERE = Path(__file__).parent


def main() -> None:
    import sentencepiece

    pairs = [(one.source, one.target) for one in corpus("libreoffice-help", "es", "en", "train")]
    lines = [side for pair in pairs[:2500] for side in pair]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=160, character_coverage=0.999,
        bos_id=-1, eos_id=0, unk_id=1, pad_id=-1, normalization_rule_name="identity", minloglevel=2,
    )  # fmt: skip
    (HERE / "vocab.spm").write_bytes(out.getvalue())
    spm = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    shown = [*lines[:16], "Ünicode  Ω", ""]
    pieces = [spm.id_to_piece(number) for number in range(spm.get_piece_size())]
    found = {"pieces": pieces, "lines": [[line, spm.encode(line)] for line in shown]}
    (HERE / "pieces.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
