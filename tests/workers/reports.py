"""Reports as an agent does: progress, a message, a result. What is not given is not reported.

    reports.py --progress 40 half-way --message "found it" --summary "three bugs" --file notes.md

Exits with the code of the first report that was refused.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import bounded

REPORT = (sys.executable, "-m", "agentctl", "report")


def main() -> None:
    """Report what the options say, in this order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progress", nargs="+", metavar="PERCENT_OR_TEXT")
    parser.add_argument("--message")
    parser.add_argument("--summary")
    parser.add_argument("--file", action="append", default=[], help="a file of the result; with --summary")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    if options.progress is not None:
        report("progress", *options.progress)
    if options.message is not None:
        report("message", options.message)
    if options.summary is not None:
        files = [argument for file in options.file for argument in ("--file", file)]
        report("result", "--summary", options.summary, *files)


def report(*args: str) -> None:
    """Make one report; a refusal ends this worker."""
    code = subprocess.run([*REPORT, *args], check=False, stdin=subprocess.DEVNULL).returncode
    if code != 0:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
