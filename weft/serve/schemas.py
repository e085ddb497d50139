"""The requests and responses of every route: the names, types and ranges of their fields.

FastAPI reads requests as the classes of the first part and describes both parts in /openapi.json. Unknown
fields are ignored, so that clients may send those of newer servers, except where an ignored one would change
what an evaluation measures (`extra="forbid"`). A list is read up to its first mistake (`fail_fast`), as an
error for each of a million would take gigabytes. `title` completes the sentence "expected …" of a refusal.
Read next: forms.py; openapi.py.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, create_model, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from weft.search.offered import Narrowing, offers
from weft.serve.limits import BEAM, LOGPROBS, MAX_TOKENS

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[
    str | Annotated[list[str], Field(fail_fast=True, min_length=1)], Field(title="text or a list of texts")
]
Files = Annotated[list[str], Field(fail_fast=True)]
Code = Annotated[str, Field(min_length=1, title="a language code; GET /languages lists them")]
Beam = Annotated[int, Field(ge=1, le=BEAM)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Pair = Annotated[
    list[Annotated[int, Field(ge=0, le=10**9)]], Field(fail_fast=True, min_length=2, max_length=2)
]
Pairs = Annotated[list[Pair], Field(fail_fast=True, max_length=64)]
PAIRS = "a list of pairs of whole numbers such as [[0, 17]], at most 64"
DROP = "Units set to zero: [layer, unit], in the order of /api/runs."
LOOKS = "Attention that is moved: [step from 1, source word from 0]."
Drop = Annotated[Pairs | None, Field(title=PAIRS, description=DROP)]
Looks = Annotated[Pairs | None, Field(title=PAIRS, description=LOOKS)]
Term = Annotated[list[Annotated[str, Field(max_length=200)]], Field(min_length=2, max_length=2)]
Terms = Annotated[
    Annotated[list[Term], Field(max_length=64)] | None,
    Field(
        title='a list of pairs of texts such as [["button", "botón"]], at most 64',
        description="Terms of the text and their translations, which the answer must contain.",
    ),
]
Stops = Annotated[
    Text | Annotated[list[Text], Field(fail_fast=True, min_length=1, max_length=4)] | None,
    Field(title="a text or at most 4, none of them empty"),
]
UNSUPPORTED = "nothing, as it is not supported"
Zero = Annotated[Annotated[float, Field(ge=0, le=0)] | None, Field(title=f"0 or {UNSUPPORTED}")]
ApiKey = Annotated[
    str | None, Field(description="Needed if the server has keys; or send it as Authorization: Bearer.")
]
Tokens = Annotated[list[int], Field(fail_fast=True, min_length=1)]
Prompt = Annotated[
    str
    | Annotated[list[str], Field(fail_fast=True, min_length=1)]
    | Tokens
    | Annotated[list[Tokens], Field(fail_fast=True, min_length=1)],
    Field(
        title="a text, a list of texts, a list of token numbers, or a list of such lists",
        description="Token numbers are those of the run's tokenizer.json, read as given.",
    ),
]


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            number = ord(value[error.start])
            about = {"place": error.start + 1, "number": f"U+{number:04X}"}
            sentence = "character {place} is half of a surrogate pair ({number}); send valid Unicode"
            raise PydanticCustomError(f"surrogate:{name}", sentence, about) from None  # type: ignore[arg-type]
        return value
    if isinstance(value, dict):
        return {key: _plain(one, name) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one, name) for one in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


class Fields(BaseModel):
    """The fields of a request. Numbers in JSON are numbers; in forms and query strings they are texts."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def plain(cls, given: Any, info: ValidationInfo) -> Any:
        """The same fields with 1 for 1.0 and without numbers that are null, or empty in a form: both count as
        missing.
        """
        if not isinstance(given, dict):
            return given
        missing = (None, "") if (info.context or {}).get("form") else (None,)
        found = {}
        for name, value in given.items():
            field = cls.model_fields.get(name)
            if field is None or not (value in missing and field.annotation in (int, float)):
                found[name] = _plain(value, name)
        return found


