"""Prints TEXT and a newline to stdout, with --stderr to stderr."""

from __future__ import annotations

import argparse
import sys

import bounded


def main() -> None:
    """Print and end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text")
    parser.add_argument("--stderr", action="store_true")
    options = parser.parse_args()
    bounded.live_at_most()
    print(options.text, file=sys.stderr if options.stderr else sys.stdout)


if __name__ == "__main__":
    main()
