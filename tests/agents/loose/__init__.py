"""How loose a person can have made each agent program, for themselves: one module for each program.

A module of a program has

- `loosen(lab)`: writes the loosest settings that the program knows, of the person and of a project and its parent that
  they trust, in all their forms at once, and returns the variables that go with them. Beside these it denies something,
  as a careful person would: by a rule, and by a hook that guards.
- `KINDS`: those of `restrictions.KINDS` that the program has; `REFUSED`, if there are any: those among them that it
  refuses by itself, so that nobody is asked.
- `steps(lab, kind, target)`: the calls by which a model makes the file `target` by a kind of call, as the scenario
  `steps` plays them.
- `tool(kind)`: the tool of such a call, by the name that rules use.
- `OWN_KINDS`, if they are not `KINDS`: those that are done unasked where these settings decide.
- `GUARDS`: the names of the person's own denials; `guarded(lab, name, target)`: the steps that one of them forbids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, cast

from tests.agents.facts import VERSIONS
from tests.agents.lab import Lab

Steps = list[list[list[Any]]]


class LooseProgram(Protocol):
    """What a module of this package has."""

    loosen: Callable[[Lab], Mapping[str, str | None]]
    KINDS: Sequence[str]
    steps: Callable[[Lab, str, Path], Steps]
    tool: Callable[[str], str]
    GUARDS: Sequence[str]
    guarded: Callable[[Lab, str, Path], Steps]


def loose_programs() -> dict[str, LooseProgram]:
    """Return the modules by the names of the programs; some have no settings of a person's."""
    names = {program: f"{__name__}.{program.replace('-', '_')}" for program in VERSIONS}
    return {program: cast("LooseProgram", import_module(name)) for program, name in names.items() if find_spec(name)}
