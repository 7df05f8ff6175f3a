"""Bytes that are given out as they are, all of them or a range: what a worker printed, and the files of its result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agentctl.interfaces.web.endpoint import RawAnswer
from agentctl.interfaces.web.etags import etag_of, has_already, range_of
from agentctl.lean import NamedTuple

#: So much is in one range, and so much is sent in one piece.
MOST_RAW = 4 << 20
PLAIN, BYTES = "text/plain; charset=utf-8", "application/octet-stream"
#: What a name in a header must not have.
_UNSAFE = re.compile(r"[^A-Za-z0-9._+@-]")
_RANGE = re.compile(r"bytes=([0-9]{1,18})?-([0-9]{1,18})?", re.ASCII)


class RawContent(NamedTuple):
    """What is given out as bytes: all of it, or a part."""

    size: int
    between: Callable[[int, int], bytes]
    in_pieces: Callable[[], Iterator[bytes]]

    def answer(self, asked: Mapping[str, str], name: str, media_type: str) -> RawAnswer:
        """Return the answer, as something that is kept and never shown as a page.

        Args:
            asked: The headers of the request, in lower case.
            name: How the file is called.
        """
        headers = {
            "Accept-Ranges": "bytes", "Content-Disposition": f'attachment; filename="{_UNSAFE.sub("_", name)}"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }  # fmt: skip
        # What is sent in pieces has no tag: all of it would have to be read first.
        whole = self.between(0, self.size) if self.size <= MOST_RAW else None
        tag = None if whole is None else etag_of(whole)
        if tag is not None:
            headers["ETag"] = tag
        if has_already(asked, tag):
            return RawAnswer(b"", media_type, 304, headers)
        span, is_part = _span(range_of(asked, tag), self.size)
        if span is None:
            return RawAnswer(b"", media_type, 416, {**headers, "Content-Range": f"bytes */{self.size}"})
        begin, end = span
        if not is_part and whole is None:
            return RawAnswer(self.in_pieces(), media_type, 200, {**headers, "Content-Length": str(end)})
        data = self.between(begin, end) if whole is None else whole[begin:end]
        if not is_part:
            return RawAnswer(data, media_type, 200, headers)
        content_range = f"bytes {begin}-{begin + max(len(data), 1) - 1}/{self.size}"
        return RawAnswer(data, media_type, 206, {**headers, "Content-Range": content_range})


def _span(wanted: str | None, size: int) -> tuple[tuple[int, int] | None, bool]:
    """Return begin and end of what a header `Range` asks for, None if there is nothing of it; and whether it is a part.

    >>> _span("bytes=2-3", 10), _span("bytes=-3", 10), _span("bytes=10-", 10)
    (((2, 4), True), ((7, 10), True), (None, True))
    >>> _span(None, 10), _span("lines=1", 10), _span("bytes=3-2", 10)
    (((0, 10), False), ((0, 10), False), ((0, 10), False))
    """
    found = _RANGE.fullmatch(wanted.replace(" ", "")) if wanted is not None else None
    first, last = (None, None) if found is None else (None if one is None else int(one) for one in found.groups())
    # What is not understood is ignored, as RFC 9110 says.
    if first is last is None or (first is not None and last is not None and last < first):
        return (0, size), False
    if first is None:
        begin, end = max(0, size - (last or 0)), size
    else:
        begin, end = first, size if last is None else min(size, last + 1)
    return (None if begin >= end else (begin, min(end, begin + MOST_RAW))), True
