"""A cluster that only pretends: its sbatch starts nothing, and its nodes are one thread that writes their files.

So thousands of workers can be followed from a head on one machine, and what that costs is the head's part alone. The
nodes write what a worker writes that runs quietly: the claim, its task and its empty output, a heartbeat every ten
seconds; and the end, when they are told to.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import create_whole, make_folders, to_json
from agentctl.adapters.taskdir import LaunchDir, Root, WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.states import Status
from agentctl.supervision.worker.endings import Decision
from agentctl.worker_programs.on_node.exchange.heartbeat import Heart
from agentctl.worker_programs.on_node.exchange.launch_record import KEY_ENTRY
from agentctl.worker_programs.on_node.exchange.seal import sealed

_LOOK_S = 0.05
_RUNNING, _PENDING = "RUNNING|n1|None", "PENDING||Resources"
_SBATCH = """#!/bin/sh
read -r _
read -r line
echo "${{line##* }}" >> {folder}/submitted
echo $$
"""
_SQUEUE = """#!/bin/sh
date +%s%N >> {folder}/polls
cat {folder}/queue 2>/dev/null
exit 0
"""
_SCANCEL = "#!/bin/sh\nexit 0\n"


class PretendedCluster:
    """The commands in `bin`, to be put before the others in PATH, and the nodes behind them."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()
        for name, text in (("sbatch", _SBATCH), ("squeue", _SQUEUE), ("scancel", _SCANCEL)):
            (self.bin / name).write_text(text.format(folder=folder), encoding="utf-8")
            (self.bin / name).chmod(0o700)
        self.workers: list[PretendedWorker] = []
        #: Whether what is submitted from now on waits in the queue for ever.
        self.is_full = False
        self._shown = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def polls(self) -> list[int]:
        """When squeue was called, in nanoseconds."""
        return [int(line) for line in _lines_of(self._folder / "polls")]

    @property
    def waiting(self) -> int:
        """How many that were submitted have no node."""
        return len(self._submitted()) - len(self.workers)

    def close(self) -> None:
        """End the nodes; what they have written stays."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_LOOK_S):
            submitted = self._submitted()
            if len(submitted) != self._shown:
                for path in [] if self.is_full else submitted[len(self.workers) :]:
                    self.workers.append(PretendedWorker(LaunchDir(path)))
                self._show(submitted)
            for worker in list(self.workers):
                worker.beat()

    def _submitted(self) -> list[str]:
        """Return the launches that were submitted."""
        return _lines_of(self._folder / "submitted")

    def _show(self, submitted: list[str]) -> None:
        """Have squeue show those that have a node as running, and the others as pending."""
        running, self._shown = len(self.workers), len(submitted)
        lines = [
            f"agentctl-{os.path.basename(path)}|{number}|{_RUNNING if number <= running else _PENDING}\n"
            for number, path in enumerate(submitted, 1)
        ]
        new = self._folder / "queue.new"
        new.write_text("".join(lines), encoding="utf-8")
        new.rename(self._folder / "queue")


class PretendedWorker:
    """The files of one launch as its node writes them."""

    def __init__(self, launch: LaunchDir) -> None:
        self.launch, order = launch, json.loads(launch.order.read_bytes())
        self.instance = str(order["instance"])
        first = launch.environment.read_bytes().partition(b"\0")[0]
        os.unlink(launch.environment)
        self._key = bytes.fromhex(first.removeprefix(KEY_ENTRY).decode("ascii"))
        self._heart = Heart(launch)
        make_folders(launch.calls)
        there = Root(launch.node).task(order["taskId"]).worker(self.instance)
        make_folders(there.path)
        _begin(there)
        claim = {"node": "n1", "job": "1", "process": None, "at": now_iso()}
        create_whole(launch.claim, to_json(claim))
        self._heart.tell()

    def beat(self) -> None:
        """Give a sign of life, if it is time."""
        self._heart.beat()

    def end(self) -> int:
        """Write that it has completed; return the nanoseconds of the monotonic clock just before."""
        value = {**Decision(Status.COMPLETED, exit_code=0, duration_s=1.0).now().to_json(), "node": "n1"}
        data, at = to_json(sealed(self._key, "ended", value)), time.monotonic_ns()
        create_whole(self.launch.ended, data)
        self._heart.tell()
        return at


def _begin(there: WorkerDir) -> None:
    for path in (there.stdout, there.stderr):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    event = ev.make_event(now_iso(), ev.STARTED, there.task.id, "agentctl", {"pid": 1, "shimPid": 1}, there.instance)
    eventlog.append(there.task.events, [event])


def _lines_of(path: Path) -> list[str]:
    """Return the whole lines of a file, which may not be there yet."""
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
