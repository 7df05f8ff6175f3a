"""Where the environment of a queued worker waits: in memory, private, never in the task.

A folder of our own in /dev/shm; `$XDG_RUNTIME_DIR/agentctl` where a person has chosen that, or has no /dev/shm; else
the temporary folder. Where somebody else has made the usual one, one of another name beside it. A blob is the
`NAME=value` entries with a NUL behind each, as execve(2) has them; before them, as entries without a name, the digests
of the orders that may be carried out with it: what lies in a task can be changed from within a sandbox, this cannot.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from functools import lru_cache

from agentctl.adapters.files import create_whole, make_folder, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.domain.names import is_name
from agentctl.errors import Refused, StorageError

#: Variables of agentctl itself: a worker gets its own and no others.
OWN_PREFIX = "AGENTCTL_"
#: Who a worker is, for the commands that it calls: its root, its task and its name.
ROOT_VARIABLE, TASK_VARIABLE, INSTANCE_VARIABLE = "AGENTCTL_ROOT", "AGENTCTL_TASK", "AGENTCTL_INSTANCE"
#: What decides where the environments wait.
FOLDER_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR", "XDG_STATE_HOME", "HOME")
#: A secret of each worker, by which its processes are known, and its folder.
COOKIE, AGENT_DIR = "AGENTCTL_COOKIE", "AGENTCTL_AGENT_DIR"
#: The token of a worker that has none waiting: it is being started at once.
NO_ENVIRONMENT = "0"
#: More than execve(2) takes.
_MOST_BYTES = 16 << 20

_MEMORY = "/dev/shm"
#: The name of a folder that stands in for the usual one; and how often a race for it is tried.
_KEPT_NAME, _TRIES = "store", 5
_HINT = 'mkdir -m 700 "$HOME/.agentctl-run" && export XDG_RUNTIME_DIR="$HOME/.agentctl-run"'


def store_folder(environ: Mapping[str, str] = os.environ) -> FilePath:
    """Return the folder in memory, made and checked: it must be ours alone."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_chosen(runtime) and os.path.isdir(runtime) and os.access(runtime, os.W_OK):
        folder = FilePath(runtime) / "agentctl"
        if _is_made(folder):
            return folder
        raise Refused(f"{folder} is not private to you", hint="remove it, or set XDG_RUNTIME_DIR, then try again")
    base = FilePath(_MEMORY if os.path.isdir(_MEMORY) else environ.get("TMPDIR", "/tmp"))
    folder = base / f"agentctl-{os.getuid()}"
    return folder if _is_made(folder) else _made_beside(folder, environ)


def _is_chosen(runtime: str) -> bool:
    """Tell whether memory is to be had elsewhere only by the person's own choice.

    A sandbox that shows the disk shows what a login gives (/run/user/UID), too; its /dev is its own.
    """
    return os.path.normpath(runtime) != f"/run/user/{os.getuid()}" or not os.path.isdir(_MEMORY)


def _is_made(folder: FilePath) -> bool:
    """Make a folder, or find it; tell whether it is ours alone."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _made_beside(taken: FilePath, environ: Mapping[str, str]) -> FilePath:
    """Return a folder under a name that nobody could foresee, since somebody else has made the usual one.

    The name is kept among a person's own files, so that later commands find the folder: the first that keeps one wins.
    """
    from agentctl.adapters.personal import state_folder

    kept = state_folder(environ) / _KEPT_NAME
    try:
        make_folder(kept.parent)
        for _ in range(_TRIES):
            is_kept = kept.exists()
            name = os.fsdecode(kept.read_bytes()).strip() if is_kept else ""
            suffix = name.removeprefix(f"{taken.name}-")
            if suffix != name and is_name(suffix) and _is_made(taken.parent / name):
                return taken.parent / name
            fresh = f"{taken.name}-{os.urandom(8).hex()}\n".encode()
            write_whole(kept, fresh) if is_kept else create_whole(kept, fresh)
    except (OSError, StorageError) as error:
        why = error.message if isinstance(error, StorageError) else str(error)
        raise Refused(f"{taken} is not private to you, and no other can be kept: {why}", hint=_HINT) from error
    raise Refused(f"{taken} is not private to you, nor is any other", hint=_HINT)


def pack(environ: Mapping[bytes, bytes]) -> bytes:
    """Return the blob of an environment."""
    return b"".join(name + b"=" + value + b"\0" for name, value in environ.items() if name)


def with_orders(blob: bytes, digests: Iterable[str]) -> bytes:
    """Return a blob that vouches for orders, by their digests (`spec.digest_of`)."""
    return b"".join(b"=%s\0" % digest.encode() for digest in digests) + blob


def vouches_for(blob: bytes, digest: str) -> bool:
    """Tell whether a blob came with this order; a value of a variable that reads so does not count."""
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
    """Return the environment that a worker inherits: without anything of agentctl's, with what `--env` adds."""
    own = OWN_PREFIX.encode()
    kept = {name: value for name, value in environ.items() if not name.startswith(own)}
    kept.update({os.fsencode(name): os.fsencode(value) for name, value in extra.items()})
    return kept


def put(blob: bytes, folder: FilePath | None = None) -> str:
    """Keep a blob in memory; return the token that names it.

    A shim, whose own environment is empty, was told the folder.
    """
    token = os.urandom(8).hex()
    write_whole((folder or store_folder()) / token, blob, durable=False)
    return token


def waits(folder: FilePath, token: str) -> bool:
    """Tell whether `get` would have an environment; what a ticket names may also be nothing that could be one."""
    path = folder / token
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_blob = stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES
    return token != NO_ENVIRONMENT and is_blob and os.access(path, os.R_OK)


def get(folder: FilePath, token: str) -> bytes | None:
    """Return a blob; None where it is gone (a reboot, a logout)."""
    with contextlib.suppress(OSError):
        return (folder / token).read_bytes(_MOST_BYTES)
    return None


def drop(folder: FilePath, token: str) -> None:
    """Forget a blob."""
    with contextlib.suppress(OSError):
        os.unlink(folder / token)
