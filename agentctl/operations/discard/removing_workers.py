"""Removes ended workers for good: their folders, their places in the log, and so their names are free again.

One decision about all of them (`removal_order`), after each was looked at twice: before anything is done, and under the
lock of the queue, so that nothing of it has become live meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from agentctl.adapters.locks import locked
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import first_of
from agentctl.domain.worker.projection import TaskView
from agentctl.errors import AgentctlError, AtTerminal, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.discard.at_rest import (
    await_shims,
    awaited_in_queue,
    live_below,
    refusal_of_live,
    refuse_for_workers,
)
from agentctl.operations.discard.worktrees_gone import GoingWorktrees
from agentctl.operations.show.current_state import mend_roster, read_own_task
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.folding import fold
from agentctl.operations.where.lineage import who
from agentctl.operations.where.locating import find_worker
from agentctl.operations.where.ownership import check_own
from agentctl.operations.where.removal_order import (
    carry_out_removal,
    delete_removed,
    finish_removal,
    order_removal,
)
from agentctl.operations.where.subtasks_below import subtasks_of, subtree
from agentctl.operations.where.tries_in_log import is_one_try, worker_meant
from agentctl.supervision.worker.kinship import children_of


class RemovalPlan(NamedTuple):
    """What is removed together, and what is not."""

    task: TaskDir
    #: What was named, or selected -> its workers: of a work all of its tries.
    works: Mapping[str, Sequence[str]]
    #: What was started below these, and goes with them.
    below: Sequence[str]
    subtasks: Sequence[str]
    #: What was selected -> why it stays.
    left_out: Mapping[str, AgentctlError]

    @property
    def workers(self) -> list[str]:
        """All workers that go."""
        return list(dict.fromkeys([*(one for tries in self.works.values() for one in tries), *self.below]))


def plan_removal(
    task: TaskDir, named: Sequence[str], *, recursive: bool = False, as_far_as_possible: bool = False
) -> RemovalPlan:
    """Look which workers would be removed; nothing is changed, but for what any look at a task writes down.

    Args:
        named: Works, and so all of their tries; or single workers: `NAME@1`, or the name of a further try.
        recursive: What these have started goes with them: workers of the task, and whole sub-tasks.
        as_far_as_possible: Leave out those that are refused, instead of removing none.

    Raises:
        NotFound: There is no such worker.
        Refused: The caller is a worker; or one of those named is live, or is waited for, or has started what would
            have to go with it.
    """
    refuse_for_workers("remove workers")
    check_own(task)
    finish_removal(task)
    view, _ = read_own_task(task)
    works = {name: _workers_of(task, view, name) for name in dict.fromkeys(named)}
    await_shims(task.worker(one) for tries in works.values() for one in tries)
    return _plan(_Looks(task, view, recursive), works, as_far_as_possible=as_far_as_possible)


def _workers_of(task: TaskDir, view: TaskView, name: str) -> list[str]:
    if is_one_try(name):
        return [worker_meant(task, name)]
    if name not in view.workers:
        find_worker(task, name)
    return view.tries.of_work(name) if view.tries.work_of(name) == name else [name]


def _plan(looks: _Looks, works: Mapping[str, Sequence[str]], *, as_far_as_possible: bool) -> RemovalPlan:
    chosen, left_out = dict(works), dict[str, AgentctlError]()
    while True:
        going = {one for tries in chosen.values() for one in tries}
        refused = looks.refusals(chosen, going)
        if not refused:
            below, subtasks = looks.what_goes_with(going)
            return RemovalPlan(looks.task, chosen, below, subtasks, left_out)
        if not as_far_as_possible:
            raise next(iter(refused.values()))
        left_out |= refused
        chosen = {name: tries for name, tries in chosen.items() if name not in refused}


class _Looks:
    """What is to be known of workers before they are removed.

    Args:
        view: The state of the task; whoever holds the queue's lock must not judge workers, and folds the log.
    """

    def __init__(self, task: TaskDir, view: TaskView, recursive: bool) -> None:
        self.task, self._view, self._recursive = task, view, recursive
        self._subtasks: dict[str, list[TaskDir]] = {}
        for below in subtasks_of(task, view.subtasks):
            config = cached(below)
            if config is not None and config.parent_instance is not None:
                self._subtasks.setdefault(config.parent_instance, []).append(below)

    def refusals(self, works: Mapping[str, Sequence[str]], going: Collection[str]) -> dict[str, AgentctlError]:
        """Return why works may not be removed, if `going` are removed with them."""
        awaited = awaited_in_queue(self.task, {*going, *self.what_goes_with(going)[0]})
        found = {}
        for name, tries in works.items():
            why = next(filter(None, (self._refusal(name, one, going, awaited) for one in tries)), None)
            if why is not None:
                found[name] = why
        return found

    def _refusal(
        self, name: str, instance: str, going: Collection[str], awaited: Mapping[str, str]
    ) -> AgentctlError | None:
        why = refusal_of_live(self.task, self._view, instance)
        if why is not None:
            return why
        live = next(live_below(self.task.worker(instance)), None)
        if live is not None:
            return Refused(
                f"{live.id}, which {instance} has started, has not ended",
                hint=AtTerminal(f"{command_line(live.task, 'cancel', live.instance)} ends it"),
            )
        below, subtasks = self._started_by(instance)
        names = [*(one for one in below if one not in going), *(f"the sub-task {one.id}" for one in subtasks)]
        if names and not self._recursive:
            return Refused(
                f"{instance} has started {first_of(names)}",
                hint=AtTerminal(f"{command_line(self.task, 'rm', name, '--recursive')} removes that with it"),
            )
        return next(filter(None, (self._refusal_with(instance, below, subtasks, awaited))), None)

    def _refusal_with(
        self, instance: str, below: Iterable[str], subtasks: Iterable[TaskDir], awaited: Mapping[str, str]
    ) -> Iterator[AgentctlError | None]:
        """Yield why a worker, or what goes with it, may not go; what is live below it was looked for before."""
        for one in (instance, *below):
            yield refusal_of_live(self.task, self._view, one)
            if one in awaited:
                yield Refused(
                    f"{awaited[one]}, which is in the queue, waits for {one}",
                    hint=AtTerminal(f"{command_line(self.task, 'cancel', awaited[one])} takes it out"),
                )
        for task in (each for one in subtasks for each in subtree(one)):
            view = fold(task)
            yield from (refusal_of_live(task, view, name) for name in view.workers)

    def _started_by(self, instance: str) -> tuple[list[str], list[TaskDir]]:
        """Return the workers of the task below one, nearest first, and the sub-tasks that they all asked for."""
        found, subtasks = [instance], list[TaskDir]()
        for one in found:
            subtasks += self._subtasks.get(one, [])
            children = (
                child.instance for child in children_of(self.task.worker(one)) if child.task.path == self.task.path
            )
            found += [child for child in children if child not in found and child in self._view.workers]
        return found[1:], subtasks

    def what_goes_with(self, going: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the workers and the sub-tasks, with those below them, that go with some workers."""
        below, subtasks = dict[str, None](), dict[str, None]()
        for instance in going:
            names, tasks = self._started_by(instance)
            below |= dict.fromkeys(one for one in names if one not in going)
            subtasks |= dict.fromkeys(each.id for task in tasks for each in subtree(task))
        return list(below), list(subtasks)


