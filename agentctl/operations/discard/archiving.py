"""Puts tasks that are over away with all below them, lists them, brings them back, or deletes them.

Their reports, results and patches stay with them and can be searched; no other command sees them, and their ids are
free.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence

from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import make_folder, storage_errors
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import check_name
from agentctl.domain.tree.treefacts import instant
from agentctl.errors import AgentctlError, AtTerminal, Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.discard.at_rest import await_shims, refusal_of_live, refuse_for_workers
from agentctl.operations.discard.worktrees_gone import GoingWorktrees
from agentctl.operations.show.current_state import read_own_task
from agentctl.operations.show.joining import join_results
from agentctl.operations.where.folding import fold
from agentctl.operations.where.lineage import queues_locked, who
from agentctl.operations.where.ownership import check_own, disown_at, is_own
from agentctl.operations.where.put_away import (
    PutAway,
    all_put_away,
    carry_out_put_away,
    check_was_own,
    finish_all,
    free_name,
    read_put_away,
    write_put_away,
)
from agentctl.operations.where.removal_order import delete_removed
from agentctl.operations.where.root_lock import root_locked
from agentctl.operations.where.subtasks_below import subtree
from agentctl.operations.where.task_config import usable_config

if TYPE_CHECKING:
    from agentctl.domain.documents.tasks import ArchivedTask
    from agentctl.domain.worker.projection import TaskView


class Archived(NamedTuple):
    """A task that was put away, brought back, or deleted."""

    decision: PutAway
    #: Its folder now; where it was, if it was deleted.
    path: str

    def to_json(self) -> ArchivedTask:
        """Return its row."""
        one = self.decision
        return {
            "name": one.name, "taskId": one.task_id, "title": one.title, "tasks": [*one.tasks], "workers": one.workers,
            "archivedAt": one.at, "endedAt": one.ended_at, "path": self.path,
        }  # fmt: skip


class ArchivedAll(NamedTuple):
    """What became of several tasks."""

    done: Sequence[Archived]
    #: A task that was selected -> why it stays.
    left_out: Mapping[str, AgentctlError]


class ArchivingPlan(NamedTuple):
    """Tasks that were looked at, each with all below it, and can be put away."""

    trees: Sequence[_Tree]
    #: A task that was selected -> why it stays.
    left_out: Mapping[str, AgentctlError]
    as_far_as_possible: bool


# -- which -------------------------------------------------------------------------------------------------------------


def tasks_over(root: Root, seconds: float) -> list[TaskDir]:
    """Return a person's own tasks, with all below them, in which the last worker ended so long ago, oldest first."""
    before = time.time() - seconds
    found = [(at, task) for task, at in _tops(root) if at is not None and at <= before]
    return [task for _, task in sorted(found, key=lambda one: (one[0], one[1].id))]


def _tops(root: Root) -> Iterable[tuple[TaskDir, float | None]]:
    """Yield the topmost tasks of a person's own, and when the last worker below each ended; None while one is live."""
    for task in map(root.task, root.task_ids()):
        try:
            config = cached(task)
            if (config is None or config.parent_task_id is None) and is_own(task):
                yield task, over_since(task)
        except (AgentctlError, OSError):
            continue  # It cannot be read: `doctor` says so.


def over_since(task: TaskDir) -> float | None:
    """Return when the last worker of a task and those below it ended, in seconds since 1970; None while one is live.

    Where there never was one, it is when the task was made.
    """
    views = [fold(one) for one in subtree(task)]
    ends = [worker.ended_at for view in views for worker in view.workers.values()]
    if not all(worker.is_terminal for view in views for worker in view.workers.values()):
        return None
    return max(
        (at for end in ends if (at := instant(end)) is not None), default=instant(usable_config(task).created_at)
    )


# -- put away ----------------------------------------------------------------------------------------------------------


def plan_archiving(tasks: Sequence[TaskDir], *, as_far_as_possible: bool = False) -> ArchivingPlan:
    """Look at tasks of one root, each with all below it, and return how they are put away.

    Args:
        as_far_as_possible: Leave out those that are refused, now or when it is done, instead of putting none away.

    Raises:
        Refused: The caller is a worker; one of them is not this person's own or is a sub-task; something in it is
            live, or a worktree holds work that is nowhere else.
    """
    refuse_for_workers("put tasks away")
    trees: list[_Tree] = []
    left_out: dict[str, AgentctlError] = {}
    for task in tasks:
        try:
            trees.append(_Tree(task))
        except AgentctlError as why:
            if not as_far_as_possible:
                raise
            left_out[task.id] = why
    return ArchivingPlan(trees, left_out, as_far_as_possible)


