"""Adds a line to FILE, then exits with 1 until there are as many lines as SUCCEEDS_AT, from then on with 0."""

from __future__ import annotations

import argparse
from pathlib import Path

import bounded


def main() -> None:
    """Count this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("succeeds_at", type=int)
    options = parser.parse_args()
    bounded.live_at_most()
    with options.file.open("a") as file:
        file.write("run\n")
    runs = len(options.file.read_text().splitlines())
    bounded.say(f"run {runs}")
    raise SystemExit(0 if runs >= options.succeeds_at else 1)


if __name__ == "__main__":
    main()
