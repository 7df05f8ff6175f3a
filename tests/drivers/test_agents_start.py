"""At stake: an agent's program starts before its host is loaded, and nothing that happens meanwhile is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import WorkerDir
from agentctl.drivers.command import DRIVER
from agentctl.drivers.dialogue import HangUp, Say
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.program.program_start import StartedProgram, start_program
from tests.agent_steps import agent, agent_world, ends
from tests.steps import new_task


@contextmanager
def started(task: Path, script: str, prompt: str) -> Iterator[StartedProgram]:
    """Start a program that has no host yet."""
    folder = WorkerDir(str(task / "agents" / "a"))
    Path(folder.path).mkdir()
    order = Order(
        driver="command", program=sys.executable, agent="a", prompt=prompt, cwd=str(task), prompt_on_stdin=True
    )
    begun = start_program(folder, order, DRIVER._replace(argv=lambda _: [sys.executable, "-c", script]))
    try:
        yield begun
    finally:
        os.close(begun.outbox)
        begun.kill()
        if begun.process is not None:
            for pipe in (begun.process.stdin, begun.process.stdout, begun.process.stderr):
                assert pipe is not None
                pipe.close()
            begun.process.wait()


@pytest.fixture
def task(root: Path) -> Path:
    return new_task().path


def test_what_the_pipe_takes_is_said_at_once_and_the_rest_by_the_host(task: Path) -> None:
    words = "word " * 100_000
    with started(task, "import time; time.sleep(600)", words) as begun:
        rest, hang_up = begun.opening
        assert isinstance(rest, Say)
        assert hang_up == HangUp()
        assert 0 < len(rest.data) < len(words)
        assert words.encode().endswith(rest.data)


def test_short_words_are_said_at_once(task: Path) -> None:
    with started(task, "print(input(), flush=True); input()", "do it\n") as begun:
        assert list(begun.opening) == [HangUp()]
        assert begun.process is not None
        assert begun.process.stdout is not None
        assert begun.process.stdout.readline() == b"do it\n"


def test_a_program_without_a_host_is_killed(task: Path) -> None:
    with started(task, "import time; time.sleep(600)", "") as begun:
        begun.kill()
        assert begun.process is not None
        assert begun.process.wait() == -signal.SIGKILL
        begun.kill()


HELD = """
import os, signal
from agentctl.worker_programs.agent_host.program.program_start import HeldSignals
signals = HeldSignals()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
    os.kill(os.getpid(), number)
handlers = {signal.SIGINT: lambda: print("interrupt"), signal.SIGTERM: lambda: print("terminate")}
signals.hand_on(handlers)
signals.hand_on(handlers)
"""


def test_a_signal_that_comes_too_early_is_acted_on_later() -> None:
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["interrupt", "terminate", "interrupt"]


def test_whoever_gets_the_servers_answers_ready_ends_with_its_agent(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    agent("hello")
    end = ends()
    assert (end["status"], end["exitCode"]) == ("failed", 1)
    assert not end.get("swept")


def test_what_is_in_its_outbox_before_the_host_looks_is_taken_up(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    claude = tmp_path / "bin" / "claude"
    shebang, *rest = claude.read_text(encoding="utf-8").splitlines()
    says = 'for n in $(seq 40); do echo {} > "$AGENTCTL_AGENT_DIR/outbox/w$n.json"; done'
    claude.write_text("\n".join([shebang, says, *rest, ""]), encoding="utf-8")
    agent("say hello")
    end = ends()
    assert (end["status"], end["exitCode"]) == ("completed", 0)
    assert list((task.agent("a") / "outbox").iterdir()) == []
