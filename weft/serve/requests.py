"""The requests of every route: the names, types and ranges of their fields.

A handler reads its request with `forms.read`; openapi.py describes the same classes. Unknown fields are
ignored, so that clients may send those of newer servers, except where an ignored one would change what an
evaluation measures (`forbid_unknown_fields`). `title` completes the sentence "expected …".
Read next: responses.py; forms.py.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.serve.limits import BEAM, LOGPROBS, MAX_TOKENS, PROMPTS

Texts = Annotated[str | Annotated[list[str], Meta(min_length=1)], Meta(title="text or a list of texts")]
Code = Annotated[str, Meta(min_length=1, title="a language code; GET /languages lists them")]
Beam = Annotated[int, Meta(ge=1, le=BEAM)]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Pair = Annotated[list[Annotated[int, Meta(ge=0, le=10**9)]], Meta(min_length=2, max_length=2)]
PAIRS = "a list of pairs of whole numbers such as [[0, 17]], at most 64"
Drop = Annotated[
    list[Pair],
    Meta(
        max_length=64, title=PAIRS, description="Units set to zero: [layer, unit], in the order of /api/runs."
    ),
]
Looks = Annotated[
    list[Pair],
    Meta(
        max_length=64,
        title=PAIRS,
        description="Attention that is moved: [step from 1, source word from 0].",
    ),
]
Stop = Annotated[str, Meta(min_length=1)]
Stops = Annotated[
    Stop | Annotated[list[Stop], Meta(min_length=1, max_length=4)],
    Meta(title="a text or at most 4, none of them empty"),
]
Zero = Annotated[float, Meta(ge=0, le=0, title="0 or nothing, as it is not supported")]
Empty = Annotated[dict[str, Any], Meta(max_length=0, title="nothing, as it is not supported")]
ApiKey = Annotated[
    str, Meta(description="Needed if the server has keys; or send it as Authorization: Bearer.")
]
Prompt = Annotated[
    str | Annotated[list[str | int | Annotated[list[int], Meta(min_length=1)]], Meta(min_length=1)],
    Meta(title=PROMPTS, description="Token numbers are those of the run's tokenizer.json, read as given."),
]
Files = Annotated[str | list[str], Meta(title="a picture or a recording as base64")]


class SignIn(Struct):
    """A key that the page asks for."""

    key: Annotated[str, Meta(min_length=1, title="an API key")]


class Detect(Struct):
    """A text in an unknown language."""

    q: Texts
    api_key: ApiKey | None = None


class Translate(Struct):
    """Texts to translate."""

    q: Texts
    target: Code
    source: Annotated[Code, Meta(description="A language code, or auto.")] = "auto"
    format: Annotated[Literal["text", "html", ""], Meta(title="text or html")] | None = "text"
    alternatives: Annotated[int, Meta(ge=0, le=BEAM - 1)] = 0
    api_key: ApiKey | None = None


class Suggest(Struct):
    """A better translation of a text."""

    q: Annotated[str, Meta(min_length=1, title="the text")]
    s: Annotated[str, Meta(min_length=1, title="its better translation")]
    source: Code
    target: Code
    api_key: ApiKey | None = None


class TranslateFile(Struct):
    """A document to translate."""

    file: Annotated[
        str, Meta(min_length=1, extra_json_schema={"format": "binary"}, title="a file with a name")
    ]
    source: Code
    target: Code


class Streaming(Struct, forbid_unknown_fields=True):
    """Options of a stream."""

    include_usage: bool = False


class Complete(Struct, forbid_unknown_fields=True):
    """Prompts to continue; a seed is by default that of the run."""

    model: str | None = None
    prompt: Prompt = ""
    max_tokens: Annotated[int, Meta(ge=0, le=MAX_TOKENS)] = 16
    temperature: Temperature = 1.0
    top_p: Annotated[float, Meta(ge=0, le=1)] = 1.0
    n: Beam = 1
    best_of: Annotated[Beam, Meta(description="Equal to n, or left out.")] | None = None
    stop: Stops | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    logprobs: Annotated[int, Meta(ge=0, le=LOGPROBS)] | None = None
    echo: bool | None = False
    stream: bool | None = False
    stream_options: Streaming | None = None
    user: Annotated[str, Meta(description="Changes nothing.")] | None = None
    suffix: Annotated[None, Meta(title="nothing, as it is not supported")] = None
    frequency_penalty: Zero | None = None
    presence_penalty: Zero | None = None
    logit_bias: Empty | None = None


class Chosen(Struct):
    """A run; by default the first that fits."""

    run: str | None = None


class Predict(Chosen, kw_only=True):
    """Inputs for a run."""

    inputs: Annotated[Any, Meta(title="a text, numbers, a file as base64, or a list of them")]
    drop: Drop | None = None


class Watch(Chosen, kw_only=True):
    """A text whose answer is watched."""

    text: str
    target: str | None = None
    prefix: str = ""
    drop: Drop | None = None
    looks: Looks | None = None
    beam: Annotated[Beam, Meta(description="By default that of the run.")] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=MAX_TOKENS)] = 60
    temperature: Temperature = 0.0
    seed: Annotated[int, Meta(ge=0, le=2**31)] = 1


class Inspect(Chosen):
    """A text to look at; by default an example that the run was validated on."""

    text: str = ""
    target: str | None = None


class InspectFile(Inspect):
    """A text or a file to look at."""

    inputs: Files | None = None