def archive_planned(plan: ArchivingPlan) -> ArchivedAll:
    """Put the tasks of a plan away.

    Raises:
        Refused: One of them has become live since it was looked at. None was put away, unless the plan goes as far as
            possible.
    """
    if not plan.as_far_as_possible:
        return ArchivedAll(_put_away_together(plan.trees), plan.left_out)
    done, left_out = list[Archived](), {**plan.left_out}
    for tree in plan.trees:
        try:
            done += _put_away_together([tree])
        except AgentctlError as why:
            left_out[tree.task.id] = why
    return ArchivedAll(done, left_out)


def _put_away_together(trees: Sequence[_Tree]) -> list[Archived]:
    """Put trees of tasks away, all or none: each is looked at once more while nothing can begin in any of them."""
    if not trees:
        return []
    for tree in trees:
        tree.prepare()
    with root_locked(trees[0].task.root), queues_locked(*(tree_of(tree.task) for tree in trees)):
        for tree in trees:
            tree.look_again()
        return [tree.put_away() for tree in trees]


class _Tree:
    """A task with all below it, which was looked at: it could be put away.

    Raises:
        Refused: It cannot.
    """

    def __init__(self, task: TaskDir) -> None:
        check_own(task)
        config = cached(task)
        if config is not None and config.parent_task_id is not None:
            top = tree_of(task).id
            raise Refused(
                f"{task.id} is a sub-task: only a whole tree of tasks is put away",
                hint=AtTerminal(f"agentctl archive {top} puts {top} away, with all below it"),
            )
        self.task = task
        self.tasks = subtree(task)
        views = {one.id: read_own_task(one)[0] for one in self.tasks}
        await_shims(self._workers(views))
        self._refuse_live(views)
        self._views, self._name = views, ""
        self._worktrees = GoingWorktrees(self._workers(views))
        for why in self._worktrees.refusals().values():
            raise why

    def _workers(self, views: Mapping[str, TaskView]) -> list[WorkerDir]:
        return [one.worker(name) for one in self.tasks for name in views[one.id].workers]

    def _refuse_live(self, views: Mapping[str, TaskView]) -> None:
        for one in self.tasks:
            for name in views[one.id].workers:
                why = refusal_of_live(one, views[one.id], name)
                if why is not None:
                    raise why
            for name in one.instances():
                if name not in views[one.id].workers and one.worker(name).worktree.exists():
                    raise Refused(
                        f"{one.id}/{name} was never begun, and has a worktree",
                        hint=AtTerminal("agentctl doctor --fix removes what killed spawns leave"),
                    )

    def prepare(self) -> None:
        """Do what may take long: remove its worktrees, and write its reports."""
        self._worktrees.remove()
        self._write_reports(free_name(self.task.root, self.task.id))

    def look_again(self) -> None:
        """Look at it once more (the caller holds the locks of the root and of its queue).

        Raises:
            Refused: It can no longer be put away.
        """
        if [one.id for one in subtree(self.task)] != [one.id for one in self.tasks]:
            raise Refused(f"a sub-task of {self.task.id} was made meanwhile", hint=Next("tasks"))
        self._views = {one.id: fold(one) for one in self.tasks}
        self._refuse_live(self._views)

    def put_away(self) -> Archived:
        """Move it, as it was looked at last (the caller still holds the locks)."""
        root, name = self.task.root, free_name(self.task.root, self.task.id)
        if name != self._name:  # Somebody else took that one.
            self._write_reports(name)
        decision = self._decision(name, self._views)
        write_put_away(self.task, decision)
        carry_out_put_away(root, decision)
        return Archived(decision, str(root.archived(name).task(self.task.id).path))

    def _write_reports(self, name: str) -> None:
        """Write the report of each task, as it is right in its new place, which has a name."""
        for one in self.tasks:
            join_results(one, at=self.task.root.archived(name).task(one.id))
        self._name = name

    def _decision(self, name: str, views: Mapping[str, TaskView]) -> PutAway:
        workers = [worker for view in views.values() for worker in view.workers.values()]
        ends = [worker.ended_at for worker in workers if worker.ended_at is not None]
        return PutAway(
            name, self.task.id, [one.id for one in self.tasks], usable_config(self.task).title, who(), now_iso(),
            max(ends, default=None), len(workers),
        )  # fmt: skip


