"""At stake: `docs/architecture.md` names every room that a command passes through, and none calls a higher one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.steps import new_task, spawn
from tests.support import PROGRAM, REPOSITORY, run, worker
from tests.walks import Step, floors

#: What a command may call of the surface that carries it out, which has handed itself down for that.
OF_A_SURFACE = {"take", "is_terminal", "note", "typed", "show"}
WALKS = ("wait-any", "spawn", "cancel", "ask and answer", "tree")
TEXT = (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8")


def walk(name: str) -> str:
    """Return the page's section about a walk."""
    _, _, rest = TEXT.partition("\n## Six walks\n")
    found = re.search(rf"^\*\*[^*]*\b{name}\*\*.*?(?=^\*\*|^## )", rest, flags=re.DOTALL | re.MULTILINE)
    assert found, f"no walk {name!r}"
    return found[0]


def steps_of(folder: Path, *argv: str) -> list[Step]:
    file = folder / "steps.json"
    command = [sys.executable, "-m", "tests.walks", str(file), *argv]
    subprocess.run(command, cwd=REPOSITORY, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=50)
    return [Step(*one) for one in json.loads(file.read_bytes())]


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_passes_the_rooms_that_the_page_names(name: str, root: Path, tmp_path: Path) -> None:
    new_task()
    steps = steps_of(tmp_path, *_prepared(name))
    named = set(re.findall(r"`((?:\w+/)+)`", walk(name)))
    entered = {step.room for step in steps}
    assert len(entered) > 2
    assert entered <= named, "the page names every room that is entered"
    assert named <= floors().keys() | {"adapters/", "domain/activity/"}, "and no others"
    upwards = {step.function for step in steps if step.is_up}
    assert upwards - OF_A_SURFACE == set(), "a lower room calls a function of a higher one"


def _prepared(name: str) -> list[str]:
    """Prepare a task so that a walk's command does its work, and return the command."""
    match name:
        case "spawn":
            return ["spawn", "--", "true"]
        case "cancel":
            spawn(worker("sleeps", 60), name="a")
            return ["cancel", "a"]
        case "ask and answer":
            spawn([*PROGRAM, "interact", "ask", "--kind", "confirm", "Go?"], name="a")
            run("wait-any", "a")
            return ["interact", "respond", "a", "--id", "q1", "yes"]
        case _:
            spawn(["true"], name="a")
            run("wait-all")
            return [name]