class SignIn(Fields):
    """A key that the page asks for."""

    key: Annotated[str, Field(min_length=1, title="an API key")]


class Detect(Fields):
    """A text in an unknown language."""

    q: Texts
    api_key: ApiKey = None


Domain = Annotated[str, Field(title="the name of a domain", description="One of the recipe's data.domains.")]


class Translate(Fields):
    """Texts to translate."""

    q: Texts
    target: Code
    source: Annotated[Code, Field(description="A language code, or auto.")] = "auto"
    format: Annotated[Literal["text", "html", ""] | None, Field(title="text or html")] = "text"
    alternatives: Annotated[int, Field(ge=0, le=BEAM - 1)] = 0
    domain: Domain = ""
    api_key: ApiKey = None


class Suggest(Fields):
    """A better translation of a text."""

    q: Annotated[str, Field(min_length=1, title="the text")]
    s: Annotated[str, Field(min_length=1, title="its better translation")]
    source: Code
    target: Code
    api_key: ApiKey = None


class TranslateFile(Fields):
    """A document to translate."""

    file: Annotated[
        str, Field(min_length=1, title="a file with a name", json_schema_extra={"format": "binary"})
    ]
    source: Code
    target: Code
    domain: Domain = ""


class Streaming(Fields):
    """Options of a stream."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False


MOST = 1_000_000  # of a number that has no limit of its own


def _narrowing() -> Iterator[tuple[str, Any]]:
    """The fields about sampling, as search/offered.py declares them, with the ranges of OpenAI's own."""
    for name, one in offers(Narrowing).items():
        kind, bounds = get_args(one.kind)
        limits = {"le": MOST} | {key: value for key, value in asdict(bounds).items() if value is not None}
        yield name, (Annotated[kind, Field(**limits, description=one.help)], one.default)
    yield "temperature", (Temperature, 1.0)
    yield "top_p", (Annotated[float, Field(ge=0, le=1)], 1.0)


_Narrowed: Any = create_model("_Narrowed", __base__=Fields, **dict(_narrowing()))


class Complete(_Narrowed):  # type: ignore[misc]
    """Prompts to continue; a seed is by default that of the run."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = None
    prompt: Prompt = ""
    max_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 16
    n: Beam = 1
    best_of: Annotated[Beam | None, Field(description="Equal to n, or left out.")] = None
    stop: Stops = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=LOGPROBS)] | None = None
    echo: bool | None = False
    stream: bool | None = False
    stream_options: Streaming | None = None
    user: Annotated[str | None, Field(description="Changes nothing.")] = None
    suffix: Annotated[None, Field(title=UNSUPPORTED)] = None
    frequency_penalty: Zero = None
    presence_penalty: Zero = None
    logit_bias: Annotated[Annotated[dict[str, Any], Field(max_length=0)] | None, Field(title=UNSUPPORTED)] = (
        None
    )


class Chosen(Fields):
    """A run; by default the first that fits."""

    run: str | None = None


class Predict(Chosen):
    """Inputs for a run."""

    inputs: Annotated[Any, Field(title="a text, numbers, a file as base64, or a list of them")]
    drop: Drop = None


class Watch(Chosen):
    """A text whose answer is watched."""

    text: str
    target: str | None = None
    prefix: str = ""
    drop: Drop = None
    looks: Looks = None
    terms: Terms = None
    beam: Annotated[Beam | None, Field(description="By default that of the run.")] = None
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = 60
    temperature: Temperature = 0.0
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1


class Inspect(Chosen):
    """A text to look at; by default an example that the run was validated on."""

    text: str = ""
    target: str | None = None


class InspectFile(Inspect):
    """A text or a file to look at."""

    inputs: Annotated[str | Files | None, Field(title="a picture or a recording as base64")] = None


class Refused(TypedDict):
    """An error of every route but those below /v1."""

    error: str


class Mistake(TypedDict):
    """OpenAI's description of an error."""

    message: str
    type: str
    param: str | None
    code: str | None


