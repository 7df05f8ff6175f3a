"""The pages that are let in: how one enters, and how each of its requests shows that it comes from there.

All of it is in the memory of this run of the server, and only its own thread uses it. No request can be sent twice:
each has a number, which counts once.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from agentctl.interfaces.web.login import Login, hidden, is_same, proof, random_text
from agentctl.lean import Any, NamedTuple

#: What is longest unused gives way: a session costs some kilobytes, what was begun some hundred bytes.
_MOST_SESSIONS, _MOST_BEGUN, _MOST_USED = 1000, 1000, 10_000
_BEGUN_S = 60
#: So long after its last page has gone what the browser has kept opens one again: loading one anew takes less. Browsers
#: write all that they keep to the disk, cookies of a session too, so that they can restore them.
_RETURN_S = 60
#: A request may arrive behind so many that were made after it.
_WINDOW = 1024
_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
_SIGNED = re.compile(r"([A-Za-z0-9_-]{22})\.([0-9]{1,15})\.([0-9a-f]{64})", re.ASCII)
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Begun(NamedTuple):
    """A page that wants to enter, and has not proved yet that it may."""

    name: str
    secret: str
    origin: str
    #: What the page has chosen, and the server.
    nonces: tuple[str, str]
    until: float

    def session(self, cookie: str, now: float) -> PageSession:
        """Return the session that it becomes."""
        return PageSession(proof(self.secret, "session", *self.nonces), cookie, self.origin, now)


class PageSession:
    """A page that is let in."""

    def __init__(self, key: str, cookie: str, origin: str, now: float) -> None:
        self.key, self.cookie = key, cookie
        #: Its requests that are not answered yet, the stream among them; and when there was last none any more.
        self._open, self._left_at = 0, now
        #: The address that the page has in its browser: no other page can have proved it.
        self.origin = origin
        self._highest = 0
        self._had: set[int] = set()

    @property
    def again(self) -> str:
        """The secret that the browser keeps, to enter again when a page is loaded anew."""
        return proof(self.key, "again")

    @contextmanager
    def asking(self, now: Callable[[], float]) -> Iterator[None]:
        """Note that its page is there, until its request is answered."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._left_at = now()

    def may_return(self, now: float) -> bool:
        """Return whether a page of it is there, or was just now."""
        return self._open > 0 or now < self._left_at + _RETURN_S

    def takes(self, number: int) -> bool:
        """Return whether the request of this number has not come before."""
        if number in self._had or number <= self._highest - _WINDOW:
            return False
        self._had.add(number)
        self._highest = max(self._highest, number)
        if len(self._had) > 2 * _WINDOW:
            self._had = {one for one in self._had if one > self._highest - _WINDOW}
        return True


class Entered(NamedTuple):
    """What a page gets that has entered."""

    session: str
    cookie: str
    #: With which it comes back after a restart.
    page: str
    #: Its key, hidden under that of the session.
    key: str


class Signed(NamedTuple):
    """A request that a page has signed."""

    session: PageSession
    #: What tells the page that the answer comes from this server.
    proof: str


