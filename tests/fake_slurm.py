"""Commands with the names of Slurm's, for tests without it: jobs are processes of this machine, or wait for ever.

`FakeSlurm(folder)` makes them; `folder` then has a file for each job in `jobs/`, and each command line in `calls`.
"""

from __future__ import annotations

import os
from pathlib import Path

_SBATCH = """\
#!/bin/sh
for one in "$@"; do case $one in --job-name=*) name=${one#*=};; --output=*) log=${one#*=};; esac; done
script=$(cat)
echo "sbatch $*" >> "$FAKE/calls"
if [ -e "$FAKE/waits" ]; then echo "PENDING||Resources" > "$FAKE/jobs/$name"; echo 4711; exit 0; fi
setsid env -i AGENTCTL_TEST_ID="$AGENTCTL_TEST_ID" SLURMD_NODENAME=n1 SLURM_JOB_ID=4711 PATH="$PATH" \
    sh -c "$script" > "$log" 2>&1 < /dev/null &
echo "$!" > "$FAKE/jobs/$name"
echo 4711
"""
_SQUEUE = """\
#!/bin/sh
echo "squeue $*" >> "$FAKE/calls"
for file in "$FAKE"/jobs/*; do
    [ -e "$file" ] || continue
    what=$(cat "$file")
    case $what in
        *[!0-9]*) state=${what%%|*}; rest=${what#*|};;
        *) rest="n1|None"; if kill -0 "$what" 2> /dev/null; then state=RUNNING; else state=COMPLETED; fi;;
    esac
    echo "${file##*/}|4711|$state|$rest"
done
"""
_SCANCEL = """\
#!/bin/sh
echo "scancel $*" >> "$FAKE/calls"
for one in "$@"; do case $one in --name=*) name=${one#*=};; --state=*) exit 0;; esac; done
[ -e "$FAKE/jobs/$name" ] || exit 0
what=$(cat "$FAKE/jobs/$name")
case $what in *[!0-9]*) ;; *) kill "$what" 2> /dev/null;; esac
echo "CANCELLED||None" > "$FAKE/jobs/$name"
"""
_SCONTROL = """\
#!/bin/sh
echo "ProctrackType           = $(cat "$FAKE/proctrack")"
"""


class FakeSlurm:
    """The commands, in a folder that is to come first in PATH."""

    def __init__(self, folder: Path, *, waits: bool) -> None:
        self.folder = folder
        (folder / "jobs").mkdir(parents=True)
        for name, text in (("sbatch", _SBATCH), ("squeue", _SQUEUE), ("scancel", _SCANCEL), ("scontrol", _SCONTROL)):
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        (folder / "proctrack").write_text("proctrack/cgroup", encoding="utf-8")
        if waits:
            (folder / "waits").touch()

    @property
    def environ(self) -> dict[str, str]:
        """The variables with which a command finds them."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}", "FAKE": str(self.folder)}

    def calls(self, program: str) -> list[str]:
        """Return the command lines with which one of them was called."""
        try:
            lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.startswith(f"{program} ")]
