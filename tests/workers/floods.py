"""Writes binary output as fast as it can: every byte value, no regard for lines, until somebody stops it.

With --bytes N exactly N bytes, then it ends. Without it, it stops by itself at 4 GiB with exit code 3, so
that a limit that does not work cannot fill a disk.
"""

from __future__ import annotations

import argparse
import os

import bounded

BLOCK = bytes(range(256)) * 256
MOST_BYTES = 4 * 1024**3


def main() -> None:
    """Write to the streams that were named, to each the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, help="how many to each stream")
    parser.add_argument("--to", choices=("stdout", "stderr", "both"), default="stdout")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    streams = {"stdout": (1,), "stderr": (2,), "both": (1, 2)}[options.to]
    left = MOST_BYTES if options.bytes is None else min(options.bytes, MOST_BYTES)
    while left > 0:
        block = BLOCK[:left]
        for stream in streams:
            write_all(stream, block)
        left -= len(block)
    raise SystemExit(3 if options.bytes is None else 0)


def write_all(stream: int, block: bytes) -> None:
    """Write the whole block: a pipe may take less at a time."""
    while block:
        block = block[os.write(stream, block) :]


if __name__ == "__main__":
    main()
