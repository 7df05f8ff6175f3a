"""Exits with CODE; with --after-file FILE only once that file is there."""

from __future__ import annotations

import argparse

import bounded


def main() -> None:
    """Wait if asked to, then exit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("code", type=int)
    parser.add_argument("--after-file", metavar="FILE")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    if options.after_file is not None:
        bounded.wait_for_file(options.after_file)
    raise SystemExit(options.code)


if __name__ == "__main__":
    main()
