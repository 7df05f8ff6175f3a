"""Keeps the environment of a queued worker: in memory, private, never in the task.

The folder is our own in /dev/shm; or `$XDG_RUNTIME_DIR/agentctl` if the user has chosen that or has no /dev/shm; else
in the temporary folder. If another user has made the usual folder, one of another name beside it is used. A blob has
the `NAME=value` entries, each with a NUL at its end, as execve(2) has them. Before them, as entries without a name, are
the digests of the specs that it vouches for: files in a task can be changed from within a sandbox, this cannot.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache

from agentctl.adapters.files import create_whole, make_folders, storage_errors, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import named_folder, state_folder
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, Damaged, Refused, StorageError

#: Begins the variables of agentctl itself: a worker gets its own and no others.
OWN_PREFIX = "AGENTCTL_"
#: They identify a worker to the commands that it calls: its root, its task and its name.
ROOT_VARIABLE, TASK_VARIABLE, INSTANCE_VARIABLE = "AGENTCTL_ROOT", "AGENTCTL_TASK", "AGENTCTL_INSTANCE"
#: The variables that decide where the environments wait.
FOLDER_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR", "XDG_STATE_HOME", "HOME")
#: A secret of each worker, by which its processes are recognised, and the worker's folder.
COOKIE, AGENT_DIR = "AGENTCTL_COOKIE", "AGENTCTL_AGENT_DIR"
#: The token of a worker without a waiting environment: only its own spawn can start it.
NO_ENVIRONMENT = "0"
#: Names the variables that are secrets of one agent's program.
SECRETS = "AGENTCTL_SECRETS"
#: What `git rev-parse --local-env-vars` lists, in every version: git sets these for its hooks and aliases. They win
#: against the working folder, and what they name may be gone before a worker begins. (The last: during a push.)
OF_A_REPOSITORY = frozenset(
    name.encode()
    for name in (
        "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_IMPLICIT_WORK_TREE", "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_QUARANTINE_PATH",
    )
)  # fmt: skip
#: More than execve(2) takes.
_MOST_BYTES = 16 << 20

_MEMORY = "/dev/shm"
#: The file with the name of a folder that replaces the usual one; and how often a race for it is retried.
_KEPT_NAME, _TRIES = "store", 5
_HINT = 'mkdir -m 700 "$HOME/.agentctl-run" && export XDG_RUNTIME_DIR="$HOME/.agentctl-run"'


def store_folder(environ: Mapping[str, str] = os.environ) -> FilePath:
    """Return the folder in memory, made and checked: it must be private to this user."""
    runtime = named_folder(environ, "XDG_RUNTIME_DIR")
    if runtime and _is_chosen(runtime) and runtime.is_dir() and os.access(runtime, os.W_OK):
        folder = runtime / "agentctl"
        if _is_made(folder):
            return folder
        raise Refused(f"{folder} is not private to you", hint="remove it, or set XDG_RUNTIME_DIR, then try again")
    memory = FilePath(_MEMORY) if _takes_files(_MEMORY) else None
    base = memory or named_folder(environ, "TMPDIR") or FilePath("/tmp")
    folder = base / f"agentctl-{os.getuid()}"
    return folder if _is_made(folder) else _made_beside(folder, environ)


def _is_chosen(runtime: str) -> bool:
    """Return whether `$XDG_RUNTIME_DIR` is used: the user chose another than a login's, or has no /dev/shm.

    A sandbox that shows the disk also shows the folder of a login (/run/user/UID), but it has a /dev of its own.
    """
    return os.path.normpath(runtime) != f"/run/user/{os.getuid()}" or not _takes_files(_MEMORY)


def _takes_files(folder: str) -> bool:
    """Return whether a folder is there and can be written, or has our own folder already."""
    return os.path.isdir(folder) and (os.access(folder, os.W_OK) or os.path.isdir(f"{folder}/agentctl-{os.getuid()}"))


def _is_made(folder: FilePath) -> bool:
    """Make a folder, unless it exists; return whether it is private to this user."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _made_beside(taken: FilePath, environ: Mapping[str, str]) -> FilePath:
    """Return a folder with a name that nobody could foresee, since another user has made the usual one.

    The name is kept among a person's own files, so that later commands find it: the first command that keeps one wins.
    """
    kept = state_folder(environ) / _KEPT_NAME
    for _ in range(_TRIES):
        is_kept = kept.exists()
        name = _name_in(kept, taken) if is_kept else ""
        suffix = name.removeprefix(f"{taken.name}-")
        if suffix != name and is_name(suffix) and _is_made(taken.parent / name):
            return taken.parent / name
        fresh = f"{taken.name}-{os.urandom(8).hex()}\n".encode()
        try:
            make_folders(kept.parent)
            write_whole(kept, fresh) if is_kept else create_whole(kept, fresh)
        except (OSError, StorageError) as error:
            raise _unkept(taken, error) from error
    raise Refused(f"{taken} is not private to you, and neither is any other", hint=_HINT)


