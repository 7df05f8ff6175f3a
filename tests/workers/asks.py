"""Asks a person: runs `agentctl interact ask ARGS`, prints the answer, exits as that command did.

asks.py --kind confirm "Delete the old logs?"
"""

from __future__ import annotations

import subprocess
import sys

import bounded


def main() -> None:
    """Hand all arguments on."""
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    ask = [sys.executable, "-m", "agentctl", "interact", "ask", *sys.argv[1:]]
    asked = subprocess.run(ask, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if asked.returncode == 0:
        bounded.say(f"answer: {asked.stdout.rstrip()}")
    raise SystemExit(asked.returncode)


if __name__ == "__main__":
    main()
