"""Prints what must never reach a person's terminal as it is, and ends: each on a line that says what it is.

The lines begin with `ESCAPE name: ` and end with ` END`, so a test can find each and see what became of it.
"""

from __future__ import annotations

import os
import sys

import bounded

ESCAPES = {
    "colour": b"\x1b[31mred\x1b[0m",
    "clear-screen": b"\x1b[2J\x1b[H",
    "move-up-and-erase": b"\x1b[1A\x1b[2K",
    "title": b"\x1b]0;another title\x07",
    "clipboard": b"\x1b]52;c;cm0gLXJmIH4=\x07",
    "hyperlink": b"\x1b]8;;file:///etc/passwd\x1b\\text\x1b]8;;\x1b\\",
    "device-control": b'\x1bP$q"p\x1b\\',
    "status-report": b"\x1b[6n",
    "alternate-screen": b"\x1b[?1049h",
    "c1-csi-as-utf8": "\u009b31m".encode(),
    "c1-csi-as-byte": b"\x9b31m",
    "bell-and-backspace": b"visible\x07\x08\x08\x08",
    "carriage-return": b"completed\rfailed   ",
    "nul": b"a\x00b",
    "delete": b"a\x7fb",
    "right-to-left": "\u202egpj.exe\u202c".encode(),
    "line-separator": "a\u2028b".encode(),
    "not-utf-8": b"\xff\xfe\xc3",
}


def main() -> None:
    """Write every one of them, to stdout or (with --stderr) to stderr."""
    bounded.live_at_most()
    stream = 2 if "--stderr" in sys.argv[1:] else 1
    for name, escape in ESCAPES.items():
        os.write(stream, b"ESCAPE " + name.encode() + b": " + escape + b" END\n")


if __name__ == "__main__":
    main()
