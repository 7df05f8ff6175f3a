"""Defines agents for tests of delegation: the prompt of each is a script for the shell.

The first line of a sub-task's prompt is its title, so a title that begins with a colon is a shell line without effect.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.steps import Task

AGENTCTL = f"{sys.executable} -m agentctl"
_DEFINITION = "---\ndescription: Runs its prompt as a script.\nargv: [sh, -c]\n---\n"


def define_shells(*names: str) -> None:
    """Define agents in this test's home whose prompt is a script."""
    folder = Path(os.environ["HOME"]) / ".config" / "agentctl" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("shell",):
        (folder / f"{name}.md").write_text(_DEFINITION, encoding="utf-8")


def below(task: Task, task_id: str) -> Task:
    """Return another task of the same root."""
    return Task(task.path.parent / task_id)


def subtask_line(title: str, script: str, *options: str) -> str:
    """Return a shell line that starts a sub-task and prints its answer as JSON."""
    more = " ".join(options)
    return f"{AGENTCTL} subtask shell {shlex.quote(': ' + title)} --intent {shlex.quote(script)} --json {more}"


def nested(depth: int, leaf: str, *options: str) -> str:
    """Return a script that starts a sub-task that starts a sub-task ...; the innermost one runs `leaf`.

    Each level discards the answer and passes on whether it succeeded.
    """
    script = leaf
    for level in range(1, depth + 1):
        script = subtask_line(f"level{level}", script, *options) + " >/dev/null"
    return script


def answers_of(task: Task, instance: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a worker printed."""
    lines = (task.agent(instance) / "stdout.log").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
