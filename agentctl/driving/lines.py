"""Lines out of chunks, however long they are."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Collects chunks and gives whole lines; a line of many megabytes is joined once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that `chunk` completes, each with its newline."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._parts.append(chunk[start : end + 1])
            line = b"".join(self._parts)
            self._parts.clear()
            start = end + 1
            yield line
        if start < len(chunk):
            self._parts.append(chunk[start:])

    def rest(self) -> bytes:
        """Return what no newline has ended."""
        line = b"".join(self._parts)
        self._parts.clear()
        return line
