"""Who is let in: the token of a server, kept in memory, and what follows from it for the browser.

A cookie alone proves little on a machine with several users: cookies do not know ports, so a browser sends them to any
server of this machine. So the page also shows a key, which it keeps where only pages of this very address can read.
"""

from __future__ import annotations

import hmac
import os
import re
from hashlib import sha256

from agentctl.lean import NamedTuple

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Login(NamedTuple):
    """The secret of a server, and what is made from it."""

    token: str
    #: Of the root: a browser may have cookies of the servers of several roots.
    cookie_name: str

    @property
    def cookie(self) -> str:
        """What the browser shows with each request."""
        return self._made("cookie")

    @property
    def key(self) -> str:
        """What the page shows with each call."""
        return self._made("key")

    def _made(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), f"agentctl page {purpose} v1".encode(), sha256).hexdigest()

    def is_token(self, shown: str) -> bool:
        """Return whether it is the token."""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode())

    def is_cookie(self, shown: str) -> bool:
        """Return whether it is the cookie's value."""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.cookie.encode())

    def is_key(self, shown: str) -> bool:
        """Return whether it is the page's key."""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.key.encode())


def new_token() -> str:
    """Return a new token: 256 random bits that fit into a URL."""
    import base64

    return base64.urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()


def is_token(text: object) -> bool:
    """Return whether a text has the form of a token."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None
