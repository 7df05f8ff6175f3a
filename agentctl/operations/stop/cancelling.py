"""Cancel: a durable request, then the escalation of whoever guards the worker, then proof.

The request itself bars the worker, and all below it, from starting more. Its guardian begins the escalation once those
below have ended: deepest first, since each does the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import AgentDir, TaskDir
from agentctl.adapters.taskyaml.cache import root_of_tree
from agentctl.domain.escalation import whole_limit_s
from agentctl.domain.projection import WorkerView
from agentctl.domain.states import Status
from agentctl.errors import AgentctlError
from agentctl.operations.show.listing import read_task
from agentctl.operations.wait.live_view import LiveTask
from agentctl.operations.where.lineage import who
from agentctl.operations.where.locating import find_agent
from agentctl.operations.where.ownership import check_may_be_stopped, is_own, may_be_stopped
from agentctl.supervision.life.judging import queued_instances
from agentctl.supervision.stop.requesting import Answer, Request, request_end
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.kinship import cancelled_with, task_name
from agentctl.supervision.worker.spec import asked_grace, grace_of

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
    #: Its task, where it may be another one than was asked about; of one in another root the path.
    task_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as `cancel --json` prints it."""
        value = {
            "agentInstance": self.agent_instance,
            "cancelled": self.cancelled,
            "status": self.status,
            "survivors": self.survivors,
        }
        more = {"note": self.note, "taskId": self.task_id}
        return value | {key: item for key, item in more.items() if item}


def cancel_workers(
    task: TaskDir,
    instances: Sequence[str],
    *,
    all_: bool = False,
    recursive: bool = False,
    grace_s: float | None = None,
    wait: bool = True,
) -> list[Cancelled]:
    """Cancel workers, with those that they started; returns once each has ended, or its survivors are known.

    Args:
        all_: All that have not ended.
        recursive: With `all_`, those of the sub-tasks too.
        grace_s: Another grace period than the worker's own, for each of its two.
        wait: False returns once the requests are on disk.

    An interrupt of this call leaves the escalations running: shims do them.
    """
    check_may_be_stopped(task)
    named = [find_agent(task, name) for name in dict.fromkeys(instances)]
    if all_:
        named = _all_living(task, recursive=recursive)
    asked = _request_all(named, grace_s)
    pending = [agent for agent, answer in asked.values() if answer is None]
    ends = _await_ends(pending) if wait else {_key(agent): _on_its_way(agent) for agent in pending}
    _run_queue(task)
    names = [_key(agent) for agent in named]
    done = {
        key: replace(answer or ends[key], task_id=task_name(agent.task, task) or (task.id if recursive else None))
        for key, (agent, answer) in asked.items()
    }
    below = [key for key, (_, answer) in asked.items() if key not in names and (answer is None or answer.cancelled)]
    return [done[key] for key in [*names, *below]]


_Key = tuple[FilePath, str]


def _key(agent: AgentDir) -> _Key:
    """A task of another root may have the same name."""
    return agent.task.path, agent.instance


def _all_living(task: TaskDir, *, recursive: bool) -> list[AgentDir]:
    tasks = [task]
    if recursive:
        from agentctl.operations.where.subtasks_below import subtree  # Few look at more than one task.

        tasks = subtree(task)
    return [
        one.agent(worker.instance)
        for one in filter(may_be_stopped, tasks)
        for worker in read_task(one)[0].workers.values()
        if not worker.is_terminal
    ]


def _request_all(named: Sequence[AgentDir], grace_s: float | None) -> dict[_Key, tuple[AgentDir, Cancelled | None]]:
    """Ask for the ends of workers and of all below them; None for each whose end is to be waited for."""
    asked: dict[_Key, tuple[AgentDir, Cancelled | None]] = {}
    left = _queued_first(named)
    while left:
        for agent in left:
            asked[_key(agent)] = agent, _request(agent, grace_s)
        if all(answer is not None for _, answer in asked.values()) and not _with_all_below(named, asked):
            break  # None of them ran, so none of them had a spawn under way.
        for root in {str(root_of_tree(agent.task).path) for agent, _ in asked.values()}:
            with locked(TaskDir(root).queue_lock):
                pass  # A child whose spawn was under way has its name put down by now; later ones are refused.
        left = _with_all_below(named, asked)
    return asked


