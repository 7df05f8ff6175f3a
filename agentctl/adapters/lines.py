"""Splits a stream of bytes into lines, however they were cut on their way; what a line means is up to the caller."""

from __future__ import annotations

from collections.abc import Iterator

#: Stands in the place of a line that is too long. No line is equal to it: lines come without their newline.
TOO_LONG = b"\n"


class LineBuffer:
    """Takes chunks, and gives the lines that they complete; a line of many megabytes is joined only once.

    Args:
        longest: In bytes, without the newline. As soon as a line is longer, `TOO_LONG` is given in its place, and the
            rest of it is dropped as it comes. Without a limit, a line takes as much memory as it is long.
    """

    def __init__(self, longest: float = float("inf")) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield each line that `chunk` completes, without its newline."""
        *ends, begun = chunk.split(b"\n")
        for end in ends:
            if self._becomes_too_long(end):
                yield TOO_LONG
            if self._size <= self._longest:
                yield b"".join(self._parts)
            self._parts, self._size = [], 0
        if self._becomes_too_long(begun):
            yield TOO_LONG

    @property
    def has_begun(self) -> bool:
        """Whether there is a line that no newline has completed yet."""
        return self._size > 0

    def _becomes_too_long(self, part: bytes) -> bool:
        """Add a part to the line; return whether it is too long by that, and was not before."""
        was_too_long = self._size > self._longest
        self._size += len(part)
        if self._size <= self._longest:
            self._parts.append(part)
            return False
        self._parts.clear()
        return not was_too_long

    def rest(self) -> bytes:
        """Return the last line, which no newline has completed, and forget it; empty if it is too long."""
        line = b"".join(self._parts)
        self._parts, self._size = [], 0
        return line
