"""The files of the page, read once: a request gets one of these, and never another file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from agentctl.lean import NamedTuple

FOLDER = Path(__file__).parent / "page"
PREFIX = "/static/"
INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".png": "image/png", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}  # fmt: skip


class PageFile(NamedTuple):
    """A file of the page."""

    data: bytes
    media_type: str
    tag: str

    def response(self, request: Request) -> Response:
        """Return it for a request; what a browser has already is not sent again."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache, private"}
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(b"", 304, headers)
        return Response(self.data, 200, headers, self.media_type)


def page_files() -> dict[str, PageFile]:
    """Return the files by their names below the folder."""
    return dict(_read())


def _read() -> Iterator[tuple[str, PageFile]]:
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            path = Path(folder, name)
            kind = _TYPES.get(path.suffix)
            if kind is not None:
                data = path.read_bytes()
                tag = f'"{blake2b(data, digest_size=12).hexdigest()}"'
                yield path.relative_to(FOLDER).as_posix(), PageFile(data, kind, tag)
