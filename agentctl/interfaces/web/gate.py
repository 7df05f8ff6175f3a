"""Who may ask the server for what: each request passes here before anything else looks at it.

Whoever does not show the token, and has not proved to know a secret of the server, gets nothing but the files of the
page, which hold nothing of the tasks. A page elsewhere gets nothing, whatever name it has resolved to this server;
neither does a form. A worker gets nothing either: it has its own commands and tools, which know who calls.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentctl.errors import AtTerminal, ExitCode
from agentctl.interfaces.web.login import Login
from agentctl.interfaces.web.page_files import PREFIX as STATIC
from agentctl.interfaces.web.page_sessions import PageSessions, Signed
from agentctl.interfaces.web.problems import problem
from agentctl.lean import NamedTuple

SESSION, ANSWER = "/session", "/answer/"
#: By which a page shows that a request is its own, and the server that the answer is.
SIGNED, PROOF = "agentctl-signed", "Agentctl-Proof"
#: By which a page that has just been let in asks how it comes back after a restart, and is told.
_WANTS, _WAY_BACK = "agentctl-wants", "Agentctl-Way-Back"
#: The cookies by which a page that is loaded anew asks the server to prove itself in index.html, one for each port.
_ASKS = "agentctl-asks-"
#: In the scope of a request for the page: with what it is greeted.
GREETING = "agentctl.greeting"
#: A batch of some ten thousand workers.
LONGEST_BODY, _LONGEST_OF_ANYBODY = 8 << 20, 8 << 10
_READS = frozenset({"GET", "HEAD"})
_ABSOLUTE = re.compile(rb"https?://([^/?#@]+)(/[^#]*)?", re.IGNORECASE)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
USUAL_PORTS = {"http": 80, "https": 443}

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_HEADERS = {
    "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}  # fmt: skip


class Access(NamedTuple):
    """Under which names the server may be called, and for what."""

    #: As in the header `Host`, in lower case.
    hosts: frozenset[str]
    #: As in the header `Origin`: one of these counts only for the host that it names.
    origins: frozenset[str]
    #: It listens at all addresses of the machine: this port of any address is its own. No name can be made to mean one
    #: of these by a page, as it can with a name that it has resolved.
    any_address_at: int | None = None
    scheme: str = "http"
    #: The origin of the page behind a proxy, which may call the server by another host.
    proxied: str | None = None
    is_read_only: bool = False

    def is_called(self, host: str) -> bool:
        """Return whether the server may be called by this host."""
        return host.lower() in self.hosts or self._is_address(host) or _is_near(host)

    def is_of_the_page(self, origin: str, host: str) -> bool:
        """Return whether a request to a host comes from the server's own page.

        Another server may listen at the same port of another address of this machine: its pages are not ours.
        """
        if origin == self.proxied:
            return True
        is_own = origin in self.origins or self._is_address(host) or _is_near(host)
        return is_own and origin == f"{self.scheme}://{host.lower()}"

    def _is_address(self, host: str) -> bool:
        if self.any_address_at is None:
            return False
        address, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):  # Browsers leave out the usual port.
            address, port = host, str(USUAL_PORTS[self.scheme])
        try:
            ipaddress.ip_address(address.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return port == str(self.any_address_at)


def _is_near(host: str) -> bool:
    """Return whether a host is this machine by a name that no page can resolve otherwise.

    With whatever port: a tunnel may begin at another one than the server's.
    """
    name, _, port = host.lower().rpartition(":")
    return name in LOOPBACK and port.isdecimal()


class Refusal(NamedTuple):
    """Why a request may not come from where it comes from, and the next step."""

    why: str
    hint: str


_LINK = AtTerminal("open the link that agentctl serve prints, in its terminal")
#: Looks at who makes a request; None if they may. The second argument says whether it may have come through a proxy.
Refuse = Callable[[Scope, bool], Awaitable[Refusal | None]]


#: Returns the origins of the pages that may use answer links: those that show messages of ours, with their buttons.
Pages = Callable[[], frozenset[str]]


async def _refuse_nobody(_scope: Scope, _may_be_proxied: bool) -> Refusal | None:
    return None


class Gate:
    """Lets a request through to the app, or answers it.

    Args:
        refuse: Looks at who is at the other end of a connection.
        pages: Which pages elsewhere have buttons that answer.
    """

    def __init__(
        self, app: ASGIApp, login: Login, sessions: PageSessions, access: Access, refuse: Refuse = _refuse_nobody,
        pages: Pages = frozenset,
    ) -> None:  # fmt: skip
        self._app, self._login, self._sessions, self._access = app, login, sessions, access
        self._refuse, self._pages = refuse, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = in_origin_form(scope)
        headers = Headers(scope=scope)
        signed = self._signed(scope, headers)
        pressed_at = self._pressed_at(scope, headers)
        send = _with_headers(send, self._proofs(signed, headers), pressed_at)
        answer = self._from_elsewhere(scope, headers, pressed_at)
        if answer is None and not _is_open(scope):
            answer = self._early(scope, headers, signed) or await self._late(scope, headers, signed)
        if answer is not None:
            await answer(scope, receive, send)
            return
        if _is_page(scope):
            scope = {**scope, GREETING: await self._greeting(scope, headers)}
        with nullcontext() if signed is None else self._sessions.asking(signed):
            await self._app(scope, _Bounded(receive, _longest(str(scope["path"]))), send)

    def _pressed_at(self, scope: Scope, headers: Headers) -> str | None:
        """Return the origin of the page elsewhere that uses an answer link, as it may; None of any other request."""
        origins = headers.getlist("origin")
        if scope["method"] != "POST" or not str(scope["path"]).startswith(ANSWER) or len(origins) != 1:
            return None
        return origins[0] if origins[0] in self._pages() else None

    def _from_elsewhere(self, scope: Scope, headers: Headers, pressed_at: str | None) -> Response | None:
        """Return the answer to a request under another name, or from another page; None for any other."""
        if len(headers.getlist("host")) != 1 or not self._access.is_called(headers["host"]):
            return problem(403, "this server does not have that name", _LINK)
        if pressed_at is not None:
            return None
        if not all(self._access.is_of_the_page(origin, headers["host"]) for origin in headers.getlist("origin")):
            return problem(403, "another page may not call this server")
        if headers.get("sec-fetch-site", "none") in {"none", "same-origin"} or _is_visit(scope, headers):
            return None
        return problem(403, "another page may not call this server")

    def _signed(self, scope: Scope, headers: Headers) -> Signed | None:
        """Return who has signed a request; one that shows something else besides is taken at that."""
        shown = headers.getlist(SIGNED)
        if len(shown) != 1 or "authorization" in headers:
            return None
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        return self._sessions.signed(shown[0], scope["method"], path, cookies_of(headers, self._login.cookie_name))

    def _proofs(self, signed: Signed | None, headers: Headers) -> dict[str, str]:
        """Return what a page is told of who answers, and how it comes back, if it asks."""
        if signed is None:
            return {}
        found = {PROOF: signed.proof}
        if _WANTS in headers:
            found[_WAY_BACK] = " ".join(self._sessions.way_back(signed.session))
        return found

    async def _greeting(self, scope: Scope, headers: Headers) -> tuple[str, str] | None:
        """Return a nonce and the proof of the server for a page that is loaded anew; None if it may not come back.

        It is what a page asks for at `/session` otherwise, and the same is looked at.
        """
        cookies = cookies_of(headers, self._login.cookie_name)
        for asked in cookies_of(headers, _ASKS, is_beginning=True):
            session = self._sessions.of(asked.partition(".")[0])
            if session is not None and await self._refuse(scope, session.origin == self._access.proxied) is None:
                return self._sessions.greet(asked, cookies)
        return None

    def _early(self, scope: Scope, headers: Headers, signed: Signed | None) -> Response | None:
        """Return the answer to a request that is refused for what it says."""
        path = str(scope["path"])
        is_for_anybody = scope["method"] == "POST" and (path == SESSION or path.startswith(ANSWER))
        if signed is None and not is_for_anybody and not self._shows_token(headers):
            return problem(
                401, "this request shows no valid token",
                "Authorization: Bearer TOKEN", AtTerminal("agentctl serve prints where it is, in its terminal"),
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        if scope["method"] in _READS:
            return None
        is_call = not path.startswith(ANSWER)  # What a phone sends with a link does not matter.
        return (self._not_json(headers) if is_call else None) or self._too_long(headers, path) or self._read_only(path)

    def _shows_token(self, headers: Headers) -> bool:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._login.is_token(shown.strip())

    @staticmethod
    def _not_json(headers: Headers) -> Response | None:
        kind = headers.get("content-type")
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if kind is None and not has_body:
            return None
        if (kind or "").partition(";")[0].strip().lower() == "application/json":
            return None
        return problem(415, "the body must be JSON", "Content-Type: application/json", code=ExitCode.USAGE)

    @staticmethod
    def _too_long(headers: Headers, path: str) -> Response | None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) <= _longest(path):
            return None
        return _too_large()

    def _read_only(self, path: str) -> Response | None:
        if not self._access.is_read_only or path == SESSION:
            return None
        return problem(403, "this server only shows", "it was started as read-only")

    async def _late(self, scope: Scope, headers: Headers, signed: Signed | None) -> Response | None:
        """Return the answer to a request that is refused because of the one who makes it."""
        # What a page shows that has another address has not come through the proxy, whatever it says.
        origin = signed.session.origin if signed is not None else headers.get("origin", "")
        is_of_a_page = signed is not None or scope["path"] == SESSION
        refusal = await self._refuse(scope, not is_of_a_page or origin == self._access.proxied)
        return None if refusal is None else problem(403, refusal.why, refusal.hint)


def in_origin_form(scope: Scope) -> Scope:
    """Return a request whose target is absolute (`GET http://NAME/PATH`) as one whose target is a path alone.

    The name in the target counts, and not the header `Host` (RFC 9112, 3.2.2). A target with a user in it stays as it
    is, and leads nowhere (RFC 9110, 4.2.4).
    """
    found = _ABSOLUTE.fullmatch(scope["raw_path"])
    hosts = [one for one in scope["headers"] if one[0] == b"host"]
    if found is None or len(hosts) != 1:
        return scope
    path = found[2] or b"/"
    headers = [(name, found[1] if name == b"host" else value) for name, value in scope["headers"]]
    return {**scope, "raw_path": path, "path": unquote(path.decode("ascii")), "headers": headers}


def _is_open(scope: Scope) -> bool:
    """Return whether anybody may have it: a file of the page."""
    return scope["method"] in _READS and not _is_call(str(scope["path"]))


def _is_page(scope: Scope) -> bool:
    """Return whether index.html is asked for."""
    return scope["method"] == "GET" and _is_open(scope) and not str(scope["path"]).startswith(STATIC)


def _is_call(path: str) -> bool:
    """Return whether a path is for programs, and not for a browser's address line."""
    if path in {SESSION, "/api"} or path.startswith(("/api/", "/healthz", "/metrics", ANSWER)):
        return True
    return path.startswith("/task") and not path.startswith("/tasks")


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Return whether a person has come to the page by a link elsewhere."""
    is_document = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return scope["method"] == "GET" and is_document and _is_open(scope)


def cookies_of(headers: Headers, name: str, *, is_beginning: bool = False) -> list[str]:
    """Return the values of the cookies of a name; any server of this machine may have set others, whatever they are.

    Args:
        is_beginning: The name is only the beginning of theirs.
    """
    pairs = (one.strip().partition("=") for header in headers.getlist("cookie") for one in header.split(";"))
    return [value for key, _, value in pairs if key == name or (is_beginning and key.startswith(name))]


def _longest(path: str) -> int:
    """Return how long a body may be: anybody may send one to where the token is shown, or a link is used."""
    return _LONGEST_OF_ANYBODY if path == SESSION or path.startswith(ANSWER) else LONGEST_BODY


def _too_large() -> Response:
    return problem(413, "the body is too long", "send less at once", code=ExitCode.USAGE)


class TooLarge(Exception):
    """A body without a stated length turned out to be too long."""

    response = staticmethod(_too_large)


class _Bounded:
    """Receives a body, up to the limit."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most = receive, most
        self._had = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._had += len(message.get("body", b""))
        if self._had > self._most:
            raise TooLarge
        return message


def _with_headers(send: Send, proofs: Mapping[str, str], pressed_at: str | None) -> Send:
    """Return a function that adds to each response what browsers are told, and what proves to a page whose it is.

    Args:
        pressed_at: The origin of a page elsewhere that may read whether its answer was taken.
    """

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-cache, private")
            headers.update(proofs)
            if pressed_at is not None:
                headers["Access-Control-Allow-Origin"] = pressed_at
                headers.add_vary_header("Origin")
        await send(message)

    return sent