class Failure(TypedDict):
    """An error of the routes below /v1."""

    error: Mistake


class Health(TypedDict):
    """Whether the server answers; `trouble` says why not."""

    status: str
    waiting: NotRequired[int]
    trouble: NotRequired[str]


class Language(TypedDict):
    """A source language and the languages it is translated into."""

    code: str
    name: str
    targets: list[str]


class Detected(TypedDict):
    """A language, with a confidence from 0 to 100."""

    confidence: float
    language: str


class Translated(TypedDict):
    """Translations: lists if `q` was a list.

    `notes` says what they lack of the texts: placeholders, and characters that the vocabulary lacks.
    """

    translatedText: str | list[str]
    alternatives: NotRequired[list[str | list[str]]]
    detectedLanguage: NotRequired[Detected | list[Detected]]
    notes: NotRequired[list[str]]


class TranslatedFile(TypedDict):
    """Where the translation of a document is for some minutes; `notes` as for a text."""

    translatedFileUrl: str
    notes: NotRequired[list[str]]


class Spoken(TypedDict):
    """A language by code and name."""

    code: str
    name: str


class Direction(TypedDict):
    """The languages that a page of LibreTranslate begins with."""

    source: Spoken
    target: Spoken


class Settings(TypedDict):
    """What LibreTranslate's page asks its server for."""

    charLimit: int
    frontendTimeout: int
    language: Direction
    supportedFilesFormat: list[str]
    filesTranslation: bool
    apiKeys: bool
    keyRequired: bool
    suggestions: bool


class Suggested(TypedDict):
    """That a suggestion was kept."""

    success: bool


class Model(TypedDict):
    """A language model; `created` in seconds since 1970."""

    id: str
    created: int
    object: str
    owned_by: str


class Models(TypedDict):
    """The language models."""

    data: list[Model]
    object: str


class Logprobs(TypedDict):
    """Natural logarithms of probabilities, one entry for each token, of the end that was written too.

    The first token of a prompt has none. `text_offset` is the place in `text`, in characters.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class Choice(TypedDict):
    """A continuation, or a part of one in a stream."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: str | None


class Usage(TypedDict):
    """Numbers of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(TypedDict):
    """Continuations of all prompts; in a stream, usage comes in an event of its own, if asked for."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: NotRequired[Usage | None]


class Predicted(TypedDict):
    """One output for each input, in the form of the task."""

    run: str
    task: str
    outputs: list[Any]


class Cell(TypedDict):
    """A recurrent layer and its number of units."""

    name: str
    size: int


class Loaded(TypedDict):
    """The model that answers: update of its training, digest of its file, time when it was loaded (UTC)."""

    update: int | None
    digest: str
    loaded: str


class Run(TypedDict):
    """A run; one without a model has the first four fields only."""

    name: str
    task: str
    ready: bool
    targets: list[str]
    directions: NotRequired[list[list[str]]]
    about: NotRequired[str]
    beam: NotRequired[int]
    cells: NotRequired[list[Cell]]
    examples: NotRequired[list[str]]
    parameters: NotRequired[int]
    version: NotRequired[Loaded]


class Watched(TypedDict):
    """A part of a streamed answer: a draft, the answer with details of its task, or an error."""

    event: Literal["draft", "done", "error"]
    text: NotRequired[str]
    kind: NotRequired[str]
    error: NotRequired[str]


class ProbableWord(TypedDict):
    """A whole word and its probability."""

    text: str
    prob: float


class ProbableWords(TypedDict):
    """The likeliest next words of an answer after its prefix."""

    run: str
    words: list[ProbableWord]


class Curves(TypedDict):
    """Points [update, value] of each curve of a run's training."""

    run: str
    curves: dict[str, list[list[float]]]
