"""The undertaker: stops a worker whose shim is gone, by the same escalation, on as much of its tree as can be found.

It runs in a detached process of its own, so that Ctrl-C in the command that began it changes nothing. It holds the
worker's liveness lock, so there is only one guardian, and others see the worker as supervised.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import hold_alive
from agentctl.adapters.patience import STORAGE_RETRY_S, patiently
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.states import Status
from agentctl.domain.tree.limits import Limits
from agentctl.domain.worker.ends import HIDDEN
from agentctl.domain.worker.escalation import Stage, advance, begin, hurried
from agentctl.errors import AgentctlError, StorageError
from agentctl.lean import TYPE_CHECKING
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.life.belonging import claim_of, record_of
from agentctl.supervision.life.process_tree import ProcessTree, UnsupervisedTree
from agentctl.supervision.life.strangers import note_guardian
from agentctl.supervision.notify.switch import Switch
from agentctl.supervision.stop.burial import READY_FD
from agentctl.supervision.stop.escalating import enter_stage, stay_in_stage
from agentctl.supervision.stop.offspring import Offspring
from agentctl.supervision.worker import cancel_request, deferred, environment
from agentctl.supervision.worker.control import name_holder
from agentctl.supervision.worker.endings import Decision, decide, held, publish
from agentctl.supervision.worker.spec import grace_of

if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

#: Polled: no SIGCHLD comes for another process's child.
_LOOK_S = 0.02
_SURVIVOR_LOOK_S = 1.0
_CHILDREN_LOOK_S = 0.1


def main(folder: str, keep: Callable[[], None]) -> None:
    """Run as that process: drop what was inherited, detach from the parent, then stop the worker.

    Args:
        keep: Opens what this process keeps open, once what it has inherited is closed.
    """
    os.closerange(READY_FD + 1, 1 << 16)
    keep()
    os.set_inheritable(READY_FD, False)
    os.chdir("/")
    os.umask(0o077)
    if os.fork() == 0:
        _bury(WorkerDir(folder), READY_FD)


def _bury(worker: WorkerDir, ready: int) -> None:
    lock = hold_alive(worker.shim)
    me = processes.identify(os.getpid())
    if lock is not None and me is not None:
        note_guardian(tree_of(worker.task), me)
        with contextlib.suppress(OSError):  # A full disk: it holds the lock, and that counts.
            name_holder(lock, me)
    os.write(ready, b".")
    os.close(ready)
    if lock is None or _known(worker.exit.exists, worker):
        return
    _await_children(worker)
    record = _known(partial(record_of, worker), worker)
    _stop(worker, UnsupervisedTree(_known(partial(claim_of, worker, record), worker)))
    by = _known(partial(cancel_request.asked_by, worker), worker)
    message = f"its shim was gone; the exit was not seen, and {HIDDEN}"
    ending = Decision(
        status=Status.CANCELLED, by=by, message=message, started_at=record.started_at, unguarded=True
    ).now()
    while (problem := _problem_of(worker, ending)) is not None and _known(worker.task.path.exists, worker):
        with contextlib.suppress(AgentctlError, OSError):
            deferred.say(worker, held(ending, problem))
        time.sleep(STORAGE_RETRY_S)
    deferred.clear(worker)
    os.close(lock)
    dispatch(tree_of(worker.task))
    Switch(tree_of(worker.task), environment.store_folder()).tell()


def _known(look: Callable[[], T], worker: WorkerDir) -> T:
    return patiently(look, worker.path, lambda _: time.sleep(STORAGE_RETRY_S))


def _grace(look: Callable[[], float | None]) -> float | None:
    """Return a grace period; None where it cannot be read, which keeps nobody alive."""
    try:
        return look()
    except StorageError:
        return None


def _problem_of(worker: WorkerDir, ending: Decision) -> AgentctlError | OSError | None:
    """Write the end; return why the disk refuses it."""
    try:
        publish(worker, decide(worker, ending))
    except (AgentctlError, OSError) as problem:
        return problem
    return None


def _await_children(worker: WorkerDir) -> None:
    """Pass the cancel on to the workers that this one has started, and wait until they have ended."""
    below = Offspring(worker, tree_of(worker.task), environment.store_folder())
    while _known(below.holds_cancel, worker):
        time.sleep(_CHILDREN_LOOK_S)


def _stop(worker: WorkerDir, tree: ProcessTree) -> None:
    asked = _grace(partial(cancel_request.asked_grace, worker))
    own = _grace(partial(grace_of, worker.spec)) if asked is None else asked
    step = begin(monotonic(), Limits().grace_seconds if own is None else own)
    enter_stage(worker, tree, step.stage)
    while not tree.is_gone():
        time.sleep(_LOOK_S if step.stage < Stage.SURVIVORS else _SURVIVOR_LOOK_S)
        shorter = _grace(partial(cancel_request.asked_grace, worker))
        before, step = step, advance(hurried(step, monotonic(), shorter), monotonic())
        if step.stage is before.stage:
            stay_in_stage(tree, step.stage)
        else:
            enter_stage(worker, tree, step.stage)
