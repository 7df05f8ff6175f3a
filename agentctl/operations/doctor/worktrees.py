"""What is wrong with the worktrees of a task: leftovers of killed programs, changes that could not be recorded."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentctl.adapters.files import set_aside
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.errors import Damaged, NotFound
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.worktree.changes import changes_of, ensure_recorded, is_recorded, worktree_record
from agentctl.supervision.worktree.aside import abandoned_scratch
from agentctl.supervision.worktree.record import known_record, read_record


def examine_worktrees(task: TaskDir, *, fix: bool) -> Iterator[Finding]:
    """Yield what is wrong with the worktrees of a task's workers."""
    for instance in task.instances():
        worker = task.worker(instance)
        if not worker.worktree.exists():
            continue
        yield from _scratch(worker, fix)
        try:
            record = worktree_record(worker) if worker.has_ended else read_record(worker) or {}
        except NotFound:
            continue  # It was removed meanwhile.
        except Damaged as error:
            if fix:
                set_aside(worker.worktree)
            helps = "agentctl doctor --fix sets it aside; git worktree list names what it was about"
            yield finding("error", error.message, worker.worktree, helps, fixed=fix)
            continue
        if worker.has_ended and not record.get("removed") and not is_recorded(record):
            yield _unrecorded(worker, record, fix)


def _unrecorded(worker: WorkerDir, record: Mapping[str, Any], fix: bool) -> Finding:
    """Return a finding for changes that were not recorded: a note where they never can be, since nothing mends that."""
    if fix:
        ensure_recorded(worker, again=True)
        record = known_record(worker)
    changes = changes_of(record)
    why = changes.get("error") or changes.get("submodulesError")
    what = "what it changed in its worktree was not recorded" + (f": {why}" if why else "")
    if changes.get("lost"):
        return finding("note", f"{what}; it cannot be repaired", worker.worktree)
    is_fixed = fix and why is None
    next_ = "mend that, then agentctl doctor --fix" if fix and why else "agentctl doctor --fix"
    return finding("warning" if why else "note", what, worker.worktree, next_, fixed=is_fixed)


def _scratch(worker: WorkerDir, fix: bool) -> Iterator[Finding]:
    for path in abandoned_scratch(worker):
        if fix:
            shutil.rmtree(path, ignore_errors=True)
        yield finding("note", "left by a program that was killed", path, "agentctl doctor --fix", fixed=fix)


def examine_unknown(root: Root) -> Iterator[Finding]:
    """Yield the worktree folders that belong to no worker of the root; they may hold work, and are left alone."""
    for folder in sorted(Path(root.worktrees).glob("*/*")):
        task = root.task(folder.parent.name)
        known = (known_record(task.worker(instance)).get("path") for instance in task.instances())
        if str(folder) not in known:
            quoted = shlex.quote(str(folder))
            what = "a worktree of no worker: its task was removed, or its spawn was killed"
            yield finding("note", what, folder, f"look into it, then git -C {quoted} worktree remove {quoted}")