def _queued_first(agents: Iterable[AgentDir]) -> list[AgentDir]:
    """The end of a running one would start them."""
    agents = list(agents)
    queued = {str(one.path): queued_instances(one) for one in {str(a.task.path): a.task for a in agents}.values()}
    return sorted(agents, key=lambda agent: agent.instance not in queued[str(agent.task.path)])


def _with_all_below(named: Sequence[AgentDir], asked: dict[_Key, Any]) -> list[AgentDir]:
    """Return who is below the named ones and was not asked yet, deepest first."""
    found = {_key(below): below for agent in named for below in cancelled_with(agent)}
    return [agent for key, agent in reversed(found.items()) if key not in asked]


def _request(agent: AgentDir, grace_s: float | None) -> Cancelled | None:
    """Ask for a worker's end; None where that is to be waited for."""
    match request_end(agent, Request(who(), grace_s)):
        case Answer.ENDED:
            return _had_ended(agent)
        case Answer.ELSEWHERE:
            worker = read_task(agent.task)[0].workers.get(agent.instance)
            note = "it is on another machine or in another pid namespace: cancel it there"
            return _result(agent, cancelled=False, status=worker.status if worker else Status.RUNNING, note=note)
        case Answer.WITHDRAWN:
            return _told(agent)
        case Answer.UNDER_WAY:
            return None


def _result(agent: AgentDir, *, cancelled: bool, status: str, note: str | None = None) -> Cancelled:
    return Cancelled(agent_instance=agent.instance, cancelled=cancelled, status=status, note=note)


def _on_its_way(agent: AgentDir) -> Cancelled:
    return _result(agent, cancelled=False, status=Status.RUNNING, note="the request is on disk")


def _told(agent: AgentDir) -> Cancelled:
    status = str(decision_of(agent).get("status", Status.FAILED))
    return _result(agent, cancelled=status == Status.CANCELLED, status=status)


def _had_ended(agent: AgentDir) -> Cancelled:
    decision = decision_of(agent)
    status, reason = str(decision.get("status", Status.FAILED)), decision.get("reason")
    note = f"it had ended before as {status}{f' ({reason})' if reason else ''}; nothing changed"
    return _result(agent, cancelled=status == Status.CANCELLED, status=status, note=note)


def _await_ends(agents: Sequence[AgentDir]) -> dict[_Key, Cancelled]:
    """Wait for the ends of workers of any tasks: those above others end last, so one limit serves for all."""
    deadline = monotonic() + sum(sorted(map(_limit_s, agents), reverse=True)[:_LEVELS])
    done: dict[_Key, Cancelled] = {}
    for task in {str(agent.task.path): agent.task for agent in agents}.values():
        names = [agent.instance for agent in agents if agent.task.path == task.path]
        done |= {(task.path, name): end for name, end in _await_in(task, names, deadline).items()}
    return done


#: So many levels of workers, each of which waits for the one below it, does a cancel wait for at most.
_LEVELS = 8


def _await_in(task: TaskDir, names: list[str], deadline: float) -> dict[str, Cancelled]:
    done: dict[str, Cancelled] = {}
    with LiveTask(task) as live_task:
        while True:
            view = live_task.update()
            for name in names:
                worker = view.workers.get(name)
                if name not in done and (task.agent(name).has_ended or (worker and worker.is_terminal)):
                    done[name] = _told(task.agent(name))
                elif name not in done and worker and worker.survivors:
                    done[name] = _survived(worker)
            left = deadline - monotonic()
            if len(done) == len(names) or left <= 0:
                break
            live_task.sleep(left)
    late = [name for name in names if name not in done]
    return done | {name: _too_late(task.agent(name), view.workers.get(name)) for name in late}


def _limit_s(agent: AgentDir) -> float:
    asked = asked_grace(agent)
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
    return _result(agent, cancelled=False, status=status, note=note)


def _run_queue(task: TaskDir) -> None:
    from agentctl.supervision.dispatch.dispatch import dispatch

    root = root_of_tree(task)
    with contextlib.suppress(AgentctlError):
        if is_own(root):
            dispatch(root)
