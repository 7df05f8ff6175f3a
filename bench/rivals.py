"""Defines how other systems run many commands at a cap: each by a few lines of sh, in a folder of its own.

`prepare`, `check` (prints how many were run) and `finish` are not timed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.ground import Ground
from bench.measuring import BenchError

JOBS, CAP = 500, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Rival:
    """The scripts with which one of these systems runs `true` `$JOBS` times, `$CAP` at once."""

    name: str
    programs: tuple[str, ...]
    run: str
    prepare: str = ":"
    check: str = "echo $JOBS"
    finish: str = ":"

    @property
    def is_installed(self) -> bool:
        """Whether all of its programs are installed."""
        return all(shutil.which(program) for program in self.programs)

    def measure(self, ground: Ground, below: Path) -> float:
        """Return the milliseconds that `run` takes."""
        folder = ground.folder(below)
        own = {
            "JOBS": str(JOBS), "CAP": str(CAP), "TMPDIR": str(folder), "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_RUNTIME_DIR": str(folder),
            "TS_SOCKET": str(folder / "socket"), "TS_MAXFINISHED": str(2 * JOBS),
        }  # fmt: skip
        try:
            self._sh(ground, folder, own, self.prepare)
            ms = self._sh(ground, folder, own, self.run)
            self._sh(ground, folder, own, f'test "$({self.check})" -eq {JOBS}')
        finally:
            self._sh(ground, folder, own, self.finish)
        shutil.rmtree(folder)
        return ms

    def _sh(self, ground: Ground, folder: Path, own: dict[str, str], script: str) -> float:
        # Its output goes to a file: a daemon would hold a pipe open for ever.
        script = f"{{ set -e\n{script}\n}} > said 2>&1 || {{ cat said >&2; exit 1; }}"
        try:
            return ground.timed(["sh", "-c", script], cwd=folder, env=own).ms
        except (BenchError, subprocess.TimeoutExpired) as error:
            raise BenchError(f"{self.name}: {error}") from error


#: `prepare`: in a new home, its first run also measures how long a command line may be.
PARALLEL = Rival(
    name=f"parallel -j{CAP}", programs=("parallel",), prepare="parallel true ::: 1",
    run="seq $JOBS | parallel -j$CAP true",
)  # fmt: skip

#: Debian names the program tsp, others ts (a name that moreutils gives to another program).
_TSP = "tsp" if shutil.which("tsp") else "ts"

OTHERS = (
    Rival(
        name="task-spooler", programs=(_TSP,),
        prepare=f"{_TSP} -S $CAP",
        run=f"for i in $(seq $JOBS); do {_TSP} true; done\n"
        f"for i in $(seq $CAP); do {_TSP} -w $((JOBS - i)); done",
        check=f"{_TSP} -l | grep -c ' finished '",
        finish=f"{_TSP} -K",
    ),
    Rival(
        name=f"nq ({CAP} queues: it has no cap)", programs=("nq",),
        prepare="for i in $(seq $CAP); do mkdir q$i; done",
        run="for i in $(seq $JOBS); do NQDIR=q$((i % CAP + 1)) nq -q true; done\n"
        "for i in $(seq $CAP); do (cd q$i && exec nq -w ,*); done",
        check="cat q*/,* | grep -c 'exited with status 0'",
    ),
    Rival(
        name="pueue", programs=("pueue", "pueued"),
        prepare="pueued --daemonize\nuntil pueue status; do sleep 0.05; done\npueue parallel $CAP",
        run="for i in $(seq $JOBS); do pueue add -- true; done\npueue wait",
        check="pueue status --json | grep -o Success | wc -l",
        # pueued answers before it exits, and writes its state once more while exiting: the folder must stay until then.
        finish="pid=$(cat $(find . -name pueue.pid)); pueue shutdown; while kill -0 $pid; do sleep 0.05; done",
    ),
)  # fmt: skip


def kind_of_disk(folder: Path) -> str:
    """Return the type of a folder's file system."""
    best, kind = "", "unknown"
    device = os.stat(folder).st_dev
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, place, name, *_ = line.split()
            if os.path.isdir(place) and os.stat(place).st_dev == device and len(place) >= len(best):
                best, kind = place, name
    return kind
