"""What all formats share: find the format, check first, write beside the target, rename at the end."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from weft import rooms
from weft.errors import ConfigError
from weft.export import formats
from weft.export.format import Format
from weft.run import open_run
from weft.store.files import flush_directory
from weft.store.locks import check_idle


def export_run(
    run: Path, to: str, output: Path | None, int8: bool | None, *, plugins: Collection[str] = ()
) -> Sequence[str]:
    """Export a run to a new directory or, for formats that are one file, a new file.

    Returns:
        The lines of the report.
    """
    form: Format = rooms.find(formats, Format, to)()
    if output is None:
        name = run.resolve().name
        output = Path(f"{name}{form.ending}" if form.ending else f"{name}-{to}")
    if output.exists() or output.is_symlink():
        raise ConfigError(f"--output {output}: already exists; remove it or choose another --output")
    check_idle(run)
    opened = open_run(run, device="cpu", plugins=plugins)
    form.check(opened, int8)
    _check_packages(to, form)
    parent = output.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=parent, prefix=".exporting-"))
    try:
        folder = temporary / output.name
        folder.mkdir()
        lines = form.write(opened, folder, int8)
        os.rename(form.result(folder), output)
    except OSError as error:  # a library may not say which file it could not write
        why = error.strerror or error
        raise ConfigError(
            f"--output {output}: cannot be written ({why}); free some space or choose another --output"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    flush_directory(parent)
    return [*lines, f"written: {output}", *form.hints(output)]


def _check_packages(to: str, form: Format) -> None:
    """Check that the program's libraries are installed: after the run, which may not need them."""
    missing = [name for name in form.packages if importlib.util.find_spec(name) is None]
    if missing:
        names = " and ".join([*filter(None, [", ".join(missing[:-1])]), missing[-1]])
        raise ConfigError(
            f"--to {to}: {names} {'is' if len(missing) == 1 else 'are'} not installed; "
            f"pip install {' '.join(missing)}"
        )
