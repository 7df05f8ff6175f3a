"""A probe of `doctor`, which an engine starts on a node as it would start a worker: it says what is true there.

First it exchanges random texts with the head, through the folder that workers would use, then it looks around. Whatever
happens, it ends: where nobody answers any more, it removes what it was asked by.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping

import agentctl
from agentctl.adapters.clock import monotonic
from agentctl.adapters.codemark import code_mark
from agentctl.adapters.files import read_json, read_known, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import ProbeDir
from agentctl.domain.text.numbers import finite
from agentctl.errors import AgentctlError, Damaged
from agentctl.lean import Any
from agentctl.worker_programs.on_node.filesystem_trial import problems_of

_LOOK_S = 0.05
_CONNECT_S = 5.0
#: What a worker on a node needs of agentctl and its libraries.
_POST = "agentctl.worker_programs.on_node.post"


def main(folder: str) -> int:
    """Answer the head, and write what is found here; return 1 if nobody has answered."""
    os.umask(0o077)
    probe = ProbeDir(folder)
    order = read_json(probe.order)
    if order is None:
        raise Damaged(f"{probe.order} is missing: is its folder on a file system that this node sees?")
    if not _exchanged(probe, finite(order.get("limitSeconds")) or 0.0):
        shutil.rmtree(probe.path, ignore_errors=True)
        return 1
    write_whole(probe.found, to_json(dict(_found(probe, order))), durable=False)
    return 0


def _exchanged(probe: ProbeDir, limit_s: float) -> bool:
    """Exchange random texts with the head; return whether it has answered."""
    nonce, began = os.urandom(8).hex(), monotonic()
    write_whole(probe.begun, to_json({**_about_here(), "nonce": nonce}), durable=False)
    while monotonic() - began < limit_s:
        with contextlib.suppress(OSError):
            os.listdir(probe.path)  # Over NFS this makes the names that were looked up before be looked up again.
        answer = read_known(probe.answer)
        if answer.get("to") == nonce:
            seen = {"to": answer.get("nonce"), "seconds": monotonic() - began, "time": time.time()}
            write_whole(probe.seen, to_json(seen), durable=False)
            return True
        time.sleep(_LOOK_S)
    return False


def _about_here() -> dict[str, Any]:
    return {
        "node": os.environ.get("SLURMD_NODENAME") or os.uname().nodename, "job": os.environ.get("SLURM_JOB_ID"),
        "python": sys.executable, "pythonVersion": platform.python_version(), "version": agentctl.__version__,
        "code": code_mark(),
    }  # fmt: skip


def _found(probe: ProbeDir, order: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what is found, by its name; what is looked at next is on disk, in case that it never comes back."""

    def tell(what: str) -> None:
        write_whole(probe.step, to_json({"step": what}), durable=False)

    yield "files", problems_of(probe.trial, tell)
    tell("the libraries of agentctl")
    yield "imports", _problem_of_imports()
    tell("the working folder")
    yield "folder", _folder(str(order.get("cwd")))
    yield "missing", [path for path in order.get("programs") or () if not os.access(path, os.X_OK)]
    tell("the network")
    yield "unreachable", [[name, why] for name in order.get("network") or () if (why := _why_not_reached(name))]


def _problem_of_imports() -> str:
    """Return why the post of a worker could not be imported here; "" if it could."""
    try:
        importlib.import_module(_POST)
    except Exception as error:  # noqa: BLE001 - whatever it is, it would keep every worker from starting
        return f"{type(error).__name__}: {error}"
    return ""


def _folder(path: str) -> list[int] | None:
    """Return what tells a folder from another one of its name; None if there is none here."""
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(FilePath(path) / "")
        return [found.st_ino, found.st_mtime_ns]
    return None


def _why_not_reached(name: object) -> str:
    host, _, port = str(name).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, ValueError, AgentctlError) as error:
        return str(getattr(error, "strerror", None) or error)
    return ""
