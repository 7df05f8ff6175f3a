"""At stake: a person's own settings of an agent program count where they have said so, and it is always shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, blocked, ends, inside
from tests.life import set_config
from tests.steps import Task, row
from tests.support import PROGRAM, run
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.drivers

FORBIDDEN = "may not allow its child what it is not allowed itself"


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    made = agent_world(tmp_path, monkeypatch, cap=5)
    set_config(made, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1)
    return made


def defined(root: Path, *lines: str) -> Path:
    file = root / "agents" / "mine.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(["---", "description: Of a test.", *lines, "---", "You work.\n"]), encoding="utf-8")
    return file


def personal_config(text: str, mode: int = 0o600) -> Path:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_it_is_named_wherever_the_worker_is_shown(task: Task) -> None:
    agent("permit touch y", "--permissions", "own")
    assert blocked()["permissions"] == "own"
    assert row("a")["permissions"] == "own"
    assert b"general:claude (permissions own)" in on_a_terminal([*PROGRAM, "list"])[1]
    told = run("why", "a")
    assert "without asking whatever your own settings of claude allow (permissions: own)" in told.out
    for shown in (run("interact", "list").out, on_a_terminal([*PROGRAM, "interact", "list"])[1].decode()):
        assert "permissions own" in " ".join(shown.split()), shown
    run("cancel", "a")
    agent("say x", name="b")
    ends("b")
    assert row("b")["permissions"] is None
    assert "own" not in run("why", "b").out


def test_a_definition_that_says_it_needs_trust(task: Task, root: Path) -> None:
    file = defined(root, "permissions: own")
    refused = run("spawn", "--agent", "mine", "--name", "a", "say x", check=False)
    assert refused.code == 1
    assert "permissions own: what your own settings of its program allow is done without asking" in run("trust").out
    run("trust", file)
    run("spawn", "--agent", "mine", "--name", "a", "say x")
    ends("a")
    assert row("a")["permissions"] == "own"


def test_a_task_that_says_it_needs_a_persons_word(task: Task) -> None:
    set_config(task, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1, permissions="own")
    refused = agent("say x", check=False)
    assert (refused.code, "that you have not vouched for" in refused.err) == (1, True)
    run("trust", task.path / "task.yaml")
    agent("say x")
    ends("a")
    assert row("a")["permissions"] == "own"


def test_a_persons_config_says_it_for_new_tasks(task: Task) -> None:
    file = personal_config("config: {permissions: own}\n")
    run("new", "Mine", "--id", "mine")
    agent("say x")
    ends("a")
    assert row("a")["permissions"] == "own"
    file.chmod(0o666)
    refused = run("new", "Another", check=False)
    assert refused.code != 0
    assert f"{file} sets config.permissions, and others can write it" in refused.err
    assert f"chmod go-w {file}" in refused.err


def test_no_agent_gives_it_to_its_child(task: Task) -> None:
    agent("say x", "--keep")
    blocked()
    refused = run("spawn", "--agent", "general", "--permissions", "own", "say x", env=inside(task, "a"), check=False)
    assert (refused.code, FORBIDDEN in refused.err) == (1, True)
    run("cancel", "a")


def test_who_has_it_or_may_do_all_gives_it_to_its_child(task: Task) -> None:
    for name, policy in (("a", "own"), ("b", "allow")):
        agent("say x", "--keep", "--permissions", policy, name=name)
        blocked(name)
        run("spawn", "--name", f"of-{name}", "--agent", "general", "--permissions", "own", "say x",
            env=inside(task, name))  # fmt: skip
        ends(f"of-{name}")
        assert row(f"of-{name}")["permissions"] == "own"
        run("cancel", name)


def test_a_rule_may_only_say_it_of_everything(task: Task) -> None:
    refused = agent("say x", "--permissions", json.dumps([{"tool": "Bash", "answer": "own"}]), check=False)
    assert (refused.code, "answer must be allow, deny or ask" in refused.err) == (2, True)


def test_no_rule_is_given_that_would_not_hold(task: Task, root: Path, tmp_path: Path) -> None:
    """Where the program's own settings decide what is asked, a rule of ours may never be looked at."""
    program = tmp_path / "bin" / "codex"
    program.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    program.chmod(0o700)
    defined(root, "disallowedTools: Bash")
    line = ("spawn", "--agent", "mine", "--driver", "codex", "--permissions")
    refused = run(*line, "own", "say x", check=False)
    assert refused.code == 1
    assert 'what codex asks is up to your own settings of it: {"tool": "Bash"' in refused.err
    assert "--permissions ask enforces it" in refused.err
    assert run(*line, "ask", "--name", "a", "say x", check=False).code == 0
    run("cancel", "a", check=False)


def test_a_tool_that_a_definition_disallows_is_denied_whatever_the_call_allows(task: Task, root: Path) -> None:
    defined(root, "disallowedTools: Bash(touch *)")
    run("spawn", "--agent", "mine", "--driver", "claude", "--permissions", "allow", "--name", "a", "permit touch y")
    assert ends("a")["result"]["finalMessage"] == "denied"
    run("retry", "a")
    assert ends("a-2")["result"]["finalMessage"] == "denied"


def test_all_tools_can_be_disallowed(task: Task, root: Path) -> None:
    defined(root, 'disallowedTools: "*"')
    run("spawn", "--agent", "mine", "--permissions", "allow", "--name", "a", "permit touch y")
    assert ends("a")["result"]["finalMessage"] == "denied"
