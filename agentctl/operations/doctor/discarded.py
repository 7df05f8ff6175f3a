"""What is left of what was thrown away by commands that were killed, and what could be thrown away by now.

What is old or large is told as a note: nothing is wrong with it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

from agentctl.adapters.files import set_aside
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir, names_in
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import first_of
from agentctl.errors import AgentctlError, Damaged
from agentctl.operations.discard.archiving import over_since
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.ownership import forget_gone_tasks, is_own
from agentctl.operations.where.put_away import all_put_away, finish_all, unfinished
from agentctl.operations.where.removal_order import delete_removed, finish_removal, read_removal
from agentctl.supervision.worktree.record import known_record

#: A task in which the last worker ended so long ago is old.
_OLD_S = 30 * 86_400
_OLD = "30d"
#: A task or a worktree of so many bytes is large.
_LARGE = 1 << 30
#: So many files are looked at, of all tasks and worktrees of a root together: beyond them, a size is the least it is.
_MOST_FILES = 200_000
_MOST_NAMED = 3


def examine_removal(task: TaskDir, *, fix: bool) -> Iterator[Finding]:
    """Yield a decision to remove workers that was not carried out to its end; with `fix` the rest of it is."""
    try:
        with locked(tree_of(task).queue_lock):  # A live `rm` holds this lock until it is.
            if not task.removal.exists():
                return
            try:
                order = read_removal(task)
            except Damaged as error:
                if fix:
                    set_aside(task.removal)
                yield finding("error", error.message, task.removal, error.steps, fixed=fix)
                return
    except FileNotFoundError:
        return
    if fix:
        finish_removal(task)
    what = f"the removal of {first_of(order.workers)} was killed; the next command about the task carries it out"
    yield finding("note", what, task.removal, "agentctl doctor --fix", fixed=fix)


def examine_discarded(root: Root, *, fix: bool) -> Iterator[Finding]:
    """Yield what was begun with tasks as a whole and not carried out, what was not deleted, and marks of no task."""
    for task in unfinished(root):
        what = f"{task.id} was being put away or brought back, and that was killed"
        if fix:
            finish_all(root)
        yield finding("note", what, task.path, "agentctl doctor --fix", fixed=fix)
    left = names_in(root.removed, _MOST_FILES)
    if left:
        if fix:
            delete_removed(root)
        is_fixed = fix and not names_in(root.removed, 1)
        yield finding("note", "removed, and not deleted yet", root.removed, "agentctl doctor --fix", fixed=is_fixed)
    gone = forget_gone_tasks(root, _kept_nonces(root), fix=fix)
    if gone:
        what = f"marks of {_counted(gone, 'task')} of yours that {'is' if gone == 1 else 'are'} gone"
        yield finding("note", what, root.tasks, "agentctl doctor --fix", fixed=fix)


def _kept_nonces(root: Root) -> set[str]:
    """Return the random texts of the tasks that were put away: they may come back."""
    found = set()
    for place, _ in all_put_away(root):
        found |= {place.task(name).nonce() for name in names_in(place.path / "tasks", _MOST_FILES)}
    return found


def examine_bulk(root: Root, *, large: int = _LARGE) -> Iterator[Finding]:
    """Yield which tasks are old, and which tasks and worktrees are large, with the line that puts them away.

    Args:
        large: From how many bytes on a task or a worktree is.
    """
    bulk = _Bulk(root)
    before = time.time() - _OLD_S
    old = [(bulk.tasks[name], name) for name, at in bulk.ended.items() if at <= before]
    if old:
        yield bulk.told(f"{_counted(len(old), 'task')} over for more than 30 days", old, root.tasks, _ARCHIVE_OLD)
    big = sorted(((bulk.tasks[name], name) for name in bulk.ended if bulk.tasks[name] >= large), reverse=True)
    if big:
        line = f"agentctl archive {big[0][1]}; then agentctl archive --delete {big[0][1]} deletes it"
        yield bulk.told(f"{_counted(len(big), 'task')} over, of more than {_bytes(large)}", big, root.tasks, line)
    trees = sorted((one for one in bulk.worktrees if one[0] >= large), reverse=True)
    if trees:
        what = f"{_counted(len(trees), 'worktree')} of ended workers, of more than {_bytes(large)}"
        yield bulk.told(what, [one[:2] for one in trees], root.worktrees, trees[0][2])


_ARCHIVE_OLD = f"agentctl archive --older-than {_OLD}"


class _Bulk:
    """How much the tasks of a person's own hold, each with those below it, and the worktrees of ended workers."""

    def __init__(self, root: Root) -> None:
        self._sizes = _Sizes()
        self.tasks = Counter[str]()
        #: Of a tree of tasks in which nothing is live: when its last worker ended.
        self.ended: dict[str, float] = {}
        #: How large, of which worker, and the line that removes it.
        self.worktrees: list[tuple[int, str, str]] = []
        for task in filter(is_own, map(root.task, root.task_ids())):
            top = tree_of(task)
            if top.id == task.id and (at := _over_since(task)) is not None:
                self.ended[task.id] = at
            self.tasks[top.id] += self._sizes.of(task.path)
            self.worktrees += filter(None, map(self._worktree_of, map(task.worker, task.instances())))

    def _worktree_of(self, worker: WorkerDir) -> tuple[int, str, str] | None:
        try:
            path = known_record(worker).get("path") if worker.has_ended and worker.worktree.exists() else None
        except (AgentctlError, OSError):
            return None  # The look at the worker itself says why.
        if not isinstance(path, str) or not os.path.isdir(path):
            return None
        line = command_line(worker.task, "worktrees", "remove", worker.instance)
        return self._sizes.of(FilePath(path)), str(worker.id), line

    def told(self, what: str, sized: list[tuple[int, str]], where: object, line: str) -> Finding:
        """Return a note that says how many there are, how much they hold together, and which are the largest."""
        total = _bytes(sum(size for size, _ in sized))
        named = first_of([f"{name} ({_bytes(size)})" for size, name in sorted(sized, reverse=True)], _MOST_NAMED)
        return finding("note", f"{what}, {total} in all{self._sizes.at_least}: {named}", where, line)


def _over_since(task: TaskDir) -> float | None:
    try:
        return over_since(task)
    except (AgentctlError, OSError):
        return None  # The look at the task itself says why.


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _bytes(size: int) -> str:
    """Return a size as a person says it.

    >>> [_bytes(size) for size in (12, 4_200_000, 3 << 30)]
    ['0 MB', '4 MB', '3.2 GB']
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


class _Sizes:
    """How much folders hold, as far as the files that may be looked at allow."""

    def __init__(self) -> None:
        self._left = _MOST_FILES

    @property
    def at_least(self) -> str:
        """What is to be said of sizes once not all files were looked at."""
        return "" if self._left > 0 else f" at least (of {_MOST_FILES:,} files)"

    def of(self, folder: FilePath) -> int:
        """Return the bytes on disk below a folder; links are not followed."""
        total, left = 0, [str(folder)]
        while left and self._left > 0:
            try:
                with os.scandir(left.pop()) as entries:
                    for entry in entries:
                        self._left -= 1
                        if self._left <= 0:
                            break
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                        else:
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
        return total
