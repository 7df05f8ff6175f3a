"""What this person has made or vouched for, by marks among their own files that nobody else can leave there.

A cloned repository may bring a task directory, and a worker may write files of its task. What such files say is
nobody's word until a person has given it. A mark is an empty file in `~/.config/agentctl/own/`, which no clone reaches
and sandboxes keep closed; its name is the hash of what is vouched for: a task in the place where it lies, the allowing
rules in its `task.yaml`, an answer to a request for permission. A random text in the task's `origin` is in each hash:
another task that comes to lie in the place of a removed one has no marks. A further one, bound to the place alone,
holds that text: whatever a worker does to `origin`, what runs there can be stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping

from agentctl.adapters.files import make_folder, write_whole
from agentctl.adapters.opening import open_plain, read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import config_folder, is_ones_own
from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import StorageError

try:
    from _blake2 import blake2b  # `hashlib` brings OpenSSL along: 2 ms for each command.
except ImportError:
    from hashlib import blake2b

_NONCE_BYTES, _MOST_NOTED = 16, 100


def marks_folder(environ: Mapping[str, str]) -> FilePath:
    """Return where a person's marks are."""
    return config_folder(environ) / "own"


def new_nonce() -> str:
    """Return a random text for a task: a new one, since others may know what came with it."""
    return os.urandom(_NONCE_BYTES).hex()


def put_nonce(task: TaskDir, nonce: str, *, durable: bool = True) -> None:
    """Write the random text of a task, whatever lies in its place."""
    write_whole(task.origin, nonce.encode() + b"\n", durable=durable)


def note_place(folder: FilePath, task: TaskDir, nonce: str) -> None:
    """Note that a task of this person stands at this place, and its random text.

    Like a mark it is not waited for until it is on disk: a power cut that took it costs a person one `trust`.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    make_folder(os.path.realpath(folder))
    write_whole(folder / _name_of_place(task), nonce.encode() + b"\n", durable=False)


def noted_at(folder: FilePath, task: TaskDir) -> str:
    """Return the random text of the task of this person that stood at a task's place last; empty where none did."""
    path = folder / _name_of_place(task)
    try:
        return read_bytes(path, _MOST_NOTED).decode("ascii").strip() if _is_ones_own(folder, path) else ""
    except (OSError, UnicodeDecodeError):
        return ""


def forget_place(folder: FilePath, task: TaskDir) -> None:
    """Note no more that a task of this person stands at this place."""
    with contextlib.suppress(OSError):
        os.unlink(folder / _name_of_place(task))


def mark(folder: FilePath, task: TaskDir, what: str, *parts: str) -> None:
    """Leave a mark: this is the person's word.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    make_folder(os.path.realpath(folder))
    fd = open_plain(folder / _name_of(task, what, parts), os.O_WRONLY | os.O_CREAT)
    os.close(fd)


def is_marked(folder: FilePath, task: TaskDir, what: str, *parts: str) -> bool:
    """Tell whether there is such a mark, and nobody else could have left it."""
    if not task.nonce():
        return False
    return _is_ones_own(folder, folder / _name_of(task, what, parts))


def _is_ones_own(folder: FilePath, path: FilePath) -> bool:
    try:
        found, above = os.lstat(path), os.stat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and is_ones_own(above)


def unmark(folder: FilePath, task: TaskDir, what: str, *parts: str) -> bool:
    """Take a mark back; tell whether it was there."""
    try:
        os.unlink(folder / _name_of(task, what, parts))
    except OSError:
        return False
    return True


def _name_of(task: TaskDir, what: str, parts: tuple[str, ...]) -> str:
    return _hash_of(task, task.nonce(), what, *parts)


def _name_of_place(task: TaskDir) -> str:
    return _hash_of(task, "place")


def _hash_of(task: TaskDir, *parts: str) -> str:
    """Return the name of a mark; a task has the same by whatever path one comes to it."""
    text = json.dumps([f"{os.path.realpath(task.path.parent)}/{task.id}", *parts])
    return str(blake2b(text.encode(), digest_size=16, person=b"agentctl").hexdigest())


def can_be_marked(folder: FilePath) -> bool:
    """Tell whether marks can be left in a folder, which is made."""
    try:
        make_folder(os.path.realpath(folder))
    except (OSError, StorageError):
        return False
    return os.access(folder, os.W_OK)
