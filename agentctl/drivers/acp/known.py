"""The programs that are known to speak ACP: those that ship, and a person's own in ~/.config/agentctl/acp.yaml."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agentctl.adapters.opening import read_bytes
from agentctl.adapters.personal import is_there, own_programs_file
from agentctl.domain.agent.permissions import BadValue
from agentctl.drivers.acp.program import AcpProgram, check_driver_name, program_from

_SHIPPED = Path(__file__).with_name("programs.yaml")
_MOST_BYTES = 1 << 20


def known_programs(taken: Sequence[str]) -> dict[str, AcpProgram]:
    """Return the programs by the name of their driver; a person's own row replaces a shipped one of its name.

    Args:
        taken: The names of other drivers.

    Raises:
        UsageError: The person's file is not valid (it names file and line), or others can write it.
    """
    return {**_rows_in(_SHIPPED, tuple(taken)), **own_programs(taken)}


def own_programs(taken: Sequence[str]) -> dict[str, AcpProgram]:
    """Return the programs that a person has added, as `known_programs` does."""
    own = Path(own_programs_file(os.environ))
    return _rows_in(own, tuple(taken)) if is_there(own, "which programs are run") else {}


@lru_cache(maxsize=4)
def _rows_in(file: Path, taken: tuple[str, ...]) -> dict[str, AcpProgram]:
    from agentctl.adapters.yamldoc import parse_yaml  # Takes as long as all the rest of a short command.

    document = parse_yaml(file, read_bytes(file, _MOST_BYTES))
    try:
        return {check_driver_name(name, taken, (name,)): _row(name, row) for name, row in document.value.items()}
    except BadValue as problem:
        raise document.error(problem.keys, str(problem)) from problem


def _row(name: str, value: object) -> AcpProgram:
    try:
        row = program_from(value, (name,))
    except BadValue as problem:
        raise BadValue(problem.keys, f"{name}: {problem}") from problem
    if not row.program:
        raise BadValue((name,), f"{name} names no program: it needs the key program, a name to look up in PATH")
    return row
