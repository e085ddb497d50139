"""What the served runs accept, added to the schemas of requests: languages, inputs, layers.

A client that reads the description then knows what this server answers. Read next: openapi.py.
"""

import bisect
from collections.abc import Mapping
from typing import Any

from weft.errors import DataError
from weft.serve.continuing import writer_of
from weft.serve.files import WANTED
from weft.serve.limits import BEAM
from weft.serve.served import ServedRun

WORDS = {"type": "string", "pattern": r"\S"}
FILE = {"type": "string", "contentEncoding": "base64", "minLength": 1}
NUMERIC = ("integer", "number")
NULL = {"type": "null"}
REQUESTS = ("Translate", "Complete", "Watch")
NUMBERS = {"anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 1}, WORDS]}


def narrowed(components: dict[str, Any], runs: Mapping[str, ServedRun], items: int) -> None:
    """Limit the fields of requests to what the runs accept, in place.

    Args:
        components: schemas by name.
        runs: name to run.
        items: maximum number of texts or choices of a request.
    """
    for form in (components[one] for one in REQUESTS if one in components):
        _nullable(form)
    components["Translate"]["properties"]["q"]["anyOf"][0]["minLength"] = 1
    ready = [run for run in runs.values() if run.ready]
    directions = sorted({pair for run in ready for pair in run.directions()})
    if directions:
        _languages(components["Translate"], directions)
        file = components["TranslateFile"]["properties"]
        file["source"]["enum"] = ["auto", *sorted({source for source, _ in directions})]
        file["target"]["enum"] = sorted({target for _, target in directions})
    _watched(components["Watch"], ready)
    _inspected(components["InspectFile"], ready)
    _completed(components["Complete"], [run for run in ready if run.continues], items)
    predicting = [run for run in ready if run.predicts]
    if predicting:
        _inputs(components["Predict"], predicting)
    elif ready:  # their answers have other addresses
        components["Predict"]["not"] = _fields(run={"enum": [run.name for run in ready]})


def as_text(form: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form or query string: it has no null, and a list of one text is a text."""
    fields = {}
    for name, schema in form["properties"].items():
        first, *others = schema.get("anyOf", [schema])
        if "type" in first:
            others = [one for one in others if one != NULL]
        if "minLength" in first and others and others[0].get("type") == "array":
            others[0] = {**others[0], "items": {**others[0]["items"], "minLength": 1}}
        about = {key: value for key, value in schema.items() if key != "anyOf"}
        fields[name] = {**about, "anyOf": [first, *others]} if others else {**about, **first}
    found = {**form, "properties": fields}
    if "anyOf" in form:
        found["anyOf"] = [_without_null(one) for one in form["anyOf"]]
    return found


def _without_null(case: dict[str, Any]) -> dict[str, Any]:
    fields = {name: False if schema == NULL else schema for name, schema in case["properties"].items()}
    return {**case, "properties": fields}


def _nullable(form: dict[str, Any]) -> None:
    """Say that a null number counts as missing, see `forms.read`."""
    for name, schema in form["properties"].items():
        if schema.get("type") in NUMERIC and name not in form.get("required", ()):
            about = {key: schema.pop(key) for key in ("title", "description", "default") if key in schema}
            form["properties"][name] = {**about, "anyOf": [schema, NULL]}


def _watched(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """An empty text can only be continued."""
    going = [run.name for run in runs if run.continues]
    first = [None, ""] if runs and runs[0].continues else []
    form["anyOf"] = [{"properties": {"text": WORDS}}, _fields(run={"enum": [*going, *first]})]


def _inspected(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """A file for a run that reads files, a text for one that reads texts; by default the first run."""
    cases = []
    for number, run in enumerate(runs):
        reads: dict[str, Any] = {"inputs": {"anyOf": [FILE, NULL]} if run.reads in WANTED else NULL}
        reads |= {} if run.reads == "text" else {"text": {"const": ""}}
        cases.append(_fields(run={"enum": [run.name, *([None, ""] if not number else [])]}))
        cases[-1]["properties"] |= reads
    if cases:
        cases[0]["required"].remove("run")
        form["anyOf"] = cases


def _completed(form: dict[str, Any], runs: list[ServedRun], items: int) -> None:
    """All choices together are limited; `best_of` is `n`, or left out; `stream_options` are for streams."""
    form["anyOf"] = [
        _fields(n={"const": count}, best_of={"enum": [count, None]}) for count in range(1, BEAM + 1)
    ]
    form["anyOf"][0] = {"properties": {key: {"enum": [1, None]} for key in ("n", "best_of")}}
    for number, case in enumerate(form["anyOf"], 1):
        case["required"] = ["n"] if number > 1 else []
        one = {"type": "array", "items": {"type": "integer"}}
        case["properties"]["prompt"] = {"anyOf": [{"type": "string"}, one, {"maxItems": items // number}]}
    options = {"properties": {"stream_options": NULL}}
    form["allOf"] = [{"anyOf": [options, _fields(stream={"const": True})]}]
    text: dict[str, Any] = {"type": "string"}
    if runs:
        token = {"type": "integer", "minimum": 0, "maximum": min(map(_last_number, runs))}
        kinds = [text, _list_of(text), _list_of(token), _list_of(_list_of(token))]
        form["properties"]["prompt"]["anyOf"] = kinds


def _last_number(run: ServedRun) -> int:
    """The largest number of a token."""
    reading = writer_of(run).reading

    def unknown(number: int) -> bool:
        try:
            return not reading.numbered([number])
        except DataError:
            return True

    return bisect.bisect_left(range(2**24), True, key=unknown) - 1


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 1}


def _languages(form: dict[str, Any], directions: list[tuple[str, str]]) -> None:
    """The pairs of languages, and the languages alone, which is all that a query string can say."""
    sources = sorted({source for source, _ in directions})
    targets = sorted({target for _, target in directions})
    form["properties"]["source"]["enum"] = ["auto", *sources]
    form["properties"]["target"]["enum"] = targets
    if len(directions) < len(sources) * len(targets):
        form["anyOf"] = [
            _fields(source={"enum": [one]}, target={"enum": [other]}) for one, other in directions
        ]
        form["anyOf"].append(_fields(source={"enum": ["auto"]}))


def _inputs(form: dict[str, Any], runs: list[ServedRun]) -> None:
    """The inputs of each run; the first one answers if none is named."""
    form["anyOf"] = [
        _fields(run={"enum": [run.name, *([None, ""] if not number else [])]}, inputs=_input(run))
        for number, run in enumerate(runs)
    ]
    form["anyOf"][0]["required"].remove("run")


def _input(run: ServedRun) -> dict[str, Any]:
    one = FILE if run.reads in WANTED else NUMBERS if run.reads == "numbers" else WORDS
    return {"anyOf": [one, _list_of(one)]}


def _fields(**schemas: Any) -> dict[str, Any]:
    return {"properties": schemas, "required": list(schemas)}
