"""Removes a cluster when whoever made it closes the pipe or dies: `guard.py FOLDER`, with the pipe as its stdin.

A program of its own, because a run of tests may be killed; and by its path, with the standard library alone, because
it is started with each cluster.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: In a cluster's folder: the namespaces of its nodes, and the names of what it has made outside of the folder.
NAMESPACES = "namespaces"
OUTSIDE = "outside.json"
POLL_S = 0.01
LIMIT_S = 20.0


class Remains(Exception):
    """Something that cannot be removed."""


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return what identifies a namespace, or a file; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # The process has ended, or has become a zombie.
    return status.st_dev, status.st_ino


def members(*namespaces: Path) -> list[int]:
    """Return the processes in any of these UTS namespaces.

    A process can neither close it, as a file, nor clear it, as an environment; and a daemon has inherited it as well.
    """
    wanted = {identity(namespace) for namespace in namespaces} - {None}
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if identity(f"/proc/{pid}/ns/uts") in wanted]


def kill_members(*namespaces: Path) -> None:
    """Kill the processes in these namespaces, and all that they start meanwhile.

    Raises:
        Remains: Some do not die.
    """
    give_up_at = time.monotonic() + LIMIT_S
    while alive := members(*namespaces):
        if time.monotonic() > give_up_at:
            raise Remains(f"these processes do not die: {alive}")
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(POLL_S)


def remove(folder: Path) -> None:
    """Remove all that a cluster has outside of its folder: processes, mounts, networks, control groups.

    Raises:
        Remains: Something is still there.
    """
    outside = json.loads((folder / OUTSIDE).read_text(encoding="utf-8"))
    freezer = Path(outside["freezer"]) if outside["freezer"] else None
    if freezer is not None:
        _thaw(freezer)
    namespaces = sorted((folder / NAMESPACES).iterdir())
    kill_members(*namespaces)
    for mounted in filter(os.path.ismount, [*namespaces, *map(Path, outside["mounts"])]):
        _do("umount", str(mounted))
    for name in outside["netns"]:
        if Path("/run/netns", name).exists():
            _do("ip", "netns", "del", name)
    # The links of a namespace go some time after it: whoever takes their names next must not find them.
    for name in outside["links"]:
        if Path("/sys/class/net", name).exists():
            _do("ip", "link", "del", name, unless=Path("/sys/class/net", name))
    if freezer is not None:
        _remove_groups(freezer)


def _do(*argv: str, unless: Path | None = None) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0 and (unless is None or unless.exists()):
        raise Remains(f"{' '.join(argv)}: {done.stderr.strip()}")


def _thaw(freezer: Path) -> None:
    """Let frozen processes run: they would not die."""
    for file in freezer.glob("**/freezer.state"):
        try:
            file.write_text("THAWED", encoding="ascii")
        except OSError:
            pass  # Slurm has removed the group.


def _remove_groups(freezer: Path) -> None:
    give_up_at = time.monotonic() + LIMIT_S
    while freezer.exists():
        for parent, _, _ in os.walk(freezer, topdown=False):
            try:
                os.rmdir(parent)
            except OSError:
                pass  # Its last process is about to go.
        if time.monotonic() > give_up_at:
            raise Remains(f"the control group {freezer} has processes")
        time.sleep(POLL_S)


def main() -> int:
    """Wait for the end of the pipe, then remove the cluster."""
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    try:
        remove(folder)
    except (Remains, OSError, subprocess.SubprocessError) as error:
        print(f"of the cluster in {folder}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
