"""Steps that tests of agents share: set up an agent program, start an agent, wait for its question or its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.steps import Task, new_task, statuses
from tests.support import WORKERS, Completed, run, wait_until


def agent_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, cap: int = 2, grace: float = 1) -> Task:
    """Make a task, in an environment whose only agent program is the one that needs no model."""
    claude_in(tmp_path, monkeypatch)
    return new_task(cap=cap, grace=grace)


def claude_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an agent program that needs no model in front of all others."""
    programs = tmp_path / "bin"
    programs.mkdir()
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\nexec {sys.executable} {WORKERS / "agent_program.py"} "$@"\n', encoding="utf-8")
    claude.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")


def put_vendors(folder: Path, *names: str) -> None:
    """Put agent programs without a model into a folder, by the names of the real ones (tests/workers/vendors.py)."""
    subprocess.run([sys.executable, WORKERS / "vendors.py", "put", folder, *names], check=True)


def agent(prompt: str, *options: str | Path, name: str = "a", check: bool = True) -> Completed:
    """Start an agent; its name is `a` by default."""
    return run("spawn", "--agent", "general", "--name", name, *options, prompt, check=check)


def inside(task: Task, instance: str) -> dict[str, str]:
    """Return the variables of agentctl in the environment of a worker's processes."""
    told = {"TASK": task.path.name, "INSTANCE": instance, "AGENT_DIR": str(task.agent(instance))}
    return {f"AGENTCTL_{name}": value for name, value in told.items()}


def define(root: Path, name: str, script: str, description: str = "Of a test.", **more: object) -> None:
    """Define an agent that runs a line of shell, in which `$1` is its prompt, and trust it."""
    file = root / "agents" / f"{name}.md"
    file.parent.mkdir(exist_ok=True)
    head = json.dumps({"name": name, "description": description, "argv": ["/bin/sh", "-c", script, name], **more})
    file.write_text(f"---\n{head}\n---\n", encoding="utf-8")
    run("trust", file)


def plays(folder: Path, script: str) -> str:
    """Return the prompt that makes the agent program run a script: `me` is the program, `say` prints a line."""
    file = folder / f"script-{len(list(folder.glob('script-*')))}.py"
    file.write_text(script, encoding="utf-8")
    return f"play {file}"


def ends(instance: str = "a") -> dict[str, Any]:
    """Wait for an agent's end, and return its decision with its result."""
    run("wait", instance, check=False)
    found: dict[str, Any] = run("show", instance, "--json").json
    return {**found["exit"], "result": found["result"]}


def blocked(instance: str = "a") -> dict[str, Any]:
    """Wait until an agent is blocked, and return its question; another one may have yet to start it."""
    wait_until(statuses, accept=lambda known: instance in known, what=f"the start of {instance}")
    run("wait-any", instance, "--for", "blocked", "--timeout-seconds", "20")
    questions: list[dict[str, Any]] = run("interact", "list", "--json").json
    return next(one for one in questions if one["agentInstance"] == instance)


def activity(task: Task, instance: str = "a") -> list[dict[str, Any]]:
    """Return the rows of an agent's activity."""
    return [json.loads(line) for line in (task.agent(instance) / "activity.jsonl").read_bytes().splitlines()]


def rebuilds_the_same(task: Task, instance: str = "a") -> None:
    """Check that the activity of an ended agent can be rebuilt from its raw output."""
    file = task.agent(instance) / "activity.jsonl"
    before = file.read_bytes()
    file.write_bytes(b"")
    run("activity", instance, "--rebuild")
    assert file.read_bytes().splitlines() == before.splitlines()
