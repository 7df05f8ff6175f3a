"""Draws the icons of the page: three workers, the first of whom needs you.

python docs/pictures/icons.py
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

#: The colours: the ground, and for each worker its dot and its line.
_GROUND = (21, 23, 27)
_LINE = (228, 230, 234)
_DOTS = ((233, 181, 80), (143, 178, 255), (116, 211, 153))
#: On a canvas of 24: the radius of the corners, the places of the rows, and how long the line of each is.
_CORNER = 5.4
_ROWS = ((7.2, 18.6), (12.0, 16.4), (16.8, 13.6))
_DOT_X, _DOT_R, _LINE_X, _LINE_R = 6.6, 1.7, 10.4, 1.05
_SAMPLES = 4

Colour = tuple[int, int, int]


def _colour_at(x: float, y: float) -> Colour:
    """Return the colour of a point on the canvas, inside of its corners."""
    for (row, end), dot in zip(_ROWS, _DOTS, strict=True):
        if (x - _DOT_X) ** 2 + (y - row) ** 2 <= _DOT_R**2:
            return dot
        near = min(max(x, _LINE_X), end)
        if (x - near) ** 2 + (y - row) ** 2 <= _LINE_R**2:
            return _LINE
    return _GROUND


def _is_inside(x: float, y: float) -> bool:
    """Return whether a point is inside of the rounded square."""
    across, down = abs(x - 12) - (12 - _CORNER), abs(y - 12) - (12 - _CORNER)
    if across <= 0 or down <= 0:
        return max(across, down) <= _CORNER
    return across**2 + down**2 <= _CORNER**2


def _pixels(size: int, scale: float, *, is_full: bool) -> Iterator[bytes]:
    """Yield the rows of the picture as RGBA; each pixel is the mean of its samples.

    Args:
        scale: How large the drawing is; a platform may cut off what is beyond 0.8.
        is_full: The ground reaches into the corners.
    """
    steps = [(number + 0.5) / _SAMPLES for number in range(_SAMPLES)]
    for row in range(size):
        line = bytearray()
        for column in range(size):
            red = green = blue = solid = 0
            for down in steps:
                for across in steps:
                    x, y = (column + across) / size * 24, (row + down) / size * 24
                    if not (is_full or _is_inside(x, y)):
                        continue
                    one = _colour_at(12 + (x - 12) / scale, 12 + (y - 12) / scale)
                    red, green, blue, solid = red + one[0], green + one[1], blue + one[2], solid + 1
            count = max(solid, 1)
            line += bytes((red // count, green // count, blue // count, solid * 255 // _SAMPLES**2))
        yield bytes(line)


def _png(size: int, rows: Iterator[bytes]) -> bytes:
    """Return a picture as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def main() -> None:
    """Write all of them where the page has them."""
    folder = Path(__file__).parents[2] / "agentctl" / "web" / "page" / "icons"
    for name, size, scale, is_full in (
        ("icon-192", 192, 1.0, False), ("icon-512", 512, 1.0, False), ("maskable-192", 192, 0.78, True),
        ("maskable-512", 512, 0.78, True), ("apple-touch-icon", 180, 0.92, True),
    ):  # fmt: skip
        (folder / f"{name}.png").write_bytes(_png(size, _pixels(size, scale, is_full=is_full)))


if __name__ == "__main__":
    main()
