"""What is measured: the Prometheus metrics of /metrics, and the access log. Neither contains a text.

Read next: app.py.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.errors import ConfigError
from weft.serve.batcher import Batcher
from weft.version import __version__

SEVERAL = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of prometheus_client: where several processes count together."""

METHODS = ("GET", "HEAD", "POST", "OPTIONS")
STEPS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000)


class Counts:
    """The metrics of /metrics."""

    def __init__(self, batchers: dict[str, Batcher], deadline_seconds: float) -> None:
        own = CollectorRegistry()
        self.requests = Counter("weft_requests", "Requests answered.", ["path", "status"], registry=own)
        self.seconds = Histogram(
            "weft_request_seconds",
            "Seconds until the end of the answer.",
            ["path"],
            buckets=(*(step for step in STEPS if step < deadline_seconds), deadline_seconds),
            registry=own,
        )
        build = Gauge(
            "weft_build_info", "Version of Weft.", ["version"], registry=own, multiprocess_mode="max"
        )
        build.labels(__version__).set(1)
        self._batchers = batchers
        self._gauges: dict[tuple[str, str], Gauge] = {}
        self._counters: dict[tuple[str, str], Counter] = {}
        self._counted: dict[tuple[str, str], int] = {}
        for name in batchers:
            for what, about in (("waiting", "waiting"), ("running", "being computed")):
                self._gauges[name, what] = Gauge(
                    f"weft_{name}_{what}",
                    f"Texts {about} ({name}).",
                    registry=own,
                    multiprocess_mode="livesum",
                )
            self._counters[name, "batches"] = Counter(
                f"weft_{name}_batches", f"Batches computed ({name}).", registry=own
            )
            self._counters[name, "answered"] = Counter(
                f"weft_{name}_items", f"Texts answered ({name}).", registry=own
            )
        self.several = SEVERAL in os.environ
        self.scraped = CollectorRegistry() if self.several else own
        """What /metrics shows."""
        if self.several:
            MultiProcessCollector(self.scraped)
        else:
            ProcessCollector(registry=own)

    def note(self) -> None:
        """Write what the batchers of this process have now."""
        for (name, what), gauge in self._gauges.items():
            gauge.set(getattr(self._batchers[name], what))
        for (name, what), counter in self._counters.items():
            now = getattr(self._batchers[name], what)
            counter.inc(now - self._counted.get((name, what), 0))
            self._counted[name, what] = now


class AccessLog:
    """One JSON line for each request: no text, no query string, no key."""

    def __init__(self, path: Path) -> None:
        try:
            self._handler: logging.Handler = (
                logging.StreamHandler(sys.stdout) if str(path) == "-" else WatchedFileHandler(path)
            )
        except OSError as error:
            raise ConfigError(f"--access-log {path}: cannot be written ({error.strerror})") from error
        self._path, self._failed = path, False
        self._handler.handleError = self._complain  # type: ignore[method-assign]

    def note(self, scope: Scope, path: str, status: int, seconds: float, sent: int) -> None:
        """Append a line."""
        method = scope["method"]
        record = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "client": scope["client"][0] if scope.get("client") else None,
            "key": scope.get("weft.key"),
            "method": method if method in METHODS else "other",
            "path": path,
            "status": status,
            "seconds": round(seconds, 4),
            "bytes": sent,
        }
        self._handler.handle(logging.makeLogRecord({"msg": json.dumps(record)}))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()

    def _complain(self, record: logging.LogRecord) -> None:
        if not self._failed:  # once, not for every request
            print(f"--access-log {self._path}: cannot be written ({sys.exc_info()[1]})", file=sys.stderr)
        self._failed = True


class RequestCounter:
    """Counts requests by route. Unknown paths count as "other", so that clients cannot create new labels."""

    def __init__(
        self, app: ASGIApp, routes: Sequence[BaseRoute], counts: Counts, log: AccessLog | None
    ) -> None:
        self.app = app
        self.routes = routes
        self.counts = counts
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, sent = 500, 0

        async def noting(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            sent += len(message.get("body", b""))
            await send(message)

        begun = time.monotonic()
        if self.counts.several:
            self.counts.note()
        try:
            await self.app(scope, receive, noting)
        finally:
            seconds = time.monotonic() - begun
            fitting = (
                one.path
                for one in self.routes
                if isinstance(one, Route) and one.matches(scope)[0] is not Match.NONE
            )
            path = next(fitting, "other")
            self.counts.requests.labels(path, str(status)).inc()
            self.counts.seconds.labels(path).observe(seconds)
            if self.counts.several:
                self.counts.note()
            if self.log:
                self.log.note(scope, path, status, seconds, sent)
