"""`--metric NAME:key=value,...`: metrics that a command line names. Read next: ../metrics/metric.py."""

from collections.abc import Collection, Iterable

from weft.config.build import build
from weft.config.plugins import check_plugins
from weft.config.table import Entry, Table
from weft.config.text import parse
from weft.errors import ConfigError
from weft.metrics.metric import Metric


def named(texts: Iterable[str], plugins: Collection[str] = ()) -> dict[str, Metric]:
    """The metrics, each by its text.

    Args:
        texts: a name, or a name with settings.
        plugins: packages whose metrics may be named by a dotted path.

    Raises:
        ConfigError: there is no such metric, or it has no such setting.

    Example:
        >>> [one.key for one in named(["wer", "chrf:word_order=2,lowercase=true"]).values()]
        ['wer', 'chrf']
    """
    check_plugins(plugins)
    return {text: _metric(text, plugins) for text in texts}


def _metric(text: str, plugins: Collection[str]) -> Metric:
    name, _, rest = text.partition(":")
    place = f"--metric {text}"
    settings = {"use": Entry("", place, name)}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier():
            raise ConfigError(f"{place}: expected NAME:key=value, such as chrf:word_order=2, got {part!r}")
        settings[key] = parse(value, "", name=key, place=place)
    metric: Metric = build(Table("", place, settings), Metric, plugins=plugins)  # type: ignore[type-abstract]
    return metric
