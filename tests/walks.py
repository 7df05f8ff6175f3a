"""Traces which rooms of the code a command passes through: `python -m tests.walks FILE ARGS...` runs `agentctl ARGS`.

FILE gets the steps as JSON, each as a list [from, to, function]. A step is a call from a function of one module into
another module; `adapters/`, `domain/` and what every layer may use are omitted. `docs/architecture.md` describes five
walks, and decision 25 counts their steps.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = f"{REPOSITORY / 'agentctl'}/"
_LEFT_OUT = ("adapters/", "domain/", "supervision/failpoints.py")


class Step(NamedTuple):
    """A call from a function of one module into another module."""

    caller: str
    module: str
    function: str

    @property
    def room(self) -> str:
        """The folder below `agentctl/` that the call enters."""
        return room_of(self.module)

    @property
    def is_up(self) -> bool:
        """Whether the called room is above the caller's."""
        order = floors()
        return order[self.room] > order[room_of(self.caller)]


def room_of(module: str) -> str:
    """Return the room of a module: its folder, but none deeper than `interfaces/commands/`.

    >>> room_of("shim/loop.py"), room_of("interfaces/commands/show/list.py")
    ('shim/', 'interfaces/commands/')
    """
    *folders, _ = module.split("/")
    return f"{'/'.join(folders[:2])}/"


@cache
def floors() -> dict[str, int]:
    """Return the level of each room, according to the layers that import-linter enforces."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [one for one in settings["contracts"] if one["type"] == "layers"]
    inside = {one["containers"][0]: one["layers"] for one in layers if "containers" in one}
    (whole,) = (one["layers"] for one in layers if "containers" not in one)
    groups: list[list[str]] = []
    for layer in whole:
        for name in layer.split(" | "):
            groups += [[f"{name}.{part}" for part in wing.split(" | ")] for wing in inside.get(name, [])]
        groups.append(layer.split(" | "))
    return {
        f"{name.removeprefix('agentctl.').replace('.', '/')}/": floor
        for floor, group in enumerate(reversed(groups))
        for name in group
    }


def _module_of(frame: FrameType) -> str | None:
    """Return the module of a frame by its path below `agentctl/`; None for one that is omitted."""
    path = frame.f_code.co_filename
    module = path.removeprefix(PACKAGE)
    is_of_all_layers = "/" not in module
    return None if module == path or is_of_all_layers or module.startswith(_LEFT_OUT) else module


def _callers(frame: FrameType) -> Iterator[str]:
    above = frame.f_back
    while above is not None:
        module = _module_of(above)
        if module is not None:
            yield module
        above = above.f_back


def trace(argv: list[str]) -> list[Step]:
    """Run a command in this process, and return its steps."""
    from agentctl.interfaces.cli.app import main

    steps: list[Step] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>" and (module := _module_of(frame)) is not None:
            caller = next(_callers(frame), module)
            if caller != module:
                steps.append(Step(caller, module, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        main(argv)
    finally:
        sys.setprofile(None)
    return steps


if __name__ == "__main__":
    found = trace(sys.argv[2:])
    Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")
    print(f"{len(found)} steps, {len({step.room for step in found})} rooms", file=sys.stderr)
