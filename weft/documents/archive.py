"""Zip archives of strangers, such as .docx and .odt, within limits. Read next: docx.py; odt.py."""

import io
import zipfile
import zlib
from collections.abc import Mapping

from weft.errors import DataError

LARGEST = 200 * 2**20
"""Maximum bytes of all files of an archive, unpacked."""

MOST = 5000
"""Maximum number of files in an archive."""


def unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """The files of an archive by name, in its order."""
    found: dict[str, bytes] = {}
    left = LARGEST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MOST:
                raise DataError(
                    f"expected at most {MOST:,} files in the archive, got {len(members):,}", path=name
                )
            for member in members:
                with archive.open(member) as file:  # the size that it declares may be wrong
                    found[member.filename] = file.read(left + 1)
                left -= len(found[member.filename])
                if left < 0:
                    raise DataError(
                        f"the archive has more than {LARGEST // 2**20} MiB unpacked; give a smaller file",
                        path=name,
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise DataError(f"not a readable archive ({error}); save the file again", path=name) from None
    return found


def packed(files: Mapping[str, bytes]) -> bytes:
    """An archive; a file called mimetype is first and not compressed, as OpenDocument requires."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files, key=lambda one: one != "mimetype"):
            how = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), files[name], how)
    return out.getvalue()
