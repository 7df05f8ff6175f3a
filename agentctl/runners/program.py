"""The program that every launch is: agentctl's own, at its path here, run by the interpreter that the nodes have."""

from __future__ import annotations

import os
import sys

import agentctl
from agentctl.adapters.paths import FilePath
from agentctl.supervision.life.strangers import POST as POST  # noqa: PLC0414 - it is found by this, too

SCRIPT = str(FilePath(os.path.realpath(agentctl.__file__)).parent / "worker_programs/on_node/__main__.py")
#: What it is to be: the post of a worker, or a probe.
PROBE = "--probe"
#: What it is to be on the machine that starts it: a trial of a folder, or the second process of one.
TRIAL, SECOND = "--trial", "--second"


def argv_of(what: str, folder: str, python: str | None = None) -> list[str]:
    """Return the command line; `python` is the interpreter, by default the one that runs this."""
    return [python or sys.executable, "-I", SCRIPT, what, folder]
