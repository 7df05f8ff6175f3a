"""What each stage of an escalation sends to a process tree, for shims and undertakers alike."""

from __future__ import annotations

import contextlib

from agentctl.adapters import eventlog
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.worker.escalation import Stage
from agentctl.errors import AgentctlError
from agentctl.supervision.life.process_tree import ProcessTree


def enter_stage(worker: WorkerDir, tree: ProcessTree, stage: Stage) -> None:
    """Send the signals with which a stage begins; name the survivors of SIGKILL in the log."""
    match stage:
        case Stage.INTERRUPT:
            tree.interrupt()
        case Stage.TERMINATE:
            tree.terminate()
        case Stage.KILL:
            tree.kill()
        case Stage.SURVIVORS:
            payload = {"survivors": tree.describe()}
            event = ev.make_event(now_iso(), ev.CANCEL_FAILED, worker.task.id, "agentctl", payload, worker.instance)
            with contextlib.suppress(AgentctlError, OSError):  # A full disk must not end the worker's guardian.
                eventlog.append(worker.task.events, [event])


def stay_in_stage(tree: ProcessTree, stage: Stage) -> None:
    """Send again what must be sent at each look: SIGKILL, so that processes forked since the last look get it too."""
    if stage >= Stage.KILL:
        tree.kill()
