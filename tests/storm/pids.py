"""How pids are reused in a storm: a stranger gets that of a worker or a shim that has ended."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.life import Known, known, stat_fields, state_of
from tests.storm.world import World

_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
#: Another process may get the pid first.
_TRIES = 5
_MOST = 12


class Pids:
    """Strangers in the place of processes that files still name."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, world.chance("pids")
        self._strangers: list[subprocess.Popen[bytes]] = []
        self._known: list[Known] = []

    @property
    def many(self) -> int:
        """How many pids were reused."""
        return len(self._known)

    def act(self) -> str:
        """Start a stranger with a pid that is free and named by some file."""
        named = [pid for pid in self._named() if stat_fields(pid) is None]
        if not named or len(self._known) >= _MOST or not os.access(_LAST_PID, os.W_OK):
            return "no pid to reuse"
        pid = self._chance.choice(named)
        for _ in range(_TRIES):
            _LAST_PID.write_text(str(pid - 1), encoding="ascii")
            stranger = subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True, env={})
            self._strangers.append(stranger)
            if stranger.pid == pid:
                self._known.append(known(pid))
                return f"pid {pid} reused"
            self._end(stranger)
        return f"pid {pid} not had"

    def _named(self) -> list[int]:
        found = []
        for name in ("worker.json", "shim.json"):
            for file in sorted(self._world.task.path.glob(f"agents/*/{name}")):
                try:
                    found.append(int(json.loads(file.read_bytes())["pid"]))
                except (OSError, ValueError, KeyError):
                    continue
        return found

    def signalled(self) -> list[Known]:
        """Return the strangers that somebody has stopped or ended."""
        return [one for one in self._known if state_of(one.pid) != "S" or known(one.pid) != one]

    def mend(self) -> None:
        """Strangers stay to the end."""

    def end(self) -> None:
        """End all strangers."""
        for stranger in list(self._strangers):
            self._end(stranger)

    def _end(self, stranger: subprocess.Popen[bytes]) -> None:
        stranger.kill()
        stranger.wait()
        self._strangers.remove(stranger)
