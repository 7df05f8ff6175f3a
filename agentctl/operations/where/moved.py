"""A task that was moved with its project: its files are led from the old place to the new one.

Paths below the root are relative to it in `worktree.json` and `result.json`, and so are right wherever it lies. All
others are absolute: `place` says under which root they are right; once the task is a person's own in another one, all
below the old project that is found in the new one is written anew, and git is told where its worktrees are. `place`
comes last: if this is interrupted, the next call does it once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from agentctl.adapters.files import read_known, to_json, write_whole
from agentctl.adapters.git import GitError, git_in
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.worker.relative_paths import with_artifacts
from agentctl.supervision.worktree.record import whole_record, with_paths, write_record
from agentctl.supervision.worktree.recorded import git_from

_LIMIT_S = 60.0
_LONGEST = 8192


class Move(NamedTuple):
    """From which root to which one a task was moved."""

    old: str
    new: str

    def led(self, path: object) -> object:
        """Return where what was at a path is now; the value itself if that is unknown, or the move left it alone."""
        if not isinstance(path, str) or not os.path.isabs(path):
            return path
        if path == self.old or path.startswith(f"{self.old}/"):
            return self.new + path[len(self.old) :]
        above = os.path.dirname(self.old)
        if path != above and not path.startswith(f"{above}/"):
            return path
        now = os.path.dirname(self.new) + path[len(above) :]
        return now if os.path.lexists(now) else path


def note_paths_right(task: TaskDir) -> None:
    """Note that the paths in a task's files are right where it lies now."""
    write_whole(task.place, to_json({"root": str(task.root.path)}), durable=False)


def move_of(task: TaskDir) -> Move | None:
    """Return the move after which the files of a task still name its old place; None if they name none."""
    new = str(task.root.path)
    old = read_known(task.place).get("root") or next(_roots_in_records(task), None)
    if not isinstance(old, str) or not os.path.isabs(old) or old == new or _is_same(old, new):
        return None
    move = Move(os.path.normpath(old), new)
    return move if any(_names_old(task.worker(instance), move) for instance in task.instances()) else None


def _names_old(worker: WorkerDir, move: Move) -> bool:
    """Return whether a worker's files, or git's link to its worktree, name the old place."""
    files = (worker.spec, _led_spec), (worker.result, _led_result)
    if any(led(value := read_known(path), move) != value for path, led in files):
        return True
    record = whole_record(read_known(worker.worktree), move.old)
    return not record.get("removed") and with_paths(record, move.led) != record


def _led_spec(spec: dict[str, Any], move: Move) -> dict[str, Any]:
    """Return a spec with its folder in the new place; its walls say what was closed when it was started."""
    order = spec.get("order")
    led = {**spec, "cwd": move.led(spec["cwd"])} if _has(spec, "cwd") else spec
    return {**led, "order": {**order, "cwd": move.led(order["cwd"])}} if _has(order, "cwd") else led


def _led_result(result: dict[str, Any], move: Move) -> dict[str, Any]:
    led, touched = with_artifacts(result, lambda path, _: move.led(path), ""), result.get("touchedFiles")
    if isinstance(touched, list):
        led["touchedFiles"] = [move.led(path) for path in touched]
    return led


def _has(value: object, key: str) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and key in value


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _roots_in_records(task: TaskDir) -> Iterator[str]:
    """Yield the roots whose worktrees are recorded: a task of an earlier version has no `place`."""
    for worker in map(task.worker, task.instances()):
        above, _, below = str(read_known(worker.worktree).get("path") or "").rpartition("/worktrees/")
        if above and below.startswith(f"{task.id}/"):
            yield above


def follow_move(task: TaskDir) -> list[str]:
    """Lead the files of a task of one's own to the place where it lies now; return what git could not be told."""
    move, problems = move_of(task), []
    if move is not None:
        for worker in map(task.worker, task.instances()):
            with locked(worker.lock):
                _rewrite(worker.spec, lambda spec: _led_spec(spec, move))
                _rewrite(worker.result, lambda result: _led_result(result, move))
                problem = _lead_worktree(worker, move)
                if problem is not None:
                    problems.append(f"{worker.instance}: {problem}")
    if not problems:
        note_paths_right(task)
    return problems


def _rewrite(path: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    value = read_known(path)
    if value and (changed := change(value)) != value:
        write_whole(path, to_json(changed))


def _lead_worktree(worker: WorkerDir, move: Move) -> str | None:
    """Lead the record of a worktree; return what git could not be told: then it stays for the next call."""
    written = read_known(worker.worktree)
    before = whole_record(written, move.old)
    led = with_paths(before, move.led)
    problem = _relink(before, led) if led != before and not before.get("removed") else None
    if problem is None and led != whole_record(written, move.new):
        write_record(worker, led)
    return problem


def _relink(before: Mapping[str, Any], record: Mapping[str, Any]) -> str | None:
    """Tell git where a worktree lies now; return why that failed.

    Only where both ends of git's link still name the old places that the record had: then it is this link that the move
    has broken. Git finds the repository itself, by a `.git`, as for every call (`recorded`).
    """
    try:
        if "gitDir" not in record or not os.path.isdir(str(record.get("path"))):
            return None
        git_from(record, _LIMIT_S)  # Checks that git itself finds this repository.
        path, git_dir = str(record["path"]), str(record["gitDir"])
        known = {str(before.get("gitDir")), git_dir}, {f"{before.get('path')}/.git", f"{path}/.git"}
        links = _line_in(f"{path}/.git").removeprefix("gitdir: "), _line_in(f"{git_dir}/gitdir")
        if os.path.dirname(git_dir) != os.path.join(str(record["commonDir"]), "worktrees"):
            return f"{git_dir} is not where {record['commonDir']} keeps worktrees"
        if links[0] not in known[0] or links[1] not in known[1]:
            return f"the .git in {path} or the gitdir in {git_dir} is not the one of this worktree"
        if links != (git_dir, f"{path}/.git"):
            git_in(str(record["repository"]), limit_s=_LIMIT_S).run("worktree", "repair", path)
    except GitError as error:
        return error.message
    except (AgentctlError, OSError) as error:
        return str(error)
    return None


def _line_in(path: str) -> str:
    return os.fsdecode(read_bytes(path, _LONGEST)).rstrip("\n")
