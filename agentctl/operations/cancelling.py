"""Cancel: a durable request, then the escalation of whoever guards the worker, then proof."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from agentctl.adapters import eventlog
from agentctl.adapters.clock import monotonic, now_iso
from agentctl.adapters.config import root_of_tree
from agentctl.adapters.files import create_whole, make_folder, number_in, read_quietly, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.roster import Row, update
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.domain import events as ev
from agentctl.domain.escalation import whole_limit_s
from agentctl.domain.projection import TaskView, WorkerView
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.operations.listing import read_task
from agentctl.operations.locating import find_agent, who
from agentctl.operations.vigil import Vigil
from agentctl.supervision import environment, failpoints
from agentctl.supervision.control import poke, wake_stopped
from agentctl.supervision.endings import Ending, decide, publish
from agentctl.supervision.judging import Condition, judge, judge_surely, settle
from agentctl.supervision.slots import is_being_started
from agentctl.supervision.spec import grace_of, read_spec
from agentctl.supervision.tickets import forget_environment, read_queue, remove_ticket
from agentctl.supervision.undertaker import begin_burial

#: What a shim may take beyond its escalation: to be scheduled, and to put the end on disk.
_SLACK_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cancelled:
    """What a cancel did to one worker."""

    agent_instance: str
    #: Whether this cancel (or one before it) ended the worker.
    cancelled: bool
    status: str
    survivors: list[dict[str, Any]] = field(default_factory=list)
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as `cancel --json` prints it."""
        value = {
            "agentInstance": self.agent_instance,
            "cancelled": self.cancelled,
            "status": self.status,
            "survivors": self.survivors,
        }
        return value | ({"note": self.note} if self.note else {})


def cancel_workers(
    task: TaskDir, instances: Sequence[str], *, all_: bool = False, grace_s: float | None = None, wait: bool = True
) -> list[Cancelled]:
    """Cancel workers, with those that they started; returns once each has ended, or its survivors are known.

    Args:
        all_: All that have not ended.
        grace_s: Another grace period than the worker's own, for each of its two.
        wait: False returns once the requests are on disk.

    An interrupt of this call leaves the escalations running: shims do them.
    """
    for name in instances:
        find_agent(task, name)
    view, _ = read_task(task)
    named = [worker.instance for worker in view.workers.values() if not worker.is_terminal] if all_ else list(instances)
    found = _request_all(task, view, named, grace_s)
    pending = [name for name, one in found.items() if one is None]
    done = {name: one for name, one in found.items() if one is not None and (name in named or one.cancelled)}
    done |= _await_ends(task, pending) if wait else {name: _on_its_way(name) for name in pending}
    _run_queue(task)
    return [done[name] for name in dict.fromkeys([*named, *found]) if name in done]


def _request_all(
    task: TaskDir, view: TaskView, named: Sequence[str], grace_s: float | None
) -> dict[str, Cancelled | None]:
    """Ask for the ends of workers and of all below them; None for each whose end is to be waited for."""
    found: dict[str, Cancelled | None] = {}
    while left := [worker for worker in _with_descendants(view, named) if worker.instance not in found]:
        # The queued ones first: the end of a running one would start them.
        for worker in sorted(left, key=lambda worker: worker.status is not Status.QUEUED):
            found[worker.instance] = _request(task.agent(worker.instance), worker, grace_s)
        if None not in found.values():
            break  # None of them ran, so none of them had a spawn under way.
        with locked(root_of_tree(task).queue_lock):
            pass  # A child whose spawn was under way is in the log by now; later ones are refused.
        view, _ = read_task(task)
    return found


def _with_descendants(view: TaskView, named: Sequence[str]) -> list[WorkerView]:
    names = dict.fromkeys([*named, *(child for name in named for child in view.descendants(name))])
    return [view.workers.get(name) or WorkerView(name) for name in names]


def _on_its_way(name: str) -> Cancelled:
    return Cancelled(agent_instance=name, cancelled=False, status=Status.RUNNING, note="the request is on disk")


def _request(agent: AgentDir, worker: WorkerView, grace_s: float | None) -> Cancelled | None:
    """Do what the worker's condition asks for; None where its end is to be waited for."""
    for _ in range(100):  # It may move from the queue to a shim between the look and the act.
        condition = judge_surely(agent)
        match condition:
            case Condition.ENDED | Condition.LOST:
                settle(agent, condition)
                return _had_ended(agent)
            case Condition.ELSEWHERE:
                note = "it is on another machine or in another pid namespace: cancel it there"
                return Cancelled(agent_instance=agent.instance, cancelled=False, status=worker.status, note=note)
            case Condition.QUEUED:
                found = _withdraw(agent)
                if found is _Withdrawal.DONE:
                    return _told(agent)
                if found is _Withdrawal.STARTING:
                    _put_request(agent, grace_s)  # The shim looks for it before it forks, and when it watches.
                    return None
            case Condition.SUPERVISED:
                _put_request(agent, grace_s)
                if _wake(agent):
                    return None
            case Condition.UNSUPERVISED:
                _put_request(agent, grace_s)
                begin_burial(agent)
                return None
    raise AgentctlError(f"{agent.instance} does not hold still: its state changed 100 times", hint="try again")


