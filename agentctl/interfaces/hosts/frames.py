"""The frames in which two agentctl talk through ssh: a kind, a length, that many bytes; before them a line, the hello.

What a login shell prints before it is told apart by the mark of the hello. Only after the hello is anything sent, so no
startup file over there can read what is meant for agentctl.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping

from agentctl.domain.text.plaintext import beginning, plain
from agentctl.errors import ExitCode
from agentctl.lean import Any, NamedTuple

PROTOCOL = 1
MARK = b"\0agentctl\0"

#: To the far end: the order, what is typed, Ctrl-C, the size of the terminal, "it was printed", "it will not be
#: printed: stop", "nobody reads this stream any more".
ORDER, IN, INTERRUPT, RESIZE, PRINTED, DECLINED, CLOSED = b"o", b"i", b"c", b"w", b"p", b"d", b"x"
#: From the far end: its two streams, "the command reads its input", "say once all this is printed", the exit code.
OUT, ERR, WANT, PRINT, EXIT = b"1", b"2", b"r", b"s", b"e"
#: From both, so that silence means something.
BEAT = b"b"

#: How much of a stream is in one frame; and the longest order: a prompt may have some megabytes.
PIECE, MOST_ORDER = 1 << 16, 16 << 20
#: Kind -> its longest content, as each side accepts it.
TO_FAR = {ORDER: MOST_ORDER, IN: PIECE, INTERRUPT: 0, RESIZE: 64, PRINTED: 0, DECLINED: 0, CLOSED: 1, BEAT: 0}
FROM_FAR = {OUT: PIECE, ERR: PIECE, WANT: 0, PRINT: 0, EXIT: 8, BEAT: 0}

#: How often each side says that it is there.
BEAT_S = 5.0
#: The longest hello; and how much a login shell may print before it.
_LONGEST_HELLO, MOST_NOISE = 200, 1 << 16
_HEAD = struct.Struct(">cI")


class BadFrames(ValueError):
    """The other side sends something that is not a frame."""


def frame(kind: bytes, content: bytes = b"") -> bytes:
    """Return a frame.

    >>> frame(OUT, b"ab")
    b'1\\x00\\x00\\x00\\x02ab'
    """
    return _HEAD.pack(kind, len(content)) + content


def frames_of(kind: bytes, data: bytes) -> Iterator[bytes]:
    """Yield the frames of a piece of a stream."""
    for start in range(0, len(data), PIECE):
        yield frame(kind, data[start : start + PIECE])


class Frames:
    """Takes bytes as they come, and returns the frames that they complete.

    Args:
        known: Kind -> its longest content.
    """

    def __init__(self, known: Mapping[bytes, int]) -> None:
        self._known = known
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield each frame that is complete now, as kind and content.

        Raises:
            BadFrames: What came is not a frame of a known kind and length.
        """
        self._rest += data
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            if length > self._known.get(kind, -1):
                raise BadFrames(f"a frame of kind {kind!r} with {length} bytes")
            if len(self._rest) < _HEAD.size + length:
                return
            content = bytes(self._rest[_HEAD.size : _HEAD.size + length])
            del self._rest[: _HEAD.size + length]
            yield kind, content


def code_of(content: bytes) -> int:
    """Return the exit code in the last frame of a far end; 1 where it says none that a process can have.

    >>> code_of(b"7"), int(code_of(b"256")), int(code_of(b"-1"))
    (7, 1, 1)
    """
    code = int(content) if content.isdigit() else -1
    return code if 0 <= code <= 0xFF else ExitCode.REFUSED


class Hello(NamedTuple):
    """What the far end says first."""

    protocol: int
    version: str


def hello_line(version: str) -> bytes:
    """Return the hello of an agentctl."""
    return MARK + json.dumps({"protocol": PROTOCOL, "version": version}).encode() + b"\n"


class Greeting:
    """Takes bytes until the hello has come.

    Attributes:
        noise: What came before it; a login shell printed it.
        rest: What came behind it.
    """

    def __init__(self) -> None:
        self.noise = self.rest = b""
        self._data = b""

    def feed(self, data: bytes) -> Hello | None:
        """Return the hello once it is there.

        Raises:
            BadFrames: More came than a login shell prints, or its hello is not one.
        """
        self._data += data
        before, mark, behind = self._data.partition(MARK)
        line, end, rest = behind.partition(b"\n")
        self.noise = before
        if len(before) > MOST_NOISE or len(line) > _LONGEST_HELLO:
            raise BadFrames("what it prints does not begin with the hello of agentctl")
        if not mark or not end:
            return None
        self.rest = rest
        return _parse_hello(line)


def _parse_hello(line: bytes) -> Hello:
    try:
        said: Any = json.loads(line)
        protocol, version = said["protocol"], said["version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadFrames("its hello is not that of agentctl") from error
    if type(protocol) is not int or not isinstance(version, str):
        raise BadFrames("its hello is not that of agentctl")
    return Hello(protocol, plain(beginning(version, 40)))
