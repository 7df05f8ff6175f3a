"""At stake: the line that `show` prints opens the session of an agent in its own program, where a person goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.scenarios import recalled
from tests.processes import words_of
from tests.support import environment, run, wait_until
from tests.terminal import Terminal

#: Whose session it is, where an adapter has begun it.
WITHIN = {"claude-agent-acp": "claude", "codex-acp": "codex"}


def line_of(lab: Lab) -> str:
    """Have an agent come to its end; return the line that opens its session from another folder."""
    lab.completed(lab.spawn("text"))
    return str(run("show", "a1", "--root", lab.task.path.parents[1], "--json", cwd="/").json["openSession"])


@pytest.fixture(autouse=True)
def is_installed(program: str, installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the program of the session into PATH, where it is another one than the agent's."""
    if program in WITHIN:
        monkeypatch.setenv("PATH", f"{installed[WITHIN[program]].parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("program", ["claude", "claude-agent-acp", "qwen"])
def test_asked_one_thing(lab: Lab, program: str) -> None:
    """The line that `show` prints opens the session by hand: its program knows what the agent was told."""
    line = f"{line_of(lab)} -p SCENARIO:recall"
    done = subprocess.run(
        ["sh", "-c", line], env=environment(lab.environ()), cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert recalled("text", "recall") in done.stdout, (program, line, done)


@pytest.mark.parametrize("program", ["codex", "codex-acp"])
def test_its_screen_and_what_it_leaves(lab: Lab, program: str) -> None:
    """The line that `show` prints opens the session's screen; what that leaves is named, and the hint ends it."""
    line = line_of(lab)
    screen = Terminal(["sh", "-c", line], env=lab.environ())
    screen.until("stand-in", PATIENCE_S)
    wait_until(lambda: found(lab, "--managed-daemon"), what="its daemon")
    lab.kill_all(found(lab, "resume"))
    screen.end()
    (daemon,) = found(lab, "--managed-daemon")
    refused = run("resume", "a1", "SCENARIO:recall", check=False, env=lab.environ())
    assert f"pid {daemon.pid} (" in refused.err, refused
    assert str(daemon.pid) in run("doctor", check=False, env=lab.environ()).out
    subprocess.run(["sh", "-c", refused.err.rpartition("hint: ")[2]], check=True)
    daemon.wait(PATIENCE_S)
    assert lab.completed(lab.resume("a1", "recall")) == recalled("text", "recall")
    lab.crash()  # What else the screen has left: it looks for updates.


def found(lab: Lab, word: str) -> list[psutil.Process]:
    """Return the processes of this test that have a word in their command line."""
    return [one for one in lab.processes() if word in words_of(one)]
