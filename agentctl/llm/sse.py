"""Splits the bytes of an event stream into the data of its events, however they were cut on their way."""

from __future__ import annotations

from collections.abc import Iterator

#: No honest event is longer.
LONGEST = 32 << 20


class TooLong(ValueError):
    """An event never ends."""


class SseStream:
    """The events of one stream. Comments (`: keep-alive`) and all fields but `data` mean nothing here."""

    def __init__(self) -> None:
        self._line = bytearray()
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
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(self._line) + line
            self._line.clear()
            yield from self._take(whole.removesuffix(b"\r"))
        self._line += rest

    def rest(self) -> Iterator[bytes]:
        """Yield the data of an event that the end of the stream completes."""
        if self._line:
            line, self._line = bytes(self._line), bytearray()
            yield from self._take(line.removesuffix(b"\r"))
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not line:
            data, self._data, self._size = b"\n".join(self._data), [], 0
            if data:
                yield data
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
