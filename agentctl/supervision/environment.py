"""Where the environment of a queued worker waits: in memory, private, never in the task.

`$XDG_RUNTIME_DIR/agentctl`, else a folder of our own in /dev/shm, else in the temporary folder. A blob is the
`NAME=value` entries with a NUL behind each, as execve(2) has them.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from functools import lru_cache

from agentctl.adapters.files import write_whole
from agentctl.adapters.paths import FilePath
from agentctl.errors import Refused

#: Variables of agentctl itself: a worker gets its own and no others.
OWN_PREFIX = "AGENTCTL_"
#: What decides where the environments wait.
FOLDER_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR")
#: A secret of each worker, by which its processes are known, and its folder.
COOKIE, AGENT_DIR = "AGENTCTL_COOKIE", "AGENTCTL_AGENT_DIR"


def store_folder(environ: Mapping[str, str] = os.environ) -> FilePath:
    """Return the folder in memory, made and checked: it must be ours alone."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime) and os.access(runtime, os.W_OK):
        folder = FilePath(runtime) / "agentctl"
    else:
        base = "/dev/shm" if os.path.isdir("/dev/shm") else environ.get("TMPDIR", "/tmp")
        folder = FilePath(base) / f"agentctl-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Refused(f"{folder} is not private to you", hint="remove it, or set XDG_RUNTIME_DIR, then try again")
    return folder


def pack(environ: Mapping[bytes, bytes]) -> bytes:
    """Return the blob of an environment."""
    return b"".join(name + b"=" + value + b"\0" for name, value in environ.items())


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


def put(blob: bytes) -> str:
    """Keep a blob in memory; return the token that names it."""
    token = os.urandom(8).hex()
    write_whole(store_folder() / token, blob, durable=False)
    return token


def get(folder: FilePath, token: str) -> bytes | None:
    """Return a blob; None where it is gone (a reboot, a logout)."""
    with contextlib.suppress(OSError):
        return (folder / token).read_bytes()
    return None


def drop(folder: FilePath, token: str) -> None:
    """Forget a blob."""
    with contextlib.suppress(OSError):
        os.unlink(folder / token)
