"""The files of the page, read once: a request gets one of these, and never another file.

What runs or draws is below a folder that is named by the content of the whole page and by a random word of this run of
the server: so a browser keeps it, and asks for it no more. Nobody who has had the port before knows that word, so
nothing that such a program has had the browser keep is taken for a file of ours. After a restart, a page that is still
open gets further files of the same content by its own word, and none of another content.
"""

from __future__ import annotations

import gzip
import os
import secrets
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from agentctl.interfaces.web.compression import LEAST, accepts_gzip
from agentctl.interfaces.web.etags import etag_of, has_already
from agentctl.lean import NamedTuple

FOLDER = Path(__file__).parent / "page"
PREFIX = "/static/"
INDEX = "index.html"
#: The place in it for the proof of the server.
_UNGREETED = b'<meta name="greeting" content="">'
_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".png": "image/png", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}  # fmt: skip
#: What is found without the folder: an installed page asks for it by the address that it had then.
_UNNAMED = (".png", ".svg", ".webmanifest")
_EVER, _FOR_A_DAY, _NEVER = "private, max-age=31536000, immutable", "private, max-age=86400", "no-store"
_ASK_FIRST = "no-cache, private"


class PageFile(NamedTuple):
    """A file of the page."""

    data: bytes
    media_type: str
    tag: str

    def response(self, request: Request, kept: str = _ASK_FIRST) -> Response:
        """Return it for a request; what a browser has already is not sent again.

        Args:
            kept: How long a browser may keep it.
        """
        headers = {"ETag": self.tag, "Cache-Control": kept}
        if has_already(request.headers, self.tag):
            return Response(b"", 304, headers)
        data = self.data
        if len(data) >= LEAST and not self.media_type.startswith("image/png"):
            headers["Vary"] = "Accept-Encoding"
            if accepts_gzip(request.headers):
                data, headers["Content-Encoding"], headers["ETag"] = _packed(data), "gzip", f"W/{self.tag}"
        return Response(data, 200, headers, self.media_type)


@lru_cache(maxsize=256)
def _packed(data: bytes) -> bytes:
    """Return a file as it is sent to most browsers: each is compressed once."""
    return gzip.compress(data, 9, mtime=0)


class PageFiles:
    """All files of the page, for one run of the server."""

    def __init__(self) -> None:
        data = dict(sorted(shipped_files().items()))
        whole = blake2b(digest_size=8)
        for name, content in data.items():
            whole.update(f"{name} {len(content)}\n".encode() + content)
        self._content, self._run = whole.hexdigest(), secrets.token_hex(8)
        #: Where index.html finds the files.
        self.folder = f"{PREFIX}{self._content}.{self._run}/"
        page = data.pop(INDEX)
        for name in data:
            if not name.endswith(_UNNAMED):
                page = page.replace(f'"{PREFIX}{name}"'.encode(), f'"{self.folder}{name}"'.encode())
        self._files = {name: _file(name, content) for name, content in data.items()}
        self._index = _file(INDEX, page)

    def index(self, request: Request, greeting: tuple[str, str] | None) -> Response:
        """Return the page.

        Args:
            greeting: A nonce and the proof of the server, for a page that is loaded anew.
        """
        if greeting is None:
            return self._index.response(request)
        page = self._index.data.replace(_UNGREETED, _UNGREETED[:-2] + f'{".".join(greeting)}">'.encode())
        headers = {"Cache-Control": _NEVER, "Vary": "Accept-Encoding"}
        if accepts_gzip(request.headers):
            page, headers["Content-Encoding"] = gzip.compress(page, mtime=0), "gzip"
        return Response(page, 200, headers, self._index.media_type)

    def response(self, name: str, request: Request) -> Response | None:
        """Return a file; None if there is none of that name.

        Args:
            name: What follows the prefix.
        """
        if name.endswith(_UNNAMED) and (unnamed := self._files.get(name)) is not None:
            return unnamed.response(request, _FOR_A_DAY)
        folder, _, rest = name.partition("/")
        content, _, run = folder.partition(".")
        found = self._files.get(rest)
        if found is None or content != self._content or not run:
            return None
        return found.response(request, _EVER if run == self._run else _NEVER)


def _file(name: str, data: bytes) -> PageFile:
    return PageFile(data, _TYPES[Path(name).suffix], etag_of(data))


def shipped_files() -> dict[str, bytes]:
    """Return the files by their names below the folder."""
    found = {}
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            path = Path(folder, name)
            if path.suffix in _TYPES:
                found[path.relative_to(FOLDER).as_posix()] = path.read_bytes()
    return found
