"""Which file system a folder lies on (Linux: proc_pid_mountinfo(5))."""

from __future__ import annotations

import contextlib
import os
import re

from agentctl.adapters.files import AnyPath, storage_errors
from agentctl.lean import NamedTuple

#: The mounts of this process.
TABLE = "/proc/self/mountinfo"
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "lustre", "glusterfs", "gfs2", "ocfs2"}
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK_FUSE = ("fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone", "fuse.gcsfuse", "fuse.davfs")


class Mount(NamedTuple):
    """What a folder lies on."""

    #: In the kernel's words: ext4, nfs4, fuse.sshfs.
    kind: str
    #: What is mounted: a device, or a server and what it exports.
    source: str
    #: Which folder of the source; all of it: /
    part: str

    @property
    def is_network(self) -> bool:
        """Whether other machines may change it too."""
        return self.kind in _NETWORK or self.kind.startswith(_NETWORK_FUSE)

    @property
    def identity(self) -> str:
        """Names the file system, also after it was mounted again; the kernel's own number for it is then another."""
        return f"{self.kind} {self.source} {self.part}"


def mount_of(path: AnyPath, mounts: str | None = None) -> Mount | None:
    """Return what `path` lies on; None where this system does not tell.

    The nearest mount above it counts, and of several at the same place the last.
    """
    real = os.path.realpath(path)
    best, found = "", None
    with storage_errors(mounts or TABLE, "read"), contextlib.suppress(FileNotFoundError, IndexError, ValueError):
        with open(mounts or TABLE, encoding="utf-8", errors="surrogateescape") as rows:
            for row in rows:
                left, _, right = row.partition(" - ")
                fields, (kind, source) = left.split(), right.split()[:2]
                point = _plain(fields[4])
                if len(point) >= len(best) and (real + "/").startswith(point.rstrip("/") + "/"):
                    best, found = point, Mount(kind, _plain(source), _plain(fields[3]))
        return found
    return None


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), text)


def network_mount(path: AnyPath, mounts: str | None = None) -> Mount | None:
    """Return the network file system that `path` lies on; None for a local one, or where that is unknown."""
    found = mount_of(path, mounts)
    return found if found is not None and found.is_network else None
