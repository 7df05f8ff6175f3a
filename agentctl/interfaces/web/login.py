"""The secrets of a server, and how it and a page prove to each other that they know the same one.

A browser sends what it has to whoever holds the port: while the server is down that may be anybody. So no secret that
a page has is ever sent. Each side proves that it knows it, the server first, by a hash over what both have just said.
What is stored in the browser counts for this run of the server alone, only together with a cookie, and for a minute
after its last page has gone.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import time
from hashlib import sha256

from agentctl.lean import NamedTuple

#: So long a link can be opened, once.
CODE_S = 600
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
#: Until when it counts, in seconds since 1970, and a random part. The secret of a code is behind its name.
_CODE_NAME = re.compile(r"([0-9a-f]{8})[A-Za-z0-9_-]{8}", re.ASCII)
_PAGE_NAME = re.compile(r"([A-Za-z0-9_-]{22})\.[A-Za-z0-9_-]{22}", re.ASCII)
_CODE_SECRET = 22


class Login(NamedTuple):
    """The secret of a server, and what is made from it."""

    token: str
    #: Of the root: a browser may have cookies of the servers of several roots.
    cookie_name: str
    #: Names this run of the server; no secret.
    start: str

    def is_token(self, shown: str) -> bool:
        """Return whether it is the token."""
        return is_same(shown, self.token)

    def secret_of_code(self, name: str, now: float) -> str | None:
        """Return the secret of the code with a name; None if there is none, or it is too old."""
        found = _CODE_NAME.fullmatch(name)
        until = int(found[1], 16) if found is not None else 0
        return _code_secret(self.token, self.start, name) if now < until <= now + CODE_S + 1 else None

    def secret_of_page(self, name: str) -> str | None:
        """Return the key with which a page comes back after a restart; None for one of this very run."""
        found = _PAGE_NAME.fullmatch(name)
        return None if found is None or found[1] == self.start else proof(self.token, "page", name)

    def new_page(self) -> tuple[str, str]:
        """Return the name and the key with which a page can come back to a later run of the server."""
        name = f"{self.start}.{random_text(16)}"
        return name, proof(self.token, "page", name)


def new_link(url: str, token: str, start: str, now: float | None = None) -> str:
    """Return a link to a server that can be opened once, soon.

    The code is behind the `#`: browsers send that to no server. Whoever knows the token can make one, so that it needs
    no word from the server.
    """
    until = int(time.time() if now is None else now) + CODE_S
    name = f"{until:08x}{random_text(6)}"
    return f"{url}/#{name}{_code_secret(token, start, name)}"


def _code_secret(token: str, start: str, name: str) -> str:
    digest = bytes.fromhex(proof(token, "code", start, name))
    return base64.urlsafe_b64encode(digest).decode()[:_CODE_SECRET]


def proof(secret: str, *words: str) -> str:
    """Return what only who knows a secret can make of some words: each of them has no line break."""
    return hmac.new(secret.encode(), "\n".join(("agentctl", *words)).encode("utf-8", "replace"), sha256).hexdigest()


def hidden(key: str, under: str) -> str:
    """Return one key hidden under another one; the same again shows it."""
    return f"{int(key, 16) ^ int(under, 16):064x}"


def is_same(shown: str, known: str) -> bool:
    """Return whether two texts are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(shown.encode("utf-8", "replace"), known.encode())


def random_text(size: int) -> str:
    """Return so many random bytes, as a text that fits into a URL."""
    return base64.urlsafe_b64encode(os.urandom(size)).rstrip(b"=").decode()


def new_token() -> str:
    """Return a new token: 256 random bits that fit into a URL."""
    return random_text(32)


def is_token(text: object) -> bool:
    """Return whether a text has the form of a token."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None