class PageSessions:
    """The sessions of one run of a server."""

    def __init__(self, login: Login, now: Callable[[], float] = time.time) -> None:
        self._login, self._now = login, now
        self._sessions: OrderedDict[str, PageSession] = OrderedDict()
        self._begun: OrderedDict[str, Begun] = OrderedDict()
        #: The codes that were used.
        self._used: OrderedDict[str, None] = OrderedDict()

    # -- entering --------------------------------------------------------------------------------------------------

    def begin(self, name: str, nonce: str, origin: str, cookies: Iterable[str]) -> tuple[str, str] | None:
        """Return a nonce and the proof that this server knows the secret of a name; None if it knows no such one."""
        secret = self._secret_of(name, list(cookies))
        if secret is None or _NONCE.fullmatch(nonce) is None:
            return None
        if name.startswith("session."):  # Its page is there.
            self._sessions.move_to_end(name.partition(".")[2])
        own = random_text(16)
        self._begun[own] = Begun(name, secret, origin, (nonce, own), self._now() + _BEGUN_S)
        _bound(self._begun, _MOST_BEGUN)
        return own, proof(secret, "server", name, origin, nonce, own)

    def of(self, name: str) -> PageSession | None:
        """Return the session of a name."""
        return self._sessions.get(name)

    def greet(self, asked: str, cookies: Iterable[str]) -> tuple[str, str] | None:
        """Return the same for a page that is being loaded, and was there before; None if it was not.

        Args:
            asked: The session that it had, and its nonce, as its cookie has them.
        """
        name, _, nonce = asked.partition(".")
        session = self._sessions.get(name)
        return None if session is None else self.begin(f"session.{name}", nonce, session.origin, cookies)

    def enter(self, nonce: str, shown: str, cookies: Iterable[str]) -> Entered | None:
        """Let a page in that proves that it knows the secret; None if it does not. It has one try."""
        begun = self._begun.pop(nonce, None)
        if begun is None or begun.until < self._now() or begun.name in self._used:
            return None
        if not is_same(shown, proof(begun.secret, "page", begun.name, begun.origin, *begun.nonces)):
            return None
        if begun.name.startswith("code."):
            self._used[begun.name] = None
            _bound(self._used, _MOST_USED)
        # The tabs of a browser share it. It may be known to other servers of this machine: alone it opens nothing.
        cookie = next(filter(_COOKIE.fullmatch, cookies), None) or random_text(32)
        made = begun.session(cookie, self._now())
        self._keep(nonce, made)
        return Entered(nonce, cookie, *self.way_back(made))

    def _keep(self, name: str, session: PageSession) -> None:
        self._sessions[name] = session
        self._sessions.move_to_end(name)
        _bound(self._sessions, _MOST_SESSIONS)

    def way_back(self, session: PageSession) -> tuple[str, str]:
        """Return the name and the hidden key with which a page that is let in comes back after a restart."""
        page, key = self._login.new_page()
        return page, hidden(key, proof(session.key, "page", page))

    def _secret_of(self, name: str, cookies: list[str]) -> str | None:
        if name == "token":
            return self._login.token
        kind, _, rest = name.partition(".")
        if kind == "code" and name not in self._used:
            return self._login.secret_of_code(rest, self._now())
        if kind == "page":
            return self._login.secret_of_page(rest)
        session = self._sessions.get(rest) if kind == "session" else None
        if session is None or session.cookie not in cookies or not session.may_return(self._now()):
            return None
        return session.again

    # -- being inside ----------------------------------------------------------------------------------------------

    def signed(self, shown: str, method: str, path: str, cookies: Iterable[str]) -> Signed | None:
        """Return the session that has signed a request, if nobody has sent it before.

        Args:
            shown: The session, the number of the request, and the proof.
            path: As it came, with its query.
        """
        found = _SIGNED.fullmatch(shown)
        session = self._sessions.get(found[1]) or self._greeted(found[1]) if found is not None else None
        if found is None or session is None or session.cookie not in cookies:
            return None
        if not is_same(found[3], proof(session.key, "ask", method, path, found[2])) or not session.takes(int(found[2])):
            return None
        self._begun.pop(found[1], None)
        self._keep(found[1], session)
        return Signed(session, proof(session.key, "answer", found[2]))

    def _greeted(self, name: str) -> PageSession | None:
        """Return the session of a page that was greeted, while the one that it had is there. A signature proves it."""
        begun = self._begun.get(name)
        kind, _, before = ("", "", "") if begun is None else begun.name.partition(".")
        had = self._sessions.get(before) if kind == "session" else None
        if begun is None or had is None or begun.until < self._now():
            return None
        return begun.session(had.cookie, self._now())

    def asking(self, signed: Signed) -> AbstractContextManager[None]:
        """Return what is entered while a request of a page is answered."""
        return signed.session.asking(self._now)

    def leave(self, cookies: Iterable[str]) -> None:
        """End the sessions of a browser."""
        gone = set(cookies)
        for name in [name for name, one in self._sessions.items() if one.cookie in gone]:
            del self._sessions[name]


def _bound(kept: OrderedDict[str, Any], most: int) -> None:
    """Let the oldest go, if there are too many."""
    if len(kept) > most:
        kept.popitem(last=False)