def _name_in(kept: FilePath, taken: FilePath) -> str:
    with storage_errors(kept, "read"):
        try:
            return os.fsdecode(kept.read_bytes()).strip()
        except Damaged as error:
            raise _unkept(taken, error) from error


def _unkept(taken: FilePath, error: Exception) -> Refused:
    why = error.message if isinstance(error, AgentctlError) else str(error)
    return Refused(f"{taken} is not private to you, and no other folder can be kept: {why}", hint=_HINT)


def switch_of(folder: FilePath, origin: str) -> FilePath:
    """Return the file beside the environments that exists while a person is to be told of a tree of tasks.

    Args:
        origin: The random text of its root task; another task at the same path has another one.
    """
    return folder / f"notify-{origin if origin.isalnum() else ''}.json"


def pack(environ: Mapping[bytes, bytes]) -> bytes:
    """Return the blob of an environment."""
    return b"".join(name + b"=" + value + b"\0" for name, value in environ.items() if name)


def with_orders(blob: bytes, digests: Iterable[str]) -> bytes:
    """Return a blob that vouches for specs, by their digests (`spec.digest_of`)."""
    return b"".join(b"=%s\0" % digest.encode() for digest in digests) + blob


def vouches_for(blob: bytes, digest: str) -> bool:
    """Return whether a blob vouches for the spec with this digest; the same text in a variable does not count."""
    return b"\0=%s\0" % digest.encode() in b"\0" + blob


def unpack(blob: bytes) -> dict[bytes, bytes]:
    """Return the environment in a blob."""
    return dict(_unpacked(blob))


@lru_cache(maxsize=1)  # The workers of a shim mostly have the same one.
def _unpacked(blob: bytes) -> Mapping[bytes, bytes]:
    found = {}
    for entry in blob.split(b"\0"):
        name, mark, value = entry.partition(b"=")
        if mark and name:
            found[name] = value
    return found


def for_worker(environ: Mapping[bytes, bytes], extra: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return the environment that a worker inherits, with what `--env` adds.

    It has neither agentctl's own variables, nor the secrets of the program that it is started by, nor what names the
    repository of a git hook that it may be started from.
    """
    own, dropped = OWN_PREFIX.encode(), {*environ.get(SECRETS.encode(), b"").split(b","), *OF_A_REPOSITORY}
    kept = {name: value for name, value in environ.items() if not name.startswith(own) and name not in dropped}
    kept.update({os.fsencode(name): os.fsencode(value) for name, value in extra.items()})
    return kept


def put(blob: bytes, folder: FilePath | None = None) -> str:
    """Keep a blob in memory; return the token that names it.

    A shim, whose own environment is empty, has the folder from its order.
    """
    token = os.urandom(8).hex()
    try:
        write_whole((folder or store_folder()) / token, blob, durable=False)
    except StorageError as error:  # No other root helps against memory that is full or takes no files.
        raise StorageError(error.message, hint=_HINT) from error
    return token


def waits(folder: FilePath, token: str) -> bool:
    """Return whether `get` would find an environment; what a ticket names may be something else."""
    path = folder / token
    with storage_errors(path, "look at"):
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
    is_blob = stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES
    return token != NO_ENVIRONMENT and is_blob and os.access(path, os.R_OK)


def get(folder: FilePath, token: str) -> bytes | None:
    """Return a blob; None if it is gone (a reboot, a logout)."""
    with storage_errors(folder / token, "read"):
        try:
            return (folder / token).read_bytes(_MOST_BYTES)
        except (FileNotFoundError, NotADirectoryError, Damaged):
            return None


def drop(folder: FilePath, token: str) -> None:
    """Delete a blob."""
    with contextlib.suppress(OSError):
        os.unlink(folder / token)
