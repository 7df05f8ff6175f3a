"""Which file system a folder lies on (Linux: proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re

from agentctl.adapters.files import AnyPath

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p", "lustre", "glusterfs", "gfs2", "ocfs2"}
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NETWORK_FUSE = ("fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone", "fuse.gcsfuse", "fuse.davfs")


def network_file_system(path: AnyPath, mounts: str = "/proc/self/mountinfo") -> str | None:
    """Return the kind of network file system that `path` lies on; None for a local one, or where that is unknown.

    The nearest mount above it counts, and of several at the same place the last.
    """
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as rows:
            for row in rows:
                left, _, right = row.partition(" - ")
                point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), left.split()[4])
                if len(point) >= len(best) and (real + "/").startswith(point.rstrip("/") + "/"):
                    best, kind = point, right.split()[0]
    except (OSError, IndexError):
        return None
    return kind if kind in _NETWORK or kind.startswith(_NETWORK_FUSE) else None
