"""Findings of `doctor`: files of the wrong kind, such as a link or a FIFO, and shims that do not answer."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import struct
import termios
import time
from collections.abc import Iterable, Iterator, Mapping

from agentctl.adapters.files import make_folder, set_aside, storage_errors
from agentctl.adapters.opening import MOST_BYTES, kind_of
from agentctl.adapters.paths import FilePath
from agentctl.adapters.tails import read_tail
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir, WorkerDir
from agentctl.adapters.treedir import tree_at
from agentctl.errors import AgentctlError, AtTerminal, Refused
from agentctl.operations.where.findings import Finding, finding
from agentctl.supervision.life.judging import Condition
from agentctl.supervision.worker.control import open_to_wake, poke

#: A task of 10,000 workers that have used every feature has as many.
_MOST_ENTRIES = 300_000
_MOST_NAMED = 100
#: Folders of a task that do not hold files of ours: the workers, and a person's template.
_NOT_OF_FILES = frozenset({"agents", "template", "launches", "turns"})
#: A shim takes its byte within milliseconds, unless the machine is busy, or it waits for the disk.
_ANSWER_S = 3.0
_LOOK_S = 0.02
#: States of a process that was stopped by a signal, or by whoever traces it (proc_pid_stat(5), field 3).
_STOPPED = frozenset("Tt")
#: How much of the end of a shim.log is looked at.
_TAIL = 1 << 16
#: As shim/loop.py writes it, above a traceback.
_FAILED = re.compile(rb"^\S+ pid \d+ ended unexpectedly$", re.MULTILINE)


# -- files -------------------------------------------------------------------------------------------------------------


def examine_odd(task: TaskDir, *, fix: bool) -> Iterator[Finding]:
    """Yield findings for files and folders of a task that are of the wrong kind or unusable; a hundred at most."""
    for number, (path, is_folder, problem) in enumerate(_odd(_places(task))):
        if number >= _MOST_NAMED:
            yield finding("error", "there are more of these", task.path, "fix these, then look again")
            return
        is_head = path == task.task_file  # Without it there would be no task.
        is_fixed = fix and not is_head and _repair(path)
        if is_fixed and is_folder:
            _make_folders(task)
        next_ = "look at it, and remove it" if is_head else AtTerminal("agentctl doctor --fix")
        yield finding("error", f"{os.path.basename(path)} {problem}", path, next_, fixed=is_fixed)


def examine_odd_root(root: Root, *, fix: bool) -> Iterator[Finding]:
    """Yield a finding for each place of a root, not of its tasks, that commands would refuse."""
    chosen = root.path / "chosen"
    files, folders = (root.current, root.lock, root.gitignore), (root.path / "tasks", chosen, root.worktrees)
    places = [*((path, False) for path in files), *((path, True) for path in folders)]
    if not os.path.islink(chosen):
        places += ((chosen / name, False) for name in _names(chosen))
    for path, is_folder, problem in _odd(places):
        is_fixed = fix and _repair(path)
        if is_fixed and is_folder:
            make_folder(path)
        name = os.path.basename(path)
        yield finding("error", f"{name} {problem}", path, AtTerminal("agentctl doctor --fix"), fixed=is_fixed)


def _odd(places: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool, str]]:
    for path, is_folder in places:
        problem = _problem(path, is_folder)
        if problem is not None and not _is_left_by_a_sandbox(path):
            yield path, is_folder, problem


def _make_folders(task: TaskDir) -> None:
    """Make the folders that a task has from the start, as far as they are missing."""
    with contextlib.suppress(AgentctlError, OSError):
        for folder in tree_at(task.path).folders():
            make_folder(folder)


def _places(task: TaskDir) -> Iterator[tuple[str, bool]]:
    """Yield each path of a task and its workers, and whether it should be a folder: each folder before its content."""
    yield from _entries(tree_at(task.path))
    if os.path.islink(task.path / "agents"):
        return
    for name in _names(task.path / "agents"):
        worker = WorkerDir(task.path / "agents" / name, task)
        yield worker.path, True
        if os.path.isdir(worker.path) and not os.path.islink(worker.path):
            yield from _entries(worker)


def _entries(folder: TaskDir | WorkerDir) -> Iterator[tuple[str, bool]]:
    for path, is_folder in folder.entries():
        yield path, is_folder
        if is_folder and path.name not in _NOT_OF_FILES and os.path.isdir(path) and not os.path.islink(path):
            yield from ((f"{path}/{name}", False) for name in _names(path))


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = (entry.name for entry in entries if not entry.name.endswith(".damaged"))
            return sorted(name for _, name in zip(range(_MOST_ENTRIES), names, strict=False))
    except OSError:
        return []


def _problem(path: str, is_folder: bool) -> str | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if found.st_uid != os.geteuid():
        return f"belongs to somebody else (uid {found.st_uid})"
    if is_folder:
        if not stat.S_ISDIR(found.st_mode):
            return f"is not a folder, but {kind_of(path) or 'a file'}"
        return None if found.st_mode & 0o700 == 0o700 else f"has the mode {stat.S_IMODE(found.st_mode):04o}"
    if os.path.basename(path) == "control":
        return None if stat.S_ISFIFO(found.st_mode) else f"is not a FIFO, but {kind_of(path) or 'a file'}"
    if not stat.S_ISREG(found.st_mode):
        return f"is not a file, but {kind_of(path) or 'something else'}"
    if path.endswith(".json") and found.st_size > MOST_BYTES:
        return f"is larger than any file of agentctl: {found.st_size} bytes"
    return None if found.st_mode & 0o600 == 0o600 else f"has the mode {stat.S_IMODE(found.st_mode):04o}"


def _is_left_by_a_sandbox(path: str) -> bool:
    """Return whether a path is an empty folder in an outbox, as a killed sandbox leaves it: nobody reads it there."""
    folder, name = os.path.split(path)
    if path != f"{WorkerDir(os.path.dirname(folder)).outbox}/{name}" or os.path.islink(path) or not os.path.isdir(path):
        return False
    with storage_errors(path, "read"):
        try:
            return not os.listdir(path)
        except (FileNotFoundError, PermissionError):
            return False


def _repair(path: str) -> bool:
    """Give a file of ours its mode back, and set anything else aside; return whether that worked."""
    try:
        found = os.lstat(path)
        is_ours = found.st_uid == os.geteuid()
        if is_ours and stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
            os.chmod(path, 0o700)
        elif is_ours and stat.S_ISREG(found.st_mode) and found.st_mode & 0o600 != 0o600:
            os.chmod(path, 0o600)
        else:
            set_aside(path)
    except (AgentctlError, OSError):
        return False
    return True


def refuse_odd_within(task: TaskDir) -> None:
    """Raise `Refused` for the first entry of a task's folder that is not a plain file or folder of this person.

    The FIFO that wakes a worker's shim is allowed in its own place.
    """
    number = 0
    folders = [str(task.path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                number += 1
                if number > _MOST_ENTRIES:
                    raise Refused(
                        f"{task.path} holds more than {_MOST_ENTRIES} files", hint="look at it, and remove some"
                    )
                _refuse_entry(task, entry)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _refuse_entry(task: TaskDir, entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    kind = None if stat.S_ISDIR(found.st_mode) else kind_of(entry.path)
    if stat.S_ISFIFO(found.st_mode) and _is_control(task, entry.path):
        kind = None
    if kind is not None:
        raise Refused(f"{entry.path} is {kind}: no task has one there", hint="look at it, and remove it")
    if found.st_uid != os.geteuid():
        raise Refused(f"{entry.path} belongs to somebody else (uid {found.st_uid})", hint="look at it, and remove it")


def _is_control(task: TaskDir, path: str) -> bool:
    return path == WorkerDir(FilePath(os.path.dirname(path)), task).control and os.path.dirname(
        os.path.dirname(path)
    ) == str(task.path / "agents")


# -- shims -------------------------------------------------------------------------------------------------------------


def examine_shims(task: TaskDir, conditions: Mapping[str, Condition]) -> Iterator[Finding]:
    """Yield a finding for each guarded worker whose shim does not read the byte that wakes it; tests all at once."""
    guarded = [task.worker(name) for name, found in conditions.items() if found is Condition.SUPERVISED]
    pipes = {worker.instance: fd for worker in guarded if (fd := _woken(worker)) is not None}
    try:
        give_up_at = time.monotonic() + _ANSWER_S
        waiting = dict(pipes)
        while (waiting := {name: fd for name, fd in waiting.items() if _unread(fd)}) and time.monotonic() < give_up_at:
            time.sleep(_LOOK_S)
    finally:
        for fd in pipes.values():
            os.close(fd)
    for name in waiting:
        yield _deaf(task, name)


def _woken(worker: WorkerDir) -> int | None:
    """Wake a shim; return its FIFO, which shows whether it has read the byte; None where it has none."""
    try:
        fd = open_to_wake(worker) if poke(worker) else None
    except OSError:
        return None
    return fd


def _unread(fd: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])


def _deaf(task: TaskDir, name: str) -> Finding:
    """Return the finding for a worker whose shim has not answered: only one that is stopped will never do so."""
    from agentctl.adapters import processes
    from agentctl.adapters.files import read_known

    where, shim = f"{task.id}/{name}", processes.identity_from(read_known(task.worker(name).shim))
    stat = processes.read_stat(shim.pid) if shim else None
    if shim is None or stat is None:
        return finding("note", "its shim has ended in the meantime", where, "")
    if stat.state in _STOPPED:
        what = f"its shim is stopped; until it goes on, no limit of {name} is enforced"
        return finding("error", what, where, f"kill -CONT {shim.pid}")
    what = f"its shim has not answered within {_ANSWER_S:g} s: the machine is busy, its disk is slow, or it is stuck"
    helps = "look again, and see whether its disk answers; its shim may hold an end that is not on disk yet: leave it"
    return finding("warning", what, where, helps)


def examine_notes(tree: TreeDir, *, fix: bool) -> Iterator[Finding]:
    """Yield a finding for the notes of shims: an error of ours, or else a file that they could not read and ignored.

    With `fix` they are first set aside and then read: whatever a shim writes meanwhile is told, now or the next time.
    """
    path = str(tree.shim_log)
    text = _end_of(path)
    if text is None or not text.strip():
        return
    aside = _aside(path) if fix else None
    where, text = aside or path, (_end_of(aside) if aside else None) or text
    if _FAILED.search(text):
        what = "a shim failed unexpectedly" + ("; report it with this file" if aside else "")
        next_ = ("report it with this file", AtTerminal("agentctl doctor --fix sets it aside"))
        yield finding("error", what, where, next_, fixed=aside is not None)
    else:
        last = text.strip().splitlines()[-1].decode(errors="replace")
        message = re.sub(r"^\S+ pid \d+ ", "", last)[:300]
        what = f"a shim met something that it could not read: {message}"
        way = AtTerminal("once you have dealt with it, agentctl doctor --fix sets this file aside")
        yield finding("warning", what, where, way, fixed=aside is not None)


def _aside(path: str) -> str | None:
    try:
        return set_aside(path)
    except AgentctlError:
        return None


def _end_of(path: str) -> bytes | None:
    try:
        return read_tail(path, _TAIL)[0]
    except OSError:
        return None
