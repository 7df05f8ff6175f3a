"""Whether a process is an agent's that a person has started by hand, as the processes above it show.

What a model asks for in the shell of a person's own session is not that person's wish. A command can unset the
variables by which such a shell is known, but not those of the shell that it is started from, and the agent program
above is called what it is called. All up to the first process count. One whose environment cannot be read, as that of
an SSH server or of another user, still has a name. Who has become a daemon has nothing above it any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from agentctl.adapters import descent, processes
from agentctl.adapters.descent import Ancestry
from agentctl.adapters.personal import own_programs_file
from agentctl.drivers.marks import SHIPPED, Marks, name_by_marks
from agentctl.lean import NamedTuple
from agentctl.operations.where.calling import FROM_AGENT, FROM_WORKER

#: The variables that a command of another host gets along, so that it is known there as well.
PASSED_ON = (*sorted({name for marks in SHIPPED.values() for name in marks.variables}), FROM_WORKER, FROM_AGENT)


class AgentAbove(NamedTuple):
    """An agent, or a shell of one, at or above a process."""

    pid: int
    #: The variable that it has, or what it is called.
    mark: str
    is_variable: bool

    def __str__(self) -> str:
        """Say which process it is, for whoever knows better."""
        shown = f"has {self.mark} in its environment" if self.is_variable else f"is {self.mark}"
        return f"process {self.pid} {shown}"


def agent_above() -> AgentAbove | None:
    """Return the agent that a person has started by hand and in which this process runs; None if there is none.

    Raises:
        UsageError: The file of a person's own programs is not valid.
    """
    me, known = os.getpid(), _known()
    own = _variable_in(os.environ, known)
    if own is not None:
        return AgentAbove(me, own, is_variable=True)
    looked = descent.judged(me, lambda line: (_agent_in(line, known),))
    if looked is None:
        return AgentAbove(me, "below processes that keep ending", is_variable=False)
    return looked[0]


def agent_in(line: Ancestry) -> AgentAbove | None:
    """Return the agent in a line of processes, from one of them to those above it; None if there is none.

    Raises:
        UsageError: The file of a person's own programs is not valid.
    """
    return _agent_in(line, _known())


def _known() -> list[Marks]:
    known = [*SHIPPED.values(), Marks((FROM_WORKER, FROM_AGENT))]
    if own_programs_file(os.environ).exists():
        from agentctl.drivers.registry import own_marks  # With the library of YAML; few people have added any.

        known += own_marks()
    return known


def _agent_in(line: Ancestry, known: list[Marks]) -> AgentAbove | None:
    names = tuple(name for marks in known for name in marks.names)
    for pid, _ in line:
        variable = _variable_in(_environment_of(pid), known)
        if variable is not None:
            return AgentAbove(pid, variable, is_variable=True)
        name = name_by_marks(*processes.names_of(pid), processes.command_line_of(pid), names)
        if name is not None:
            return AgentAbove(pid, name, is_variable=False)
    return None


def _variable_in(environ: Mapping[str, str], known: list[Marks]) -> str | None:
    return next((name for marks in known for name in marks.variables if environ.get(name)), None)


def _environment_of(pid: int) -> Mapping[str, str]:
    if processes.LINUX:
        return dict(_decoded(processes.environment_of(pid)))
    import psutil  # 20 ms.

    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def _decoded(environ: Mapping[bytes, bytes]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        yield os.fsdecode(name), os.fsdecode(value)
