"""Prints a single line of --bytes N (2 MiB), its newline with it; with --torn no newline at its end."""

from __future__ import annotations

import argparse
import sys

import bounded


def main() -> None:
    """Write one line that is longer than any buffer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=2 * 1024**2)
    parser.add_argument("--torn", action="store_true", help="end without a newline")
    options = parser.parse_args()
    bounded.live_at_most()
    end = "" if options.torn else "\n"
    digits = "0123456789" * (options.bytes // 10 + 1)
    sys.stdout.write(digits[: options.bytes - len(end)] + end)


if __name__ == "__main__":
    main()
