"""Steps for tests of workers on nodes: how the engine is asked, and what the head and a node have about a launch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.life import Known, known
from tests.steps import Task, row
from tests.support import wait_for_json


def ask_engine(runner: str, **settings: float | str) -> None:
    """Write in the test's config.yaml how a runner asks its engine."""
    config = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    config.write_text(json.dumps({"runners": {runner: settings}}), encoding="utf-8")
    config.chmod(0o600)


def launch_of(task: Task, instance: str) -> Path:
    """Return the folder of a worker's launch."""
    return Path(wait_for_json(task.agent(instance) / "launch.json")["path"])


def handle_of(task: Task, instance: str) -> dict[str, Any]:
    """Return what is noted of a worker's launch in the engine; {} before anything is."""
    file = launch_of(task, instance) / "handle.json"
    found: dict[str, Any] = json.loads(file.read_bytes()) if file.exists() else {}
    return found


def post_of(task: Task, instance: str) -> Known:
    """Return the process that the engine has started, once it has claimed the launch."""
    claim = launch_of(task, instance) / "claim.json"
    return known(wait_for_json(claim)["process"]["pid"])


def there(task: Task, instance: str) -> Path:
    """Return the worker's folder on its node."""
    return launch_of(task, instance) / "node" / "tasks" / task.path.name / "agents" / instance


def stand_in_of(task: Task, instance: str) -> int:
    """Return the pid of the stand-in that follows a worker here."""
    return int(json.loads((task.agent(instance) / "worker.json").read_bytes())["pid"])


def placement(instance: str) -> dict[str, Any]:
    """Return what `list` tells of a worker's place on a node."""
    found: dict[str, Any] = row(instance)["placement"]
    return found


def script(text: str) -> list[str]:
    """Return the argv of a shell script."""
    return ["sh", "-c", text]


def counting(gate: Path) -> list[str]:
    """Return a worker that prints the numbers from 1 on until a file is there, each once, and exits with 4."""
    return script(f"n=0; until test -e {gate}; do n=$((n+1)); echo $n; sleep 0.05; done; echo end; exit 4")


def is_whole(text: str) -> bool:
    """Return whether nothing of what such a worker printed is missing or doubled."""
    lines = text.split()
    return lines[-1] == "end" and lines[:-1] == [str(number) for number in range(1, len(lines))]
