"""The session of an agent outside agentctl: how a person opens it by hand, and which program holds it now."""

from __future__ import annotations

import os
import shlex

from agentctl.adapters.lockholders import lock_holders
from agentctl.adapters.searchpath import program_at
from agentctl.adapters.taskdir import WorkerDir
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import order_from
from agentctl.drivers.registry import driver_for
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.show.evidence import shown
from agentctl.operations.show.further_runs import session_of
from agentctl.supervision.worker.spec import order_of, read_order


class HeldSession(NamedTuple):
    """A session that only one program may write, and another one holds."""

    said: str
    #: The command that frees it; where nobody can be named, what to look for.
    way: str


def opening_of(worker: WorkerDir) -> str | None:
    """Return the line that opens the session of an agent by hand, from here; None where none is known.

    Some programs find a session only in the folder in which it was begun. The program of a session can be another one
    than that of its agent, such as Claude Code's within an adapter: it may not be installed.
    """
    driver, session = _driver_of(worker), _session_of(worker)
    if driver is None or driver.by_hand is None or not session:
        return None
    argv = driver.by_hand(session)
    if program_at(argv[0]) is None:
        return None
    folder = str(order_of(worker).get("cwd") or "")
    has_to_go = os.path.isdir(folder) and not _is_here(folder)
    return f"cd {shlex.quote(folder)} && {shlex.join(argv)}" if has_to_go else shlex.join(argv)


def _is_here(folder: str) -> bool:
    try:
        return os.path.samefile(folder, ".")
    except OSError:  # The working folder was removed.
        return False


def held_by(worker: WorkerDir) -> HeldSession | None:
    """Return what holds the session of an ended agent; None if nothing does, or its program has no such lock."""
    driver, session = _driver_of(worker), _session_of(worker)
    if driver is None or driver.writer_lock is None or not session or not worker.has_ended:
        return None
    holders = lock_holders(driver.writer_lock(os.environ, session))
    if holders is None:
        return None
    what = f"its session {session} is open in another {driver.name}, and only one may write it"
    if not holders:
        return HeldSession(f"{what}; which process that is cannot be seen from here", f"close that {driver.name}")
    named = ", ".join(f"pid {one.pid} ({shown(one.command)})" for one in holders)
    return HeldSession(f"{what}: {named}", f"kill {' '.join(str(one.pid) for one in holders)}")


def _driver_of(worker: WorkerDir) -> Driver | None:
    try:
        order = read_order(worker)
        return None if order is None else driver_for(order_from(order))
    except AgentctlError:
        return None


def _session_of(worker: WorkerDir) -> str:
    """Return the session that a run has, or was to continue and could not open."""
    return session_of(worker) or str(order_of(worker).get("resume") or "")
