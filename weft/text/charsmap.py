"""The normalisation table of a SentencePiece model: the longest matching rule wins, from left to right.

The rules are a double-array trie over UTF-8 bytes, in the format of Darts, followed by the replacement texts.
Read next: sentencepiece.py.

Source: SentencePiece, normalizer.cc (NormalizePrefix); Darts-clone, darts.h (units of a double array).
"""

import struct
from string import printable

LONGEST = 64  # bytes matched by a rule; Unicode's rules need fewer
LONGEST_TEXT = 256  # bytes that a rule may write; Unicode's rules write up to 33


class Charsmap:
    """Applies the rules of a `precompiled_charsmap`.

    Args:
        data: the table; empty for no rules.

    Raises:
        ValueError: the table is damaged, or a rule writes a very long text.

    Attributes:
        longest: the maximum factor by which a text may grow.
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
        # A shortcut: most texts consist only of characters that no rule changes.
        self._same = {mark for mark in printable if self._rule(mark.encode(), 0)[0] == 0}

    def __call__(self, text: str) -> str:
        """The text after the rules.

        Raises:
            UnicodeEncodeError: the text contains half a surrogate pair.
            ValueError: the table is damaged.
        """
        if not self._units or self._same.issuperset(text):
            return text
        raw, parts, at = text.encode(), [], 0
        while at < len(raw):
            length, place = self._rule(raw, at)
            if length:
                end = self._texts.find(b"\0", place)
                parts.append(self._texts[place : end if end >= 0 else None])
            else:  # copy one character: its first byte and the continuation bytes
                length = 1
                while at + length < len(raw) and raw[at + length] & 0xC0 == 0x80:
                    length += 1
                parts.append(raw[at : at + length])
            at += length
        return b"".join(parts).decode()

    def _rule(self, raw: bytes, at: int) -> tuple[int, int]:
        """Bytes matched by the longest rule at this position (0 for none), and the offset of its text."""
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