def _wake(agent: AgentDir) -> bool:
    """Make the shim look at the request; False where it has gone meanwhile."""
    wake_stopped(agent)
    return poke(agent) or judge(agent) is Condition.SUPERVISED


def _put_request(agent: AgentDir, grace_s: float | None) -> None:
    request: dict[str, Any] = {"by": who(), "at": now_iso()}
    if grace_s is not None:
        request["graceSeconds"] = grace_s
    make_folder(agent.path)  # Somebody may have removed it under a running worker.
    if create_whole(agent.cancel, to_json(request)):
        event = ev.make_event(now_iso(), ev.CANCEL_REQUESTED, agent.task.id, request["by"], {}, agent.instance)
        with contextlib.suppress(AgentctlError):  # The request is on disk; its event is only for readers.
            eventlog.append(agent.task.events, [event])
    elif grace_s is not None and grace_s < (number_in(agent.cancel, "graceSeconds") or float("inf")):
        write_whole(agent.cancel, to_json({**read_quietly(agent.cancel), "graceSeconds": grace_s}))
    failpoints.reached("cancel.after-request")


class _Withdrawal(Enum):
    """What came of taking a worker out of the queue."""

    #: It is out and has ended.
    DONE = "done"
    #: A shim has been given its ticket and is about to take it.
    STARTING = "starting"
    #: It had left the queue before.
    TOO_LATE = "too late"


def _withdraw(agent: AgentDir) -> _Withdrawal:
    """Take a worker out of the queue and end it, unless its start is under way."""
    root = root_of_tree(agent.task)
    with locked(root.queue_lock):
        mine = [t for t in read_queue(root) if (t.task_id, t.instance) == (agent.task.id, agent.instance)]
        if not mine:
            return _Withdrawal.TOO_LATE
        if is_being_started(root, agent.task.id, agent.instance):
            return _Withdrawal.STARTING
        decide(agent, Ending(status=Status.CANCELLED, by=who(), message="it was waiting in the queue"))
        for ticket in mine:
            remove_ticket(root, ticket)
            forget_environment(ticket.environment, environment.store_folder(), read_queue(root))
    publish(agent)
    with contextlib.suppress(AgentctlError):
        update(agent.task, {agent.instance: Row(read_spec(agent.spec).agent, Status.CANCELLED)})
    return _Withdrawal.DONE


def _told(agent: AgentDir) -> Cancelled:
    decision = read_quietly(agent.exit)
    status = str(decision.get("status", Status.FAILED))
    return Cancelled(agent_instance=agent.instance, cancelled=status == Status.CANCELLED, status=status)


def _had_ended(agent: AgentDir) -> Cancelled:
    decision = read_quietly(agent.exit)
    status, reason = str(decision.get("status", Status.FAILED)), decision.get("reason")
    note = f"it had ended before as {status}{f' ({reason})' if reason else ''}; nothing changed"
    return Cancelled(agent_instance=agent.instance, cancelled=status == Status.CANCELLED, status=status, note=note)


def _await_ends(task: TaskDir, names: list[str]) -> dict[str, Cancelled]:
    done: dict[str, Cancelled] = {}
    deadline = monotonic() + max((_limit_s(task.agent(name)) for name in names), default=0)
    began = {name: monotonic() for name in names}
    with Vigil(task) as vigil:
        while True:
            view = vigil.update()
            for name in names:
                worker = view.workers.get(name)
                if name not in done and (task.agent(name).has_ended or (worker and worker.is_terminal)):
                    done[name] = _told(task.agent(name))
                elif name not in done and worker and worker.survivors:
                    done[name] = _survived(worker)
            left = deadline - monotonic()
            if len(done) == len(began) or left <= 0:
                break
            vigil.sleep(left)
    late = [name for name in names if name not in done]
    return done | {name: _too_late(task.agent(name), view.workers.get(name)) for name in late}


def _limit_s(agent: AgentDir) -> float:
    asked = number_in(agent.cancel, "graceSeconds")
    grace_s = grace_of(agent.spec) if asked is None else asked
    return whole_limit_s(grace_s) + grace_s + _SLACK_S


def _survived(worker: WorkerView) -> Cancelled:
    return Cancelled(
        agent_instance=worker.instance, cancelled=False, status=worker.status, survivors=list(worker.survivors),
        note="some of its processes survived SIGKILL; its slot stays taken and its shim keeps watching",
    )  # fmt: skip


def _too_late(agent: AgentDir, worker: WorkerView | None) -> Cancelled:
    status = worker.status if worker else Status.RUNNING
    note = "its shim has not answered in time: is it stopped? the request stays on disk"
    return Cancelled(agent_instance=agent.instance, cancelled=False, status=status, note=note)


def _run_queue(task: TaskDir) -> None:
    from agentctl.supervision.dispatch import dispatch

    with contextlib.suppress(AgentctlError):
        dispatch(root_of_tree(task))
