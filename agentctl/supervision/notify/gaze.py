"""What the person is looking at: of that they need not be told.

Each screen has a file of its own among the person's own files, and holds its liveness lock: a killed one looks at
nothing any more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from agentctl.adapters.files import make_folders, read_known, to_json, write_in_place
from agentctl.adapters.locks import hold_alive, is_alive_held
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir, TreeDir, names_in
from agentctl.domain.notice.notices import Notice
from agentctl.domain.notice.targets import NoticeTarget
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.supervision.notify.book import SEEN, Book

_FOLDER, _MOST = "looking", 200


class LookedAt(NamedTuple):
    """A worker, or a task with all of its workers."""

    task: str
    instance: str | None = None


class Look:
    """One look of the person at something; it ends with `close`, or with this process.

    Args:
        state: The person's folder of state.
    """

    def __init__(self, state: FilePath) -> None:
        folder = FilePath(state) / _FOLDER
        make_folders(folder)
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._file, beside = folder / f"{name}.json", folder / f".{name}"
        fd = hold_alive(beside)
        assert fd is not None, "nobody else knows this name"
        self._fd: int = fd
        os.rename(beside, self._file)  # Only now, since a file without a lock is removed.

    def at(self, task: TaskDir | None, instance: str | None = None) -> None:
        """Say what is being looked at now: a worker, a task with all of its workers, or nothing."""
        value = {} if task is None else {"task": os.path.realpath(task.path), "instance": instance}
        write_in_place(self._fd, to_json(value))

    def close(self) -> None:
        """Look at nothing any more."""
        with contextlib.suppress(OSError):
            os.unlink(self._file)
        os.close(self._fd)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def looked_at(state: FilePath) -> set[LookedAt]:
    """Return what the person is looking at now; the files of killed screens are removed."""
    folder, found = FilePath(state) / _FOLDER, set()
    for name in names_in(folder, _MOST):
        file = folder / name
        if name.startswith("."):
            continue
        try:
            if is_alive_held(file):
                value = read_known(file)
                if isinstance(value.get("task"), str):
                    instance = value.get("instance")
                    found.add(LookedAt(value["task"], instance if isinstance(instance, str) else None))
            else:
                os.unlink(file)
        except (AgentctlError, OSError):
            continue
    return found


def unseen(
    tree: TreeDir, target: NoticeTarget, book: Book, notices: Sequence[Notice], seen: set[LookedAt]
) -> list[Notice]:
    """Return those of the notices of a tree that the person does not look at; the others are noted as seen.

    Args:
        seen: What they look at.

    Raises:
        StorageError: The book cannot be written.
    """
    looked = [one for one in notices if _is_seen(tree, one, seen)]
    if looked:
        book.note(target.name, [one.key for one in looked], SEEN)
    return [one for one in notices if one not in looked]


def _is_seen(tree: TreeDir, notice: Notice, seen: set[LookedAt]) -> bool:
    task = os.path.realpath(tree.sibling(notice.task_id).path)
    return LookedAt(task) in seen or (notice.instance is not None and LookedAt(task, notice.instance) in seen)
