"""What this person has made or vouched for, by marks among their own files that nobody else can leave there.

A cloned repository may bring a task directory, and a worker may write files of its task. Nothing in them counts until
a person has vouched for it by a mark. A mark is an empty file in `~/.config/agentctl/own/`, which no clone reaches and
sandboxes keep closed. Its name is the hash of what is vouched for: a task at its path, the allowing rules in its
`task.yaml`, or an answer to a request for permission. Each hash includes the random text in the task's `origin`, so
another task at the path of a removed one has no marks. One more file, named after the path alone, holds that text:
whatever a worker does to `origin`, what runs there can be stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from agentctl.adapters.files import file_text, make_folders, storage_errors, write_whole
from agentctl.adapters.opening import open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import config_folder, is_ones_own
from agentctl.adapters.taskdir import TaskDir, names_in
from agentctl.errors import StorageError

try:
    from _blake2 import blake2b  # `hashlib` brings OpenSSL along: 2 ms for each command.
except ImportError:
    from hashlib import blake2b

_NONCE_BYTES, _MOST_NOTED, _MOST_MARKS = 16, 100, 100_000


def marks_folder(environ: Mapping[str, str]) -> FilePath:
    """Return where a person's marks are."""
    return config_folder(environ) / "own"


def new_nonce() -> str:
    """Return a new random text for a task, since others may know the one that came with it."""
    return os.urandom(_NONCE_BYTES).hex()


def put_nonce(task: TaskDir, nonce: str, *, durable: bool = True) -> None:
    """Write the random text of a task, in the place of anything else there."""
    write_whole(task.origin, nonce.encode() + b"\n", durable=durable)


def note_place(folder: FilePath, task: TaskDir, nonce: str) -> None:
    """Note that a task at this path is this person's, and its random text.

    Like a mark, this is not flushed: if a power cut loses it, the person has to run `trust` once.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    make_folders(os.path.realpath(folder))
    text = nonce.encode() + b"\n" + os.fsencode(_place_of(task)) + b"\n"
    write_whole(folder / _name_of_place(task), text, durable=False)


def noted_at(folder: FilePath, task: TaskDir) -> str:
    """Return the random text of this person's latest task at a task's path; empty where there was none.

    Raises:
        StorageError: It cannot be read.
    """
    path = folder / _name_of_place(task)
    return _note_in(path)[0] if _is_ones_own(folder, path) else ""


def _note_in(path: FilePath) -> tuple[str, str]:
    """Return the random text that a note holds, and the path that it is about; both empty in a mark."""
    nonce, _, place = file_text(path, "latin-1").partition("\n")
    return nonce.strip()[:_MOST_NOTED], os.fsdecode(place.rstrip("\n").encode("latin-1"))


def places_below(folder: FilePath, tasks: FilePath) -> dict[str, str]:
    """Return the tasks that are noted as this person's in a folder of tasks: id -> random text.

    Notes that earlier versions have left do not say which task they are about.

    Raises:
        StorageError: One cannot be read.
    """
    found, above = {}, os.path.realpath(tasks)
    for name in names_in(folder, _MOST_MARKS):
        if _is_ones_own(folder, folder / name):
            nonce, place = _note_in(folder / name)
            if os.path.dirname(place) == above:
                found[os.path.basename(place)] = nonce
    return found


def forget_place(folder: FilePath, task: TaskDir) -> None:
    """Forget that a task at this path is this person's.

    Raises:
        StorageError: That is not possible.
    """
    _remove(folder / _name_of_place(task))


def mark(folder: FilePath, task: TaskDir, what: str, *parts: str) -> None:
    """Leave a mark: the person vouches for this.

    Raises:
        StorageError, OSError: The folder cannot be written.
    """
    make_folders(os.path.realpath(folder))
    fd = open_plain(folder / _name_of(task, task.nonce(), what, parts), os.O_WRONLY | os.O_CREAT)
    os.close(fd)


def is_marked(folder: FilePath, task: TaskDir, what: str, *parts: str) -> bool:
    """Return whether this mark exists, and nobody else could have left it.

    Raises:
        StorageError: That cannot be known.
    """
    nonce = task.nonce()
    return bool(nonce) and is_marked_as(folder, task, nonce, what, *parts)


def is_marked_as(folder: FilePath, task: TaskDir, nonce: str, what: str, *parts: str) -> bool:
    """Return the same for a task that had this random text, which may be in another place by now.

    Raises:
        StorageError: That cannot be known.
    """
    return _is_ones_own(folder, folder / _name_of(task, nonce, what, parts))


def _is_ones_own(folder: FilePath, path: FilePath) -> bool:
    with storage_errors(path, "look at"):
        try:
            found, above = os.lstat(path), os.stat(folder)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False  # A folder that is closed to this process (a sandbox's, another user's) never took its marks.
    return found.st_uid == os.geteuid() and is_ones_own(above)


def unmark(folder: FilePath, task: TaskDir, what: str, *parts: str) -> bool:
    """Take a mark back; return whether it was there.

    Raises:
        StorageError: That is not possible.
    """
    return unmark_as(folder, task, task.nonce(), what, *parts)


def unmark_as(folder: FilePath, task: TaskDir, nonce: str, what: str, *parts: str) -> bool:
    """Take a mark back that was left for a task with this random text; return whether it was there.

    Raises:
        StorageError: That is not possible.
    """
    return _remove(folder / _name_of(task, nonce, what, parts))


def _remove(path: FilePath) -> bool:
    with storage_errors(path, "remove"):
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def _name_of(task: TaskDir, nonce: str, what: str, parts: tuple[str, ...]) -> str:
    return _hash_of(task, nonce, what, *parts)


def _name_of_place(task: TaskDir) -> str:
    return _hash_of(task, "place")


def _hash_of(task: TaskDir, *parts: str) -> str:
    """Return the name of a mark: the same by whatever path the task is reached."""
    text = json.dumps([_place_of(task), *parts])
    return str(blake2b(text.encode(), digest_size=16, person=b"agentctl").hexdigest())


def _place_of(task: TaskDir) -> str:
    return f"{os.path.realpath(task.path.parent)}/{task.id}"


def can_be_marked(folder: FilePath) -> bool:
    """Return whether marks can be left in a folder; make it if it is missing."""
    try:
        make_folders(os.path.realpath(folder))
    except (OSError, StorageError):
        return False
    return os.access(folder, os.W_OK)
