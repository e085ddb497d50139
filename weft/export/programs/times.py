"""Times of series: texts as times, and the regular times that a series should have."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

QUARTER = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)


def parsed(texts: Sequence[str], base: str, *, days: bool) -> tuple[np.ndarray, str]:
    """Increasing times [T] from texts such as 2024-01-31 13:00, and their zone: an offset, a name or ""."""
    found, zones = [], set()
    for text in texts:
        plain = text.strip().replace("/", "-")
        if quarter := QUARTER.fullmatch(plain):
            plain = f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}"
        plain += {4: "-01-01", 7: "-01"}.get(len(plain), "")
        try:
            time = datetime.fromisoformat(re.sub(r"(?<!\s)\s+(?=[+-]\d\d:?\d\d$|Z$)", "", plain))
        except ValueError:
            raise ValueError(f"{text[:40]!r} is not a time; write 2024-01-31 or 2024-01-31 13:00") from None
        if base and time.utcoffset() is None and (time.hour or time.minute):
            raise ValueError(f"expected an offset from UTC as in training ({base}), got {text[:40]}")
        if base and time.utcoffset() is not None:
            time = time.astimezone(zone_of(base) if days or "/" not in base else UTC)
        zones.add(base or time.isoformat()[len(time.replace(tzinfo=None).isoformat()) :])
        found.append(np.datetime64(time.replace(tzinfo=None, microsecond=0), "s"))
    times = np.array(found)
    if len(zones) > 1:
        raise ValueError("expected times with one offset from UTC, got several; write them in UTC")
    if len(wrong := np.flatnonzero(np.diff(times).astype(np.int64) <= 0)):
        after, before = texts[wrong[0] + 1], texts[wrong[0]]
        raise ValueError(f"{after[:40]} comes after {before[:40]}; sort the rows and keep each time once")
    return times, zones.pop()


def zone_of(name: str) -> tzinfo:
    """A zone by its name: UTC, +02:00 or Europe/Zagreb."""
    if "/" in name:
        return ZoneInfo(name)
    return datetime.fromisoformat(f"2000-01-01T00{name.replace('UTC', '+00:00')}").tzinfo or UTC


def local(times: np.ndarray, zone: str, *, days: bool) -> list[datetime]:
    """The same times as clocks show them, in the zone if there is one."""
    plain = [datetime.fromisoformat(str(time)) for time in times]
    if not zone:
        return plain
    if days or "/" not in zone:
        return [time.replace(tzinfo=zone_of(zone)) for time in plain]
    return [time.replace(tzinfo=UTC).astimezone(zone_of(zone)) for time in plain]


def every(times: np.ndarray, step: dict[str, int], more: int) -> np.ndarray:
    """All times of a series, those without a row too, and `more` times after the last one.

    Args:
        times: [T] increasing.
    """
    first, last = times[0], times[-1]
    day = first.astype("datetime64[D]")
    if "seconds" in step:
        count = int((last - first).astype(np.int64)) // step["seconds"]
    elif "business" in step:
        count = int(np.busday_count(day, last.astype("datetime64[D]")))
    else:
        count = (
            int((last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(int)) // step["months"]
        )
    if count > 21 * len(times) + 100:
        raise ValueError(f"expected regular times, got {len(times)} rows from {first} to {last}")
    places = np.arange(count + 1 + more)
    if "seconds" in step:
        grid = first + places * np.timedelta64(step["seconds"], "s")
    elif "business" in step:
        grid = np.busday_offset(day, places, roll="forward") + (first - day)
    else:
        months = times.astype("datetime64[M]")
        ends = (times.astype("datetime64[D]") == _last(months)).all()
        begins = first.astype("datetime64[M]") + places * step["months"]
        latest = (times.astype("datetime64[D]") - months.astype("datetime64[D]")).max()  # February has less
        same = begins.astype("datetime64[D]") + latest
        grid = (_last(begins) if ends else np.minimum(same, _last(begins))) + (first - day)
    grid = grid.astype("datetime64[s]")
    if len(odd := times[~np.isin(times, grid[: count + 1])]):
        raise ValueError(f"expected regular times as in training, got {odd[0]}; correct it")
    return grid


def _last(months: np.ndarray) -> np.ndarray:
    return (months + 1).astype("datetime64[D]") - 1
