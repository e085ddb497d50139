"""Who may use the server: host names, origins of web pages, and API keys. Read next: keys.py; app.py.

- Host: a web page can point its own name at 127.0.0.1 (DNS rebinding) and then read a server that listens
  only there. Its requests carry its name as Host, so unknown names are refused. Addresses cannot be rebound.
- Origin: a page of another site can send requests without reading the answers (CSRF). Browsers say where a
  request comes from, in Origin and Sec-Fetch-Site.
- Keys: as `Authorization: Bearer KEY` everywhere; as the field `api_key` of LibreTranslate; and as a cookie,
  which /api/key sets for the page.
- Headers: libraries read charsets and cookies in ways that take long, before a key is known. So
  they see only `plain_headers`.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.errors import ConfigError
from weft.serve.forms import ADMIT, refusing
from weft.serve.keys import Keys
from weft.serve.limits import Refusal
from weft.serve.pages import FILES
from weft.serve.schemas import SignIn

COOKIE = "weft_key"
OPEN = {"/", *(f"/{name}" for name in FILES), "/api/key", "/openapi.json", "/languages"}
OPEN |= {"/health", "/health/live", "/health/ready", "/spec", "/frontend/settings"}
"""Addresses that need no key: the page, which asks for it, descriptions and probes."""
FIELDS = {"/translate", "/translate_file", "/detect", "/suggest"}
"""Addresses where the key may be the field `api_key`, as in LibreTranslate."""
SECRET = "/download_file/"  # the names below this address are keys themselves
FREE = {"/api/runs", "/api/curves", "/metrics"}
"""Addresses that do not count for the rate limit: the page and Prometheus ask them again and again."""
UNKNOWN = "unknown API key; ask the operator of this server for one"
COOKIE_SECONDS = 30 * 24 * 3600
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@\[\]]+?)\.?(?::\d+)?")
HEADER_BYTES = 32 * 1024
"""Of all headers of a request; a browser sends the cookies of every server on localhost."""
COOKIE_BYTES = 4096
BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
"""Source: RFC 2046, 5.1.1."""
KIND = re.compile(r"[a-z0-9!#$&^_.+-]{1,99}/[a-z0-9!#$&^_.+-]{1,99}")
CHARSETS = {("charset", "utf-8"), ("charset", "utf8")}
UTF8 = "expected text in UTF-8, got {}; send it with charset=utf-8, or without a charset"
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}


def is_open(path: str) -> bool:
    """Whether an address needs no key."""
    return path in OPEN or path.startswith(SECRET)


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may use the server."""

    hosts: tuple[str, ...] = ()  # besides localhost and IP addresses, lower case; "*" allows all
    origins: tuple[str, ...] = ()  # such as https://app.example.org; "*" allows all
    keys: Keys | None = None  # one of them is required

    def __post_init__(self) -> None:
        for host in self.hosts:
            name = HOST.fullmatch(host) and host.isascii() and ":" not in host
            if not (name or host == "*" or _is_address(host)):
                raise ConfigError(f"--allow-host {host}: expected a host name such as weft.example.org")
        for origin in self.origins:
            parts = urlsplit(origin)
            if origin != "*" and (
                not parts.hostname or origin != f"{parts.scheme}://{parts.netloc}" or not origin.isascii()
            ):
                raise ConfigError(f"--cors {origin}: expected an origin such as https://app.example.org")

    def layers(self) -> list[Middleware]:
        """The middleware, outermost first. CORS is outside the keys, so that a page can read a refusal."""
        cors = Middleware(
            CORSMiddleware,
            allow_origins=self.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
        keyed = [Middleware(KeyGuard, keys=self.keys)] if self.keys else []
        return [Middleware(Guard, access=self), *([cors] if self.origins else []), *keyed]

    def check_host(self, hosts: list[str]) -> str:
        """The host of a request, with its port."""
        found = HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if not found:
            raise Refusal(400, "expected one Host header with the name of this server")
        name = found[1].lower()
        if "*" not in self.hosts and name not in ("localhost", *self.hosts) and not _is_address(name):
            raise Refusal(421, "unknown host name; the server accepts those given with --allow-host NAME")
        return hosts[0].lower()

    def check_origin(self, method: str, headers: Headers, host: str) -> None:
        """Refuse what a page of another web site sends, except links to a page."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if site == "same-origin" or "*" in self.origins or origin in self.origins:
            return
        link = method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
        from_here = origin.partition("://")[2].lower() == host if origin else site == "none" or link
        if not from_here:
            raise Refusal(403, "pages of other web sites are refused; --cors ORIGIN allows one")


class Guard:
    """Checks the host and the origin of each request, and adds headers for browsers to each response."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def safer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        try:
            scope["weft.cookie"] = cookie(headers.getlist("cookie"))
            scope["headers"] = plain_headers(scope["headers"])
            host = self.access.check_host(headers.getlist("host"))
            self.access.check_origin(scope["method"], headers, host)
            if "content-length" in headers and "transfer-encoding" in headers:  # RFC 9112, 6.3: smuggling
                raise Refusal(400, "expected Content-Length or Transfer-Encoding, got both", closes=True)
        except Refusal as refusal:
            await refusing(Request(scope), refusal)(scope, receive, safer)
            return
        await self.app(scope, receive, safer)


def sign_in(request: Request, access: Access, given: SignIn) -> Response:
    """Keep the key of a page in a cookie that scripts cannot read and other sites cannot send."""
    if not access.keys:
        raise Refusal(409, "this server needs no API key")
    if not access.keys.owner(given.key):
        raise Refusal(403, UNKNOWN)
    answer = Response(status_code=204)
    secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, given.key, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure
    )
    return answer


