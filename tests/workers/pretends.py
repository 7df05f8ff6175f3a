"""`pretends.py shim|mark FOLDER ARGV...`: runs ARGV below a process that pretends not to be its worker's.

As a shim: by its command line, and by a tree of tasks below FOLDER whose slot names it. As a mark: as the first process
of a worker below FOLDER, by cookie and worker.json. Without ARGV it writes its pid into FOLDER/pid and stays, and ends
on no signal but SIGKILL. PRETENDS_DEPTH is the depth that it says to have; with PRETENDS_WITHOUT_SPEC it says nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import bounded


def main() -> None:
    """Make the files, and become the impostor."""
    kind, folder, argv = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    task = folder / "tasks" / "x"
    boss, script = task / "agents" / "boss", folder / "agentctl" / "shim" / "__main__.py"
    for place in (task / "slots", boss, script.parent):
        place.mkdir(parents=True, exist_ok=True)
    mine = Path(os.environ["AGENTCTL_AGENT_DIR"])
    spec = json.loads((mine / "spec.json").read_bytes())
    if not os.environ.get("PRETENDS_WITHOUT_SPEC"):
        depth = int(os.environ.get("PRETENDS_DEPTH", "0"))
        (boss / "spec.json").write_text(json.dumps({**spec, "depth": depth, "parent": None}))
    here = str(Path(__file__).parent)
    script.write_text(f"import sys; sys.path.insert(0, {here!r}); import pretends; pretends.pretend()")
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR", "AGENTCTL_ROOT")}
    environ["PRETENDS"] = json.dumps({"argv": argv, "shim": json.loads((mine / "shim.json").read_bytes())})
    if kind == "mark":
        environ |= {"AGENTCTL_COOKIE": "c0ffee", "AGENTCTL_AGENT_DIR": str(boss)}
        os.execve(sys.executable, [sys.executable, str(script), "--mark", str(task)], environ)
    os.execve(sys.executable, [sys.executable, str(script), str(task)], environ)


def pretend() -> None:
    """Be the impostor: named by all that could name it, run what was asked for, and stay."""
    bounded.live_at_most()
    bounded.ignore(signal.SIGINT, signal.SIGTERM)
    task = Path(sys.argv[-1])
    asked = json.loads(os.environ.pop("PRETENDS"))
    start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    boss, me = task / "agents" / "boss", {**asked["shim"], "pid": os.getpid(), "start": start}
    (task / "slots" / "77").write_text(json.dumps({"taskId": "x", "instance": "boss", "shim": me}))
    (boss / "shim.json").write_text(json.dumps(me))
    if "--mark" in sys.argv:
        (boss / "worker.json").write_text(json.dumps({**me, "cookie": "c0ffee", "attempt": 1}))
    else:
        lock = os.open(boss / "shim.json", os.O_RDWR)
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    bounded.publish(str(task.parent.parent / "pid"), os.getpid())
    if asked["argv"]:
        sys.exit(subprocess.run(asked["argv"], check=False).returncode)
    bounded.stay()


if __name__ == "__main__":
    main()
