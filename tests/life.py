"""Steps for tests of killed processes: identify a process by pid and start time, kill shims, forge records.

A pid alone does not prove that a process has ended or lives: it may have been reused.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.processes import children_of, words_of
from tests.steps import Task, spawn
from tests.support import is_alive, run, text_in, wait_for_json, wait_for_text, wait_until, worker


class Known(NamedTuple):
    """A process that was alive when it was identified."""

    pid: int
    start: int


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def known(pid: int) -> Known:
    """Return the identity of a live process."""
    fields = stat_fields(pid)
    assert fields is not None, f"there is no process {pid}"
    return Known(pid, int(fields[19]))


def lives(process: Known) -> bool:
    """Return whether exactly this process is alive; a zombie is not."""
    fields = stat_fields(process.pid)
    return fields is not None and int(fields[19]) == process.start and fields[0] not in "ZX"


def living(processes: Iterable[Known]) -> list[Known]:
    """Return the processes that are alive."""
    return [process for process in processes if lives(process)]


def state_of(pid: int) -> str:
    """Return the letter of a process's state: T is stopped."""
    fields = stat_fields(pid)
    return fields[0] if fields else "gone"


def stands(pid: int) -> None:
    """Wait until a process has been stopped."""
    wait_until(lambda: state_of(pid), accept=lambda state: state == "T", what="it to be stopped")


def sleeps_in_wait(pid: int) -> None:
    """Wait until a process watches files, as one that waits for workers does."""

    def watches() -> bool:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # It has been closed meanwhile.
                if "inotify" in str(link.readlink()):
                    return True
        return False

    wait_until(watches, what="the wait to sleep")


def wait_for_a_lock(*pids: int) -> None:
    """Wait until all of these processes wait for a lock at once: Ctrl-Z is kept from them meanwhile."""

    def kept_from(pid: int) -> bool:
        status = text_in(f"/proc/{pid}/status")
        found = re.search(r"^SigBlk:\s*([0-9a-f]+)$", status, flags=re.MULTILINE)
        return found is not None and bool(int(found[1], 16) >> (signal.SIGTSTP - 1) & 1)

    wait_until(
        lambda: [pid for pid in pids if not kept_from(pid)], accept=lambda others: not others, what="all to wait"
    )


def members(file: Path) -> dict[str, Known]:
    """Return the processes whose pids a worker has written into a file."""
    return {name: known(pid) for name, pid in wait_for_json(file).items()}


def read(path: Path) -> Any:
    """Return the JSON in a file."""
    return json.loads(path.read_bytes())


def forge(path: Path, **changes: Any) -> None:
    """Change a JSON file in place, so that a lock on it is kept."""
    path.write_text(json.dumps({**read(path), **changes}), encoding="utf-8")


def leader_of(task: Task, instance: str) -> Known:
    """Return a worker's first process, which must be alive."""
    return known(read(task.agent(instance) / "worker.json")["pid"])


def says_ready(task: Task, instance: str) -> None:
    """Wait until a worker has printed `ready`: its signal handlers are set."""
    wait_for_text(task.agent(instance) / "stdout.log", "ready")


def kill_shims(task: Task, *instances: str) -> None:
    """SIGKILL the shims of these workers."""
    shims = [known(task.shim_of(instance)) for instance in instances]
    for shim in shims:
        assert "shim" in "".join(words_of(psutil.Process(shim.pid))[-2:-1]), f"{shim} is not a shim"
        os.kill(shim.pid, signal.SIGKILL)
    wait_until(lambda: living(shims), accept=lambda left: not left, what="the shims to die")


def kill_tree(pid: int) -> None:
    """SIGKILL a process and all below it, some of which may end by themselves meanwhile."""
    top = psutil.Process(pid)
    tree = [top, *children_of(top, recursive=True)]
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: [one.pid for one in tree if is_alive(one.pid)], accept=lambda left: not left, what="death")


def orphan(task: Task, name: str) -> Known:
    """Start a worker and kill its shim; return the worker's first process."""
    spawn(worker("sleeps", 60), name=name)
    says_ready(task, name)
    leader = leader_of(task, name)
    kill_shims(task, name)
    return leader


def passes(seconds: float) -> None:
    """Let time pass, for tests about time itself: a limit that must not have run meanwhile."""
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= until, what=f"{seconds} s to pass")


def is_settled(task: Task, instance: str) -> dict[str, Any]:
    """Check that a worker has one end, and that file, log and command agree on it; return the decision."""
    decision = task.exit(instance)
    assert decision is not None, f"{instance} has no exit.json"
    ends = task.events("agent.completed", "agent.failed", "agent.cancelled", of=instance)
    assert [end["type"] for end in ends] == [f"agent.{decision['status']}"], f"{ends} against {decision}"
    told = next(one for one in run("list", "--json").json if one["agentInstance"] == instance)
    assert (told["status"], told["reason"]) == (decision["status"], decision.get("reason"))
    return decision


def set_config(task: Task, **limits: float | str) -> None:
    """Write limits into task.yaml as a person would."""
    file = task.path / "task.yaml"
    head, mark, tail = file.read_text(encoding="utf-8").partition("# ---")
    lines = [line for line in head.splitlines() if not line.startswith("config:")]
    lines.append("config: {" + ", ".join(f"{key}: {value}" for key, value in limits.items()) + "}")
    file.write_text("\n".join([*lines, mark + tail]), encoding="utf-8")
