"""XML of strangers, read safely: no entities, no other files, errors with their line.

Read next: pairs.py; ../documents/markup.py.
"""

import re
from typing import Any

from weft.errors import DataError, library

MOST_TAGS = 1_000_000
"""Maximum number of tags of a document; each takes some 300 bytes of memory."""


_DECLARATION = re.compile(rb"(\xef\xbb\xbf)?<\?xml [^>]*encoding=.utf-8[^>]*\?>\s*", re.IGNORECASE)


def parsed(data: bytes, name: str, part: str = "") -> Any:
    """The root element."""
    etree = library("lxml.etree", "documents", name)
    if (count := data.count(b"<")) > MOST_TAGS:
        raise DataError(
            f"{_where(part)}expected at most {MOST_TAGS:,} tags, got {count:,}; give a part of it", path=name
        )
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise damaged(error, name, part) from None
    check_entities(root, name, part)
    return root


def damaged(error: Any, name: str, part: str = "") -> DataError:
    """The refusal of a file that lxml cannot read; see `parsed`."""
    why = error.msg.partition(", line ")[0]
    return DataError(
        f"{_where(part)}expected well-formed XML ({why}); repair the file or export it again",
        path=name,
        line=error.lineno or None,
    )


def check_entities(element: Any, name: str, part: str = "") -> None:
    """Refuse a document that declares entities; see `parsed`."""
    types = element.getroottree().docinfo.internalDTD
    if types is not None and any(True for _ in types.iterentities()):
        raise DataError(
            f"{_where(part)}expected no entities of its own, got a DOCTYPE that declares some; remove it",
            path=name,
            line=1,
        )


def _where(part: str) -> str:
    return f"{part}: " if part else ""


def written(root: Any) -> bytes:
    """The document of a root element, as UTF-8 with its declaration."""
    etree = library("lxml.etree", "documents", "XML")
    alone = root.getroottree().docinfo.standalone or None
    found: bytes = etree.tostring(
        root.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=alone
    )
    return found


def rewritten(root: Any, before: bytes) -> bytes:
    """The same with the declaration, line ends and last line of the file as it was before."""
    plain = before.replace(b"\r\n", b"\n")
    begin = _DECLARATION.match(plain)
    if begin is None:
        return written(root)
    found = begin[0] + written(root).partition(b"?>\n")[2] + plain[len(plain.rstrip()) :]
    return found if plain == before else found.replace(b"\n", b"\r\n")
