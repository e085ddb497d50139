"""The responses of every route: what handlers return and openapi.py describes.

Read next: openapi.py.
"""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class Refused(Struct):
    """An error of every route but those below /v1."""

    error: str


class Mistake(Struct):
    """OpenAI's description of an error."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Failure(Struct):
    """An error of the routes below /v1."""

    error: Mistake


class Health(Struct):
    """Whether the server answers; `trouble` says why not."""

    status: str
    waiting: int | UnsetType = UNSET
    trouble: str | UnsetType = UNSET


class Language(Struct):
    """A source language and the languages it is translated into."""

    code: str
    name: str
    targets: list[str]


class Detected(Struct):
    """A language, with a confidence from 0 to 100."""

    confidence: float
    language: str


class Translated(Struct, rename="camel"):
    """Translations: lists if `q` was a list."""

    translated_text: str | list[str]
    alternatives: Sequence[str | list[str]] | UnsetType = UNSET
    detected_language: Detected | list[Detected] | UnsetType = UNSET


class TranslatedFile(Struct, rename="camel"):
    """Where the translation of a document is for some minutes."""

    translated_file_url: str


class Spoken(Struct):
    """A language by code and name."""

    code: str
    name: str


class Direction(Struct):
    """The languages that a page of LibreTranslate begins with."""

    source: Spoken
    target: Spoken


class Settings(Struct, rename="camel"):
    """What LibreTranslate's page asks its server for."""

    char_limit: int
    frontend_timeout: int
    language: Direction
    supported_files_format: list[str]
    files_translation: bool = True
    api_keys: bool = False
    key_required: bool = False
    suggestions: bool = False


class Suggested(Struct):
    """That a suggestion was kept."""

    success: bool = True


class Model(Struct):
    """A language model; `created` in seconds since 1970."""

    id: str
    created: int
    object: str = "model"
    owned_by: str = "weft"


class Models(Struct):
    """The language models."""

    data: list[Model]
    object: str = "list"


class Logprobs(Struct):
    """Natural logarithms of probabilities, one entry for each token, of the end that was written too.

    The first token of a prompt has none. `text_offset` is the place in `text`, in characters.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class Choice(Struct):
    """A continuation, or a part of one in a stream."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: str | None


class Usage(Struct):
    """Numbers of tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(Struct):
    """Continuations of all prompts; in a stream, usage comes in an event of its own, if asked for."""

    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | UnsetType | None = UNSET
    object: str = "text_completion"


class Predicted(Struct):
    """One output for each input, in the form of the task."""

    run: str
    task: str
    outputs: list[Any]


class Cell(Struct):
    """A recurrent layer and its number of units."""

    name: str
    size: int


class Loaded(Struct):
    """The model that answers: update of its training, digest of its file, time when it was loaded (UTC)."""

    update: int | None
    digest: str
    loaded: str


class Run(Struct):
    """A run; one without a model has the first four fields only."""

    name: str
    task: str
    ready: bool
    targets: list[str]
    about: str | UnsetType = UNSET
    beam: int | UnsetType = UNSET
    cells: list[Cell] | UnsetType = UNSET
    examples: list[str] | UnsetType = UNSET
    parameters: int | UnsetType = UNSET
    version: Loaded | UnsetType = UNSET


class Watched(Struct):
    """A part of a streamed answer: a draft, the answer with details of its task, or an error."""

    event: Literal["draft", "done", "error"]
    text: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Curves(Struct):
    """Points [update, value] of each curve of a run's training."""

    run: str
    curves: dict[str, list[list[float]]]
