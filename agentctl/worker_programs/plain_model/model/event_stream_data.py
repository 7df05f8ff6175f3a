"""Splits the bytes of an event stream into the data of its events, however they were cut on their way."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.adapters.lines import LineBuffer

#: No honest event is longer.
LONGEST = 32 << 20


class TooLong(ValueError):
    """An event never ends."""


class SseStream:
    """The events of one stream. Comments (`: keep-alive`) and all fields but `data` mean nothing here."""

    def __init__(self) -> None:
        self._lines = LineBuffer()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a chunk completes.

        Raises:
            TooLong: An event is longer than any honest one.
        """
        self._size += len(chunk)
        if self._size > LONGEST:
            raise TooLong(f"an event of more than {LONGEST} bytes")
        for line in self._lines.feed(chunk):
            yield from self._take(line)

    def rest(self) -> Iterator[bytes]:
        """Yield the data of an event that the end of the stream completes."""
        yield from self._take(self._lines.rest())
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[bytes]:
        line = line.removesuffix(b"\r")
        if not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            if data:
                yield data
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