# -- what was put away -------------------------------------------------------------------------------------------------


def list_archived(root: Root) -> list[Archived]:
    """Return what was put away, oldest first; what a killed command had begun is carried out before."""
    finish_all(root)
    found = [Archived(read_put_away(task), str(task.path)) for _, task in all_put_away(root)]
    return sorted(found, key=lambda one: (one.decision.at, one.decision.name))


def archived_tasks(root: Root) -> list[TaskDir]:
    """Return all tasks that were put away, with those below them, for whoever searches them."""
    found = []
    for place, task in all_put_away(root):
        found += [one for one in map(place.task, read_put_away(task).tasks) if one.task_file.exists()]
    return found


def _archived(root: Root, name: str) -> tuple[Root, TaskDir, PutAway]:
    check_name(name, "the task")
    known = {}
    for place, task in all_put_away(root):
        known[os.path.basename(place.path)] = place, task
    if name not in known:
        there = AtTerminal(f"agentctl archive {name} puts it away") if root.task(name).exists else _known(known)
        raise NotFound(f"no task {name!r} was put away in {root.path}", hint=there)
    place, task = known[name]
    check_was_own(root, task)
    return place, task, read_put_away(task)


def _known(names: Iterable[str]) -> str:
    return f"put away: {', '.join(list(names)[:10]) or 'none'}"


def bring_back(root: Root, names: Sequence[str]) -> list[Archived]:
    """Bring tasks back that were put away, each with all below it.

    Raises:
        NotFound: No such task was put away.
        Refused: Another task has the id by now, or it was not put away by this person. None was brought back.
    """
    refuse_for_workers("bring tasks back")
    finish_all(root)
    with root_locked(root):
        found = [_archived(root, name) for name in dict.fromkeys(names)]
        _refuse_same_id([decision for _, _, decision in found])
        for _, _, decision in found:
            _refuse_taken(root, decision)
        done = []
        for _, task, decision in found:
            back = decision._replace(is_back=True)
            write_put_away(task, back)
            carry_out_put_away(root, back)
            done.append(Archived(decision, str(root.task(decision.task_id).path)))
    for one in done:
        for name in one.decision.tasks:
            join_results(root.task(name))  # Its report names places.
    return done


def _refuse_same_id(decisions: Iterable[PutAway]) -> None:
    had: dict[str, str] = {}
    for one in decisions:
        for name in one.tasks:
            if (other := had.setdefault(name, one.name)) != one.name:
                raise Refused(
                    f"{other} and {one.name} both have a task {name}: only one of them can come back",
                    hint=AtTerminal(f"agentctl archive --bring-back {one.name} brings the second one back"),
                )


def _refuse_taken(root: Root, decision: PutAway) -> None:
    for name in decision.tasks:
        if os.path.lexists(root.task(name).path):
            top = tree_of(root.task(name)).id
            raise Refused(
                f"there is another task {name} by now",
                hint=AtTerminal(
                    f"agentctl archive {top} puts that one away; then agentctl archive --bring-back {decision.name}"
                ),
            )


def delete_archived(root: Root, names: Sequence[str]) -> list[Archived]:
    """Delete tasks that were put away, for good, with the marks by which they were a person's own.

    Raises:
        NotFound: No such task was put away.
        Refused: It was not put away by this person. None was deleted.
    """
    refuse_for_workers("delete tasks")
    finish_all(root)
    with root_locked(root):
        found = [_archived(root, name) for name in dict.fromkeys(names)]
        make_folder(root.removed)
        for place, _, decision in found:
            for one in map(place.task, decision.tasks):
                config = cached(one)
                disown_at(root.task(one.id), one.nonce(), () if config is None else config.permissions)
            with storage_errors(place.path, "remove"):
                os.rename(place.path, root.removed / f"archive-{decision.name}.{os.urandom(8).hex()}")
    delete_removed(root)
    return [Archived(decision, str(task.path)) for _, task, decision in found]
