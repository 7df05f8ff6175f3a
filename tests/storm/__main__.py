"""One storm: it rages for a while, lets everybody come to an end, and prints what did not hold (exit code 1)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import Protocol

from tests.life import passes
from tests.storm import checks
from tests.storm.clock import Clock
from tests.storm.disk import Disk
from tests.storm.onlookers import Follower, Screen
from tests.storm.pids import Pids
from tests.storm.upgrades import Upgrades
from tests.storm.work import Work
from tests.storm.world import World
from tests.support import run, start, wait_until

#: After so many deeds, by chance, the disk is well again.
_MENDED = 0.35
#: So long the last ones may take to their end by themselves, then they are cancelled.
_ENDING_S, _CANCELLING_S = 30, 60


class Actor(Protocol):
    """A part of the storm."""

    def act(self) -> str:
        """Do one thing; return what it was."""


class Storm:
    """All that goes on at once."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self._chance = self.world.chance("storm")
        self.work, self.disk, self.clock = Work(self.world), Disk(self.world), Clock(self.world)
        self.upgrades, self.pids = Upgrades(self.world), Pids(self.world)
        self._screen, self._follower = Screen(), Follower(self.world)
        self._began = time.monotonic()

    def rage(self, seconds: float) -> None:
        """Do one thing after another."""
        actors: dict[Actor, float] = {
            self.work: 30, self.disk: 8, self.clock: 1.5, self.upgrades: 0.7, self.pids: 1,
        }  # fmt: skip
        self.work.spawn()
        while time.monotonic() - self._began < seconds:
            [actor] = self._chance.choices(list(actors), weights=list(actors.values()))
            self._say(actor.act())
            if self._chance.random() < _MENDED:
                self.disk.mend()
            passes(self._chance.uniform(0, 0.05))

    def _say(self, what: str) -> None:
        print(f"{time.monotonic() - self._began:7.2f} {what}", flush=True)

    def calm(self) -> list[str]:
        """Mend everything, and let everybody come to an end; return what was wrong."""
        for actor in (self.disk, self.clock, self.upgrades):
            actor.mend()
        self._say("calm")
        until, found = time.monotonic() + 60, []
        while self.world.running():
            self.world.reap(1)
            if time.monotonic() > until:
                found = [f"a command does not end: {ran.argv}" for ran in self.world.running()]
                break
        run("doctor", "--fix", check=False, timeout=120)
        run("resume-queue", check=False)
        for name in self.world.kept:
            run("unpause", name, check=False)
            run("send", name, "--close", check=False)
        for row in run("list", "--json").json:
            if row["paused"]:
                run("unpause", row["agentInstance"], check=False)
        until = time.monotonic() + _ENDING_S
        while checks.unended() and time.monotonic() < until:
            for account in checks.freed_accounts():
                run("doctor", "--free-account", account, check=False)
        if left := checks.unended():
            self._say(f"cancelled, as they have not ended by themselves: {left}")
            self.world.cancelled.update(one.split()[0] for one in left)
            run("cancel", "--all", "--grace-seconds", "0.05", check=False, timeout=60)
            wait_until(checks.unended, _CANCELLING_S, accept=lambda rows: not rows, what="every worker to have ended")
        return found

    def wrong(self) -> list[str]:
        """Return what does not hold."""
        found = checks.wrong(self.world, self.pids)
        found += self._screen.wrong() + self._follower.wrong(len(self.world.task.events()))
        found += self._slots() + checks.reported(self.world)
        self.pids.end()
        until = time.monotonic() + 10
        while (left := checks.left_processes(self.world)) and time.monotonic() < until:
            passes(0.2)
        return found + [f"a process is left: {one}" for one in left]

    def _slots(self) -> list[str]:
        again: list[subprocess.Popen[str]] = [start("spawn", "--queue", "--wait", "--", "true") for _ in range(3)]
        codes = [one.wait(timeout=30) for one in again]
        return [] if codes == [0, 0, 0] else [f"a slot is lost: {codes}"]

    def force(self) -> str:
        """Return how much there was of everything."""
        task = self.world.task
        parked, idle = len(task.events("agent.parked")), len(task.events("agent.blocked"))
        return (
            f"{len(self.world.names)} workers, {len(checks.accepted(self.world))} accepted, "
            f"{len(self.world.told)} commands, {parked} parked, {idle} times idle, "
            f"{self.disk.many} faults, {self.clock.many} steps of the clock, {self.upgrades.many} upgrades, "
            f"{self.pids.many} pids reused, {self.world.kills['lost']} shims killed"
        )


def main() -> int:
    """Run a storm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    storm = Storm(options.seed)
    storm.rage(options.seconds)
    found = storm.calm()
    found += storm.wrong()
    print(storm.force())
    for one in found:
        print(f"WRONG: {one}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
