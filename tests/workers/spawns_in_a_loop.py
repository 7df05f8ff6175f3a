"""Starts COUNT processes, each of which starts agentctl workers until one is refused; prints how many were started."""

from __future__ import annotations

import subprocess
import sys

import bounded

AGENTCTL = (sys.executable, "-m", "agentctl")


def main() -> None:
    """Attack, or be one of the attackers."""
    bounded.live_at_most()
    if sys.argv[1] == "--one":
        attack()
        return
    attackers = [
        subprocess.Popen([sys.executable, __file__, "--one"], stdout=subprocess.PIPE, text=True)
        for _ in range(int(sys.argv[1]))
    ]
    bounded.say(str(sum(int(attacker.communicate()[0]) for attacker in attackers)))


def attack() -> None:
    """Start workers until one is refused for good."""
    started = 0
    while (
        subprocess.run([*AGENTCTL, "spawn", "--queue", "--", "true"], capture_output=True, check=False).returncode == 0
    ):
        started += 1
    print(started)


if __name__ == "__main__":
    main()