class KeyGuard:
    """Requires a key for every address but OPEN. Without a header, `forms.fields` checks it for FIELDS."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self.app(scope, receive, send)
            return

        def admit(key: object, status: int = 403) -> None:
            if not isinstance(key, str) or not key:
                raise Refusal(401, "an API key is required; send the header Authorization: Bearer KEY")
            owner = self.keys.owner(key)
            if not owner:
                raise Refusal(status, UNKNOWN)
            scope["weft.key"] = owner.name
            if scope["path"] not in FREE:
                self.keys.spend(owner)

        key = _sent(scope)
        try:
            if key is None and scope["path"] in FIELDS:
                scope[ADMIT] = admit
            else:
                admit(key, 401)
        except Refusal as refusal:
            await refusing(Request(scope), refusal)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _sent(scope: Scope) -> str | None:
    """The key in the header or the cookie."""
    header = Headers(scope=scope).get("authorization")
    if header is None:
        return scope["weft.cookie"]  # type: ignore[no-any-return]
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def cookie(headers: list[str]) -> str | None:
    """The key in the cookies of a request; Python's reader takes the square of their length."""
    pairs = (one.partition("=") for header in headers for one in header.split(";"))
    values = [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
    return values[-1][:COOKIE_BYTES].strip('"') if values else None


def plain_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without cookies, and with the kind of the body in its plainest form.

    A charset that a client names would choose the code that reads its text, and Python keeps unknown names.
    """
    if sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
        raise Refusal(431, f"the headers are larger than {HEADER_BYTES:,} bytes; send less", closes=True)
    found = []
    for name, value in headers:
        if name == b"content-type":
            found.append((name, plain_kind(value.decode("latin-1")).encode()))
        elif name == b"content-encoding" and value.lower() not in (b"", b"identity"):
            raise Refusal(415, UTF8.format("a compressed body"), closes=True)
        elif name != b"cookie":
            found.append((name, value))
    return found


def plain_kind(header: str) -> str:
    """A Content-Type without parameters but the boundary of a form; only UTF-8 is accepted as charset."""
    kind, *parameters = header.split(";")
    boundary = ""
    for one in parameters:
        name, _, value = (part.strip() for part in one.partition("="))
        value = value.strip('"')
        if name.lower().startswith("charset") and (name.lower(), value.lower()) not in CHARSETS:
            raise Refusal(415, UTF8.format("another charset"), closes=True)
        if name.lower() == "boundary":
            if not BOUNDARY.fullmatch(value):
                raise Refusal(400, "boundary: expected 1 to 70 letters, digits or '()+_,-./:=?", closes=True)
            boundary = f'; boundary="{value}"'
    plain = kind.strip().lower()
    return plain + boundary if KIND.fullmatch(plain) else ""


def _is_address(name: str) -> bool:
    try:
        return bool(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return False
