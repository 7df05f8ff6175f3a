"""Starts COUNT processes, each of which starts agentctl workers until one is refused; prints how many were started.

spawns_in_a_loop.py COUNT [WORDS]: the words for `agentctl spawn --queue`, else a command that is over at once.
"""

from __future__ import annotations

import subprocess
import sys

import bounded

AGENTCTL = (sys.executable, "-m", "agentctl")


def main() -> None:
    """Attack, or be one of the attackers."""
    bounded.live_at_most()
    words = sys.argv[2:] or ["--", "true"]
    if sys.argv[1] == "--one":
        attack(words)
        return
    attackers = [
        subprocess.Popen([sys.executable, __file__, "--one", *words], stdout=subprocess.PIPE, text=True)
        for _ in range(int(sys.argv[1]))
    ]
    bounded.say(str(sum(int(attacker.communicate()[0]) for attacker in attackers)))


def attack(words: list[str]) -> None:
    """Start workers until one is refused for good."""
    started, command = 0, [*AGENTCTL, "spawn", "--queue", *words]
    while subprocess.run(command, capture_output=True, check=False).returncode == 0:
        started += 1
    print(started)


if __name__ == "__main__":
    main()