class RemovedAll(NamedTuple):
    """What was removed, and what was not."""

    task: TaskDir
    workers: Sequence[str]
    subtasks: Sequence[str]
    left_out: Mapping[str, AgentctlError]


def remove_planned(plan: RemovalPlan, *, as_far_as_possible: bool = False) -> RemovedAll:
    """Remove what was planned. Of a worker whose worktree holds what is nowhere else, nothing is removed.

    Raises:
        Refused: One of them has become live meanwhile, or is waited for; nothing was removed but worktrees in which
            nothing was lost.
    """
    task, works, left_out = plan.task, dict(plan.works), dict(plan.left_out)
    worktrees = GoingWorktrees(_going_with(task, plan.workers))
    refused = worktrees.refusals()
    staying: list[WorkerDir] = []
    for name, tries in plan.works.items() if refused else ():
        all_of_it = _going_with(task, tries)
        why = next((refused[worker.path] for worker in all_of_it if worker.path in refused), None)
        if why is not None:
            left_out[name] = why
            staying += all_of_it
            del works[name]
    worktrees.remove(but=staying)
    if not works:
        return RemovedAll(task, [], [], left_out)
    with locked(tree_of(task).queue_lock):
        looks = _Looks(task, fold(task), recursive=bool(plan.below or plan.subtasks))
        now = _plan(looks, works, as_far_as_possible=as_far_as_possible)
        if now.works:
            carry_out_removal(task, order_removal(task, who(), now.workers, now.subtasks))
    delete_removed(task.root)
    mend_roster(task)
    return RemovedAll(task, now.workers if now.works else [], now.subtasks, {**left_out, **now.left_out})


def _going_with(task: TaskDir, instances: Sequence[str]) -> list[WorkerDir]:
    """Return workers, with those below them that would go too: of sub-tasks all that these have."""
    below, subtasks = _Looks(task, fold(task), recursive=True).what_goes_with(instances)
    inside = (one.worker(name) for one in map(task.sibling, subtasks) for name in one.instances())
    return [*map(task.worker, [*instances, *below]), *inside]
