"""The turns of an agent that works in a worktree: when each began, and what the worktree held when it ended.

What it held is a tree of git's, whose new objects lie in the worker's own folder: neither the repository nor its
garbage collector knows of them. Only those of the last two ends are kept. An agent that rewrites its history may lose
the other objects of a tree once git collects them, after two weeks; then a difference from that tree can no longer be
told.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping

from agentctl.adapters.activitylog import last_lines
from agentctl.adapters.clock import now_iso
from agentctl.adapters.files import storage_errors, to_json, write_all
from agentctl.adapters.git import GitError
from agentctl.adapters.opening import open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import NamedTuple
from agentctl.supervision.worktree.aside import git_aside, scratch_folder, take_in
from agentctl.supervision.worktree.record import read_record
from agentctl.supervision.worktree.recorded import tree_from

#: How much of the end of `turns.jsonl` is read: some thousand turns.
_READ_BYTES = 1 << 18
_KEPT = 2
_TREE = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
#: More turns than any agent takes.
_MOST_TURNS = 1 << 31


class WorktreeTurns(NamedTuple):
    """What is known of a worker's turns; the first one is number 1."""

    #: The turn that began last; 0 before the first.
    last: int = 0
    #: The trees at the ends of turns. That of turn 0 is what the worktree held before the first one.
    trees: Mapping[int, str] = {}


def turns_of(worker: WorkerDir) -> WorktreeTurns:
    """Return what is known of the turns of a worker."""
    return _fold(reversed(last_lines(worker.turns, _READ_BYTES)))


def _fold(lines: Iterable[bytes]) -> WorktreeTurns:
    last, trees = 0, dict[int, str]()
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # Torn, by a full disk or a killed writer.
        number = row.get("turn") if isinstance(row, dict) else None
        if not isinstance(number, int) or not 0 <= number < _MOST_TURNS:
            continue
        last = max(last, number)
        if _TREE.fullmatch(str(row.get("tree"))):
            trees[number] = str(row["tree"])
    return WorktreeTurns(last, trees)


def note_begin(worker: WorkerDir, number: int) -> None:
    """Note that a turn begins."""
    _append(worker, {"turn": number, "begunAt": now_iso()})


def note_end(worker: WorkerDir, number: int, *, limit_s: float) -> None:
    """Note what the worktree of a worker holds at the end of a turn.

    Raises:
        GitError: git cannot tell; nothing was noted.
    """
    recorded = tree_from(read_record(worker) or {})
    if recorded is None:
        raise GitError("the worktree was never finished")
    with scratch_folder(worker) as scratch:
        aside = git_aside(recorded.git(limit_s), recorded, scratch)
        take_in(aside, recorded.path)
        tree = aside.text("write-tree")
        _keep(worker, tree, os.path.join(scratch, "objects"))
        _append(worker, {"turn": number, "endedAt": now_iso(), "tree": tree})
    _remove_older(worker)


def objects_of(worker: WorkerDir, tree: str) -> str:
    """Return the folder of the objects that git needs for a tree, besides those of the repository."""
    return str(worker.turn_objects / tree)


def _keep(worker: WorkerDir, tree: str, objects: str) -> None:
    with storage_errors(worker.turn_objects, "make a folder in"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(worker.turn_objects, 0o700)
        if not os.path.isdir(objects_of(worker, tree)):  # It is there if the worktree held the same before.
            os.rename(objects, objects_of(worker, tree))


def _remove_older(worker: WorkerDir) -> None:
    trees = turns_of(worker).trees
    kept = {trees[number] for number in sorted(trees)[-_KEPT:]}
    for name in os.listdir(worker.turn_objects):
        if name not in kept:
            shutil.rmtree(worker.turn_objects / name, ignore_errors=True)


def _append(worker: WorkerDir, row: Mapping[str, object]) -> None:
    with storage_errors(worker.turns, "append to"):
        fd = open_plain(worker.turns, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            write_all(fd, to_json(dict(row)))
        finally:
            os.close(fd)
