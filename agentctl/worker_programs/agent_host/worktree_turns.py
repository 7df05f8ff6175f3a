"""The turns of an agent in a worktree of its own: what the worktree held at the end of each, for `worktrees diff`.

git looks at the worktree in another process, beside the agent. A message that comes meanwhile does not wait for it, so
what the agent changes in the first moment of its next turn may count as part of the one before.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import WorkerDir
from agentctl.encoding import OPTIONS
from agentctl.errors import AgentctlError

_LIMIT_S = 20.0
_END_S = 2.0
#: The agent's own program has a higher priority.
_NICENESS = 10
_PACKAGES = os.path.realpath(__file__).rsplit("/", 4)[0]
_CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from agentctl.worker_programs.agent_host.worktree_turns import main;"
    " main(sys.argv[2], int(sys.argv[3]))"
)


class TurnNotes:
    """Notes the turns of one run. Whatever fails: the agent does without."""

    def __init__(self, worker: WorkerDir) -> None:
        self._worker = worker
        self._looker: subprocess.Popen[bytes] | None = None
        self._has_worktree = bool(record := read_known(worker.worktree))
        self._number = 0
        if self._has_worktree:
            from agentctl.supervision.worktree.turns import turns_of  # Most agents have no worktree.

            self._number = turns_of(worker).last
        #: The worktree already held the work of an earlier attempt, or of an earlier run of the agent.
        self._is_continued = bool(record.get("adopted")) or self._number > 0

    def begin(self) -> None:
        """Note that a turn begins."""
        if not self._has_worktree:
            return
        from agentctl.supervision.worktree.turns import note_begin

        if self._is_continued:
            self._is_continued = False
            self.end_turn()
        self._number += 1
        with contextlib.suppress(OSError, AgentctlError):
            note_begin(self._worker, self._number)

    def end_turn(self) -> None:
        """Have noted what the worktree holds now."""
        if not self._has_worktree:
            return
        self.close()
        with contextlib.suppress(OSError):
            self._looker = subprocess.Popen(
                [sys.executable, *OPTIONS, "-I", "-S", "-c", _CODE, _PACKAGES, self._worker.path, str(self._number)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
            os.setpriority(os.PRIO_PROCESS, self._looker.pid, _NICENESS)

    def close(self) -> None:
        """Stop looking, so that the agent leaves nothing behind."""
        if self._looker is not None and self._looker.poll() is None:
            self._looker.send_signal(signal.SIGINT)  # It stops its git, and removes what it has begun.
            try:
                self._looker.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._looker.kill()
                self._looker.wait()
        self._looker = None


def main(folder: str, number: int) -> None:
    """Run as the process that looks."""
    from agentctl.supervision.worktree.turns import note_end

    note_end(WorkerDir(folder), number, limit_s=_LIMIT_S)
