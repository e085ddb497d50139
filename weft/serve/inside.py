"""The page of `weft inspect` over HTTP, for a text, an uploaded file, or an example of the run's own.

On the command line, models of pictures and recordings read the file with a given name. The server never opens
files by name: clients send the content. Read next: files.py; ../inspect/inspection.py.
"""

from typing import Any

from weft.data.held import held
from weft.errors import DataError
from weft.serve.files import WANTED, check_pixels, limited
from weft.serve.job import Stopped, Work
from weft.serve.limits import Refusal, ServerLimits
from weft.serve.schemas import InspectFile
from weft.serve.served import ServedRun


def inside(run: ServedRun, given: InspectFile, limits: ServerLimits) -> Work:
    """The work that makes the page.

    Args:
        run: a run with a model.
        given: text; or inputs, a file as base64, for models of pictures and recordings; and target, for
            multilingual models. Without them the page shows an example from the validation data.
        limits: limits of requests.

    Raises:
        Refusal: a text instead of a file, a file instead of a text, or several files.
    """
    text = limits.text(given.text, "text")
    sent = given.inputs
    if run.reads != "text" and text:
        send = "POST a file as base64 in inputs" if run.reads in WANTED else "omit text"
        raise Refusal(
            400, f"text: the task {run.kind} does not read text; {send}, or omit everything for an example"
        )
    if sent and run.reads not in WANTED:
        raise Refusal(400, f"inputs: the task {run.kind} does not read files; send text")
    files = limited(sent, run.reads, limits) if sent else []
    if len(files) > 1:
        raise Refusal(400, f"inputs: expected one file, got {len(files)}")
    wanted = run.rewriter.with_direction(text, str(given.target)) if run.rewriter else text

    def work(items: list[Any], stopped: Stopped) -> list[Any]:
        try:
            if not files:
                return [_page(run, wanted or None)]
            if run.reads == "picture":
                check_pixels(files[0])
            with held(files[0], "inputs: the file") as path:
                return [_page(run, str(path))]
        except DataError as error:  # clients must not learn the path of a run
            raise Refusal(400, str(error).replace(str(run.path), run.name)) from None

    return work


def _page(run: ServedRun, text: str | None) -> str:
    from weft.inspect.inspection import inspection_of, page_of, views_of

    subject = inspection_of(run.opened, text)
    return page_of(run.opened, subject, views_of(run.opened, subject))
