"""Steps that tests of whole tasks share: make a task, start workers, read the files.

Like `support`, it imports nothing of the package: workers are started by the command line, and the results are read
from the files that anybody can `cat`.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
import yaml

from tests.support import Completed, is_alive, run, wait_until, worker


class Task:
    """A task directory, as seen from outside."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def agent(self, instance: str) -> Path:
        """Return a worker's folder."""
        return self.path / "agents" / instance

    def events(self, *kinds: str, of: str | None = None) -> list[dict[str, Any]]:
        """Return the committed events of these kinds (all kinds if none is named)."""
        lines = (self.path / "events.jsonl").read_bytes().split(b"\n")[:-1]
        rows = [json.loads(line) for line in lines]
        return [
            row
            for row in rows
            if (not kinds or row["type"] in kinds) and (of is None or row.get("agentInstance") == of)
        ]

    def order(self, kind: str) -> list[str]:
        """Return the workers in the order of their events of this kind."""
        return [row["agentInstance"] for row in self.events(kind)]

    def exit(self, instance: str) -> dict[str, Any] | None:
        """Return the decision about a worker's end; None before it."""
        file = self.agent(instance) / "exit.json"
        return json.loads(file.read_bytes()) if file.exists() else None

    def ended(self, *instances: str) -> None:
        """Wait until the log has the ends of these workers."""
        ends = ("agent.completed", "agent.failed", "agent.cancelled")
        wait_until(
            lambda: {*instances} - {row["agentInstance"] for row in self.events(*ends)},
            what=f"{', '.join(instances)} to end",
            accept=lambda missing: not missing,
        )

    def has(self, kind: str, instance: str, times: int = 1, *, timeout_s: float = 20) -> None:
        """Wait until the log has an event of this kind at least `times` times."""
        wait_until(
            lambda: len(self.events(kind, of=instance)),
            timeout_s=timeout_s,
            what=f"{times} {kind} of {instance}",
            accept=lambda found: found >= times,
        )

    def tickets(self) -> list[str]:
        """Return the instances in the queue, in its order."""
        names = sorted(path.name for path in (self.path / "queue").iterdir())
        return [name.split(".")[5] for name in names if name.count(".") == 5]

    def roster(self) -> dict[str, str]:
        """Return instance -> state, according to the roster in task.yaml."""
        head = yaml.safe_load((self.path / "task.yaml").read_bytes())
        return {row["instance"]: row["state"] for row in head["roster"]}

    def set_cap(self, cap: int) -> None:
        """Change the cap as a person would."""
        self.set_config(f"{{maxConcurrentAgents: {cap}}}")

    def set_config(self, config: str) -> None:
        """Change the line `config` as a person would, with an editor that replaces the file."""
        file = self.path / "task.yaml"
        text = file.read_text(encoding="utf-8")
        head, mark, tail = text.partition("# ---")
        lines = [line for line in head.splitlines() if not line.startswith("config:")]
        draft = file.with_name("task.yaml.edited")
        lines += [f"config: {config}", mark + tail]
        draft.write_text("\n".join(lines), encoding="utf-8")
        draft.rename(file)

    def shim_of(self, instance: str) -> int:
        """Return the pid of the shim that guards a worker."""
        return int(json.loads((self.agent(instance) / "shim.json").read_bytes())["pid"])


#: Roots with a new task, by its limits: made once by the program, then copied. A task is only its files.
_prototypes: dict[tuple[str, ...], Path] = {}


def new_task(cap: int = 5, *, depth: int | None = None, grace: float = 0.2) -> Task:
    """Make a task and choose it."""
    limits = ["--max-concurrent", str(cap), "--grace-seconds", str(grace)]
    if depth is not None:
        limits += ["--max-depth", str(depth)]
    root = Path(os.environ["AGENTCTL_ROOT"])
    shutil.copytree(_prototype(tuple(limits)), root)
    task = Task(root / "tasks" / "t1")
    sign(task.path)
    return task


def sign(folder: Path) -> None:
    """Mark a copied task as this person's own, as `agentctl new` does."""
    marks = Path(os.environ["HOME"]) / ".config" / "agentctl" / "own"
    for place in (marks.parent, marks):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    nonce = (folder / "origin").read_text()
    for told, content in (((nonce.strip(), "task"), ""), (("place",), nonce)):
        name = json.dumps([str(folder.resolve()), *told]).encode()
        mark = marks / hashlib.blake2b(name, digest_size=16, person=b"agentctl").hexdigest()
        mark.write_text(content, encoding="ascii")
        mark.chmod(0o600)


def _prototype(limits: tuple[str, ...]) -> Path:
    if limits not in _prototypes:
        folder = Path(tempfile.mkdtemp(prefix="agentctl-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        run("new", "A task", "--id", "t1", *limits, "--root", folder / ".agentctl")
        _prototypes[limits] = folder / ".agentctl"
    return _prototypes[limits]


def spawn(argv: list[str], *options: str | Path, name: str | None = None, check: bool = True) -> Completed:
    """Spawn one worker and read the answer as JSON."""
    named = ["--name", name] if name is not None else []
    return run("spawn", "--json", *named, *options, "--", *argv, check=check)


def spawn_batch(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spawn many workers with one command; they queue if no slot is free."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    told: list[dict[str, Any]] = run("spawn", "--json", "--batch", "-", stdin=lines).json
    return told


def held(gate: Path, name: str, **options: Any) -> dict[str, Any]:
    """Return the line of a batch for a worker that completes once the file `gate` exists."""
    return {"name": name, "argv": worker("exits", 0, "--after-file", gate), **options}


def statuses() -> dict[str, str]:
    """Return instance -> status, according to `list`."""
    return {row["agentInstance"]: row["status"] for row in run("list", "--json").json}


def row(instance: str) -> dict[str, Any]:
    """Return a worker's row of `list`."""
    return next(row for row in run("list", "--json").json if row["agentInstance"] == instance)


def kill(*pids: int) -> None:
    """SIGKILL processes of this test, all of which live, and wait until they are gone."""
    for process in [psutil.Process(pid) for pid in pids]:
        with contextlib.suppress(psutil.NoSuchProcess):  # The death of another one has ended it.
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: [pid for pid in pids if is_alive(pid)], accept=lambda left: not left, what="death")


def most_at_once(file: Path) -> int:
    """Return how many workers of `overlaps.py` were at work at the same time, according to their records."""
    at_work = most = 0
    for line in file.read_text(encoding="ascii").splitlines():
        at_work += 1 if line.startswith("+") else -1
        most = max(most, at_work)
    assert at_work == 0, f"a worker wrote no end: {at_work}"
    return most
