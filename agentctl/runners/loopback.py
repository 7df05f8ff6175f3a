"""The reference runner: launches are processes of this machine, which reach the head only as those on a node would.

It has no queue and no cluster. Whoever writes a runner can read here what each call means, and can try on one machine
what a worker on a node does: its questions, its cancel, its end while nobody looks.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Mapping, Sequence

from agentctl.adapters import processes
from agentctl.adapters.detached import start_detached
from agentctl.adapters.files import make_folder, read_known, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity, Life
from agentctl.domain.placement import Placement
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.errors import AgentctlError, UsageError
from agentctl.runners.runner import EngineDown, LaunchOrder, Remark
from agentctl.supervision.worker.environment import store_folder


class Loopback:
    """Processes of this machine, in the place of an engine."""

    name = "loopback"

    def check(self, placement: Placement) -> None:
        """See `Runner.check`."""
        if placement.args or any((placement.gpus, placement.partition, placement.memory, placement.time_s)):
            raise UsageError("the runner loopback gives out no resources", hint="it is for trying what a node does")

    def launch(self, launch: LaunchOrder) -> str:
        """See `Runner.launch`. A second one is refused as long as the first is known: no engine has to do that."""
        with locked(_folder() / ".lock"):
            path = _folder() / launch.id
            known = processes.identity_from(read_known(path))
            if known is None:
                log = os.open(launch.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                try:
                    pid = start_detached(launch.argv, {}, {1: log, 2: log}, is_whole=True)
                finally:
                    os.close(log)
                known = processes.identify(pid)
                write_whole(path, processes.identity_text(known) if known else b"{}", durable=False)
        return str(known.pid if known else "")

    def poll(self) -> Mapping[str, Sighting]:
        """See `Runner.poll`."""
        found = {}
        for name in os.listdir(_folder()):
            if not name.startswith("."):
                process = processes.identity_from(read_known(_folder() / name))
                is_alive = process is not None and processes.life_of(process) is Life.ALIVE
                state = EngineState.RUNNING if is_alive else EngineState.ENDED
                found[name] = Sighting(
                    state, state.upper(), os.uname().nodename, "", str(process.pid if process else "")
                )
        return found

    def interrupt(self, launch_id: str) -> None:
        """See `Runner.interrupt`."""
        self._send(launch_id, signal.SIGINT)

    def kill(self, launch_id: str) -> None:
        """See `Runner.kill`: its program ends everything below it, and then itself."""
        self._send(launch_id, signal.SIGTERM)

    def reap(self, launch_id: str) -> None:
        """See `Runner.reap`."""
        process = self._process(launch_id)
        if process is None or processes.life_of(process) is not Life.ALIVE:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_folder() / launch_id)

    def reconcile(self, wanted: Collection[str]) -> list[str]:
        """See `Runner.reconcile`."""
        return [name for name, seen in self.poll().items() if seen.state is EngineState.RUNNING and name not in wanted]

    def remarks(self) -> Sequence[Remark]:
        """See `Runner.remarks`."""
        return [Remark("note", "the runner loopback has no nodes: its launches are processes of this machine")]

    def _process(self, launch_id: str) -> Identity | None:
        return processes.identity_from(read_known(_folder() / launch_id))

    def _send(self, launch_id: str, number: int) -> None:
        process = self._process(launch_id)
        if process is not None:
            processes.signal_process(process, number)


RUNNER = Loopback()


def _folder() -> FilePath:
    try:
        folder = store_folder() / "loopback"
        make_folder(folder)
    except (AgentctlError, OSError) as error:
        raise EngineDown(f"the folder of the runner loopback cannot be used: {error}") from error
    return folder
