"""The table by which a SentencePiece model normalises text: the longest rule at each place, left to right.

The rules lie in a double-array trie over UTF-8 bytes, as Darts writes it, before the texts that they give.
Read next: sentencepiece.py.

Source: SentencePiece, normalizer.cc (NormalizePrefix); Darts-clone, darts.h (units of a double array).
"""

import struct
from string import printable

LONGEST = 64  # bytes of a rule; those of Unicode take less
LONGEST_TEXT = 256  # bytes that a rule may write; those of Unicode take up to 33


class Charsmap:
    """Replaces what the rules of a `precompiled_charsmap` name.

    Args:
        data: the table; empty for none.

    Raises:
        ValueError: it is damaged, or a rule writes a very long text.

    Attributes:
        longest: how many times as long a text may become, at most.
    """

    def __init__(self, data: bytes) -> None:
        if data and (len(data) < 4 or struct.unpack_from("<I", data)[0] > len(data) - 4):
            raise ValueError("its table of characters is cut off")
        size = struct.unpack_from("<I", data)[0] if data else 0
        self._units = struct.unpack(f"<{size // 4}I", data[4 : 4 + size // 4 * 4])
        self._texts = data[4 + size :]
        self.longest = max(1, *map(len, self._texts.split(b"\0")))
        if self.longest > LONGEST_TEXT:
            raise ValueError(
                f"a rule of its table writes {self.longest} bytes, at most {LONGEST_TEXT} may be"
            )
        # Most texts hold nothing else, and are then as they were.
        self._same = {mark for mark in printable if self._rule(mark.encode(), 0)[0] == 0}

    def __call__(self, text: str) -> str:
        """The text after the rules.

        Raises:
            UnicodeEncodeError: it holds half a surrogate pair.
            ValueError: the table is damaged.
        """
        if not self._units or self._same.issuperset(text):
            return text
        raw, made, at = text.encode(), [], 0
        while at < len(raw):
            length, place = self._rule(raw, at)
            if length:
                end = self._texts.find(b"\0", place)
                made.append(self._texts[place : end if end >= 0 else None])
            else:  # one character as it is: its first byte, and those that go on
                length = 1
                while at + length < len(raw) and raw[at + length] & 0xC0 == 0x80:
                    length += 1
                made.append(raw[at : at + length])
            at += length
        return b"".join(made).decode()

    def _rule(self, raw: bytes, at: int) -> tuple[int, int]:
        """How many bytes the longest rule takes that begins here, 0 for none; and where its text begins."""
        if not self._units:
            return 0, 0
        units, found = self._units, (0, 0)
        try:
            node = _offset(units[0])
            for length, byte in enumerate(raw[at : at + LONGEST], 1):
                node ^= byte
                unit = units[node]
                if unit & 0x800000FF != byte:
                    break
                node ^= _offset(unit)
                if unit >> 8 & 1:
                    found = length, units[node] & 0x7FFFFFFF
        except IndexError:
            raise ValueError("its table of characters is damaged") from None
        return found


def _offset(unit: int) -> int:
    return (unit >> 10) << ((unit & (1 << 9)) >> 6)
