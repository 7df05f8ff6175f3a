"""At stake: the tests of hostile clones pass because nothing happened, and not because they cannot see it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentctl.operations.where.ownership import stable_text
from tests.security.clones.commands import Command
from tests.security.clones.guarded import Bounds, Ended, breaches, run, told_by
from tests.security.clones.worlds import ALLOWING, TASK, World

NOTHING = Ended(code=0, wall_s=0.1, cpu_s=0.1, memory_kib=0, out="", err="", starts=[])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A clone without anything odd, in which the person has a task of their own."""
    with subprocess.Popen(["sleep", "100000"], start_new_session=True) as canary:
        made = World(tmp_path / "w", canary)
        assert run(made, Command(("new", "Mine", "--id", "mine")), Bounds()).code == 0
        made.settle()
        yield made
        canary.kill()


def marks(world: World, told: str) -> str:
    """Return the line of shell that leaves a mark for the clone's task."""
    code = (
        "from agentctl.adapters import origin; from agentctl.adapters.taskdir import TaskDir;"
        f" folder = origin.marks_folder({{'HOME': {str(world.home)!r}}});"
        f" origin.mark(folder, TaskDir({str(world.clone / TASK)!r}), {told})"
    )
    return shlex.join([sys.executable, "-c", code])


HARM: dict[str, tuple[Callable[[World], str], str]] = {
    "runs": (lambda world: f"echo x >> {world.pwned}", "ran a program of the clone"),
    "writes": (lambda world: f"echo x >> {world.outside}/key", "changed outside/key"),
    "makes": (lambda world: f"echo x > {world.outside}/appeared", "made outside/appeared"),
    "removes": (lambda world: f"rm {world.outside}/folder/inner", "removed outside/folder/inner"),
    "trusts": (lambda world: f"echo '{{}}' > {world.home}/.config/agentctl/trust.json", "trust.json"),
    "takes over": (lambda world: marks(world, "'task'"), "the person has given their word for"),
    "vouches": (
        lambda world: marks(world, f"'rules', {stable_text(ALLOWING)!r}"),
        "the person has given their word for",
    ),
    "adds": (lambda world: f"echo x > {world.clone}/new.c", "made clone/new.c"),
    "stops": (lambda world: f"kill -STOP {world.canary.pid}", "stopped a process of mine"),
    "ends": (lambda world: f"kill -KILL {world.canary.pid}", "ended a process of mine"),
    "stays": (lambda _: "setsid sleep 100 >/dev/null 2>&1 &", "left processes behind"),
    "allows": (
        lambda world: f"""echo '{{"answer": "allow"}}' > {world.clone}/{TASK}/agents/w/spec.json""",
        "took over a rule that allows",
    ),
}


@pytest.mark.parametrize(("harm", "told"), HARM.values(), ids=HARM)
@pytest.mark.slow
def test_harm_that_is_done_is_told(world: World, harm: Callable[[World], str], told: str) -> None:
    script = harm(world)
    command = Command(("spawn", "--keep-children", "--wait", "--", "sh", "-c", script), starts=True)
    found = breaches(world, command, Bounds(settle_s=0.2))
    assert [told in line for line in found] == [True], found


def test_rules_of_ones_own_that_allow_are_told_once(world: World) -> None:
    command = Command(("spawn", "--agent", "general", "--permissions", "allow", "hello"), starts=True)
    told = "took over a rule that allows: mine/agents/general-1/spec.json"
    assert breaches(world, command, Bounds()) == [told]
    assert told not in breaches(world, Command(("list",)), Bounds())


@pytest.mark.slow
def test_what_a_command_takes_and_starts_is_told(world: World) -> None:
    command = Command(("spawn", "--", "sleep", "100"))
    found = breaches(world, command, Bounds(cpu_s=0, memory_kib=-1, settle_s=0.2))
    for told in ("of a processor", "of memory", "started ", "left processes behind"):
        assert any(told in line for line in found), told
    waits = Command(("spawn", "--wait", "--", "sleep", "100"), starts=True)
    assert any("did not end" in line for line in breaches(world, waits, Bounds(wall_s=0.5, settle_s=0.2)))


def starts(program: str, *argv: str, environ: dict[str, str] | None = None) -> Ended:
    return replace(NOTHING, starts=[[program, [program, *argv], environ or {}, "/"]])


def test_what_an_end_tells_is_told(world: World) -> None:
    def found(ended: Ended, **options: object) -> str:
        return "\n".join(told_by(world, Command((), **options), ended, Bounds()))  # type: ignore[arg-type]

    assert found(NOTHING) == ""
    assert "told as a bug" in found(replace(NOTHING, err="error: this is a bug in agentctl"))
    assert "a shell obeys" in found(replace(NOTHING, out="$(touch PWNED)"), environ={"_AGENTCTL_COMPLETE": "x"})
    assert "ended by SIGSEGV" in found(replace(NOTHING, code=-11))
    assert "started" in found(starts(f"{world.clone}/evil.sh"), starts=True)
    assert "started" in found(starts("make"))
    for outside in (world.clone / "data", world.clone / ".github"):
        assert "as its repository" in found(starts("git", f"--git-dir={outside}"))
        assert "as its repository" in found(starts("git", "--git-dir", str(outside)))
        assert "as its repository" in found(starts("git", environ={"GIT_DIR": str(outside)}))
    assert found(starts("git", f"--git-dir={world.clone}/.git/worktrees/b")) == ""
