"""Lists the drivers, and finds out which of their programs are installed, and in which version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

from agentctl.adapters.searchpath import absolute_entries
from agentctl.drivers.dialogue import Driver
from agentctl.errors import NotFound, Refused

#: The driver of agents from a model alone.
PLAIN = "llm"
#: The drivers of agent programs, in order of preference: the first one that is installed is taken.
AGENT_DRIVERS = ("claude", "codex", PLAIN)
COMMAND = "command"
_VERSION_S = 20


def load(name: str) -> Driver:
    """Return a driver; only its own module is imported.

    Raises:
        NotFound: There is no such driver.
    """
    if name not in (*AGENT_DRIVERS, COMMAND):
        raise NotFound(f"there is no driver {name!r}", hint=f"known: {', '.join((*AGENT_DRIVERS, COMMAND))}")
    driver: Driver = import_module(f"agentctl.drivers.{name}").DRIVER
    return driver


def program_of(driver: Driver, path: str | None = None) -> str | None:
    """Return the path of a driver's program; None if it is not installed."""
    if driver.is_ours:
        return sys.executable
    import shutil  # Not needed to run a program that was chosen already.

    looked_in = absolute_entries(os.environ.get("PATH", os.defpath) if path is None else path)
    return shutil.which(driver.program, path=looked_in) if driver.program else None


def choose(wanted: str | None, order: Sequence[str], path: str | None = None) -> Driver:
    """Return the wanted driver, else the first of `order` whose program is installed.

    Raises:
        NotFound: There is no such driver.
        Refused: None of the programs is installed.
    """
    if wanted is not None:
        return load(wanted)
    drivers = [load(name) for name in order]
    for driver in drivers:
        if program_of(driver, path):
            return driver
    names = ", ".join(driver.program or driver.name for driver in drivers)
    raise Refused(
        f"no agent program is installed ({names})", hint=drivers[0].install if drivers else "name one with --driver"
    )


def version_of(driver: Driver, program: str) -> str | None:
    """Return the version that a program reports; None if it reports none in time."""
    try:
        done = subprocess.run(
            [program, *driver.version_argv],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_S,
            env={**os.environ, "NO_COLOR": "1"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"\d+\.\d+(?:\.\d+)?", done.stdout or done.stderr)
    return found.group().decode() if found else None
