"""The page of `weft inspect` over HTTP: of a text, of a file that came along, or of the run's own example.

On the command line a forecaster and a model of pictures or recordings is given the name of a file. Here no
name is ever opened: whoever asks sends the file itself. Read next: files.py; ../inspect/inspection.py.
"""

from typing import Any

from weft.data.held import held
from weft.errors import DataError
from weft.serve.batcher import Stopped, Work
from weft.serve.files import WANTED, check_pixels, limited
from weft.serve.limits import Limits, Refusal
from weft.serve.requests import InspectFile
from weft.serve.served import Served


def inside(run: Served, given: InspectFile, limits: Limits) -> Work:
    """Make the page.

    Args:
        run: with a model.
        given: text; or inputs, a file as base64, for models of pictures and recordings; target, of a model of
            many languages. Without any of them an example that the run was validated on is taken.
        limits: of every request.

    Raises:
        Refusal: a text where a file is needed, or the other way round, or more than one.
    """
    text = limits.text(given.text, "text")
    sent = given.inputs
    if run.reads != "text" and text:
        send = "send a file as base64 in inputs, by POST" if run.reads in WANTED else "leave the text out"
        raise Refusal(
            400, f"text: a run of the kind {run.kind} reads no text; {send}, or see its own example"
        )
    if sent and run.reads not in WANTED:
        raise Refusal(400, f"inputs: a run of the kind {run.kind} reads no file; send a text")
    files = limited(sent, run.reads, limits) if sent else []
    if len(files) > 1:
        raise Refusal(400, f"inputs: expected one file, got {len(files)}")
    wanted = run.rewriter.directed(text, str(given.target)) if run.rewriter else text

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        try:
            if not files:
                return [_page(run, wanted or None)]
            if run.reads == "picture":
                check_pixels(files[0])
            with held(files[0], "inputs: the file") as path:
                return [_page(run, str(path))]
        except DataError as error:  # nobody outside needs to know where a run lies
            raise Refusal(400, str(error).replace(str(run.path), run.name)) from None

    return work


def _page(run: Served, text: str | None) -> str:
    from weft.inspect.inspection import inspected_of, page_of, views_of

    subject = inspected_of(run.opened, text)
    return page_of(run.opened, subject, views_of(run.opened, subject))
