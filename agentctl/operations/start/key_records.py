"""The records of keys: a file for each, which says for which request a key is, and where what it did can be found.

A task that has a key is found here, too: its own folder says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.adapters.files import file_text, read_json, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.names import check_name
from agentctl.domain.same_request import KIND
from agentctl.lean import NamedTuple
from agentctl.operations.where.ownership import is_own


def digest_of_key(key: str) -> str:
    """Return the name of a key's file."""
    import hashlib  # 6 ms, with OpenSSL: only for keys.

    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def record_of_key(folder: FilePath, key: str) -> Mapping[str, Any]:
    """Return what is known of a key; empty if it is new."""
    return read_json(folder / digest_of_key(key)) or {}


def keep_record(folder: FilePath, key: str, record: Mapping[str, Any]) -> None:
    """Write down what is known of a key, durably; the caller has the lock of the folder."""
    write_whole(folder / digest_of_key(key), to_json(record))


def differing_words(differing: Sequence[str]) -> str:
    """Return what two requests differ in.

    >>> differing_words(["argv", "cwd", "env"])
    'argv, cwd and env'
    """
    if list(differing) == [KIND]:
        return "what it asks for"
    *first, last = differing
    return f"{', '.join(first)} and {last}" if first else last


class Made(NamedTuple):
    """A task that was made, now or by an earlier request with the same key."""

    task: TaskDir
    reused: bool = False


def task_of_key(root: Root, key: str, record: Mapping[str, Any]) -> TaskDir | None:
    """Return the task that a key has made, by the record of the key; None where there is none, or no more."""
    if record.get("taskId") is None:
        return None
    task = root.task(check_name(str(record["taskId"]), "the task of a key"))
    return task if task.exists and is_own(task) and is_made_by(task, key) else None


def is_made_by(task: TaskDir, key: str) -> bool:
    """Return whether the folder of a task, wherever it lies by now, says that this key has made it."""
    return file_text(task.made_by, "ascii") == digest_of_key(key)


def note_task(keys: FilePath, key: str, task: TaskDir, said: Mapping[str, str]) -> None:
    """Note in a task which key makes it, and among the keys which task that is; the caller has their lock."""
    write_whole(task.made_by, digest_of_key(key).encode())  # A later task of that name has none.
    keep_record(keys, key, {"taskId": task.id, "request": said})
