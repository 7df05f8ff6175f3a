"""At stake: what was found out is passed on; what is read twice can say two things, and one answer mixes them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.snapshots import snapshot
from tests.steps import new_task, spawn
from tests.support import environment, run, wait_until, worker

#: Runs a command line, and writes down each file that it opens in a root.
WATCHED = """
import os, sys
out = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def heard(event, args):
    if event == "open" and isinstance(args[0], str) and "/.agentctl/" in args[0]:
        os.write(out, args[0].encode() + b"\\n")
sys.addaudithook(heard)
from agentctl.__main__ import run
run()
"""
NAMES = ("w1", "w2", "w3")


class Again(NamedTuple):
    """Why a file is opened more than once, and how often; None where that depends on when it is looked at."""

    times: int | None
    reason: str


OF_EACH_DOOR = "each operation that a program can call makes sure by itself that the task is the person's own"
READ_ON = "the log is read on from where it was: what the judging has written is read back"
LOCK_THEN_READ = "its lock says whether a shim lives, at the moment of each look; it is read to learn which one"
EACH_ROUND = "time has passed: a wait looks anew in each round"
LOCKED = "what is written is made from what is there under the lock"
#: Which files a command opens again on purpose. This may only shrink.
AGAIN: dict[str, dict[str, Again]] = {
    "list": {"origin": Again(3, OF_EACH_DOOR), "events.jsonl": Again(2, READ_ON)},
    "why w2": {
        "origin": Again(3, OF_EACH_DOOR),
        "events.jsonl": Again(3, f"{READ_ON}; and the worker's own events are found in all of it"),
        "agents/w2/shim.json": Again(3, LOCK_THEN_READ),
    },
    "wait-any --timeout-seconds 1": {
        "origin": Again(None, f"{OF_EACH_DOOR}; a wait does so before each look at the queue, which may start workers"),
        "events.jsonl": Again(None, EACH_ROUND),
        "cursors/default.json": Again(None, EACH_ROUND),
        **dict.fromkeys(map("agents/{}/shim.json".format, NAMES), Again(None, f"{EACH_ROUND}; {LOCK_THEN_READ}")),
    },
    "cancel w1": {
        "origin": Again(4, OF_EACH_DOOR),
        "events.jsonl": Again(None, EACH_ROUND),
        "agents/w1/exit.json": Again(None, "whoever sees the end first publishes it; then it is what is returned"),
        **dict.fromkeys(("config.json", "task.yaml", "task.lock"), Again(None, LOCKED)),
        **dict.fromkeys(map("agents/{}/shim.json".format, NAMES), Again(None, f"{EACH_ROUND}; {LOCK_THEN_READ}")),
    },
}


def opened(command: str, out: Path) -> Counter[str]:
    """Run a command where no task was chosen, and return how often it has opened each file of its root.

    A roster is written beside itself.
    """
    argv = [sys.executable, "-c", WATCHED, str(out), *command.split()]
    subprocess.run(argv, env=environment(), capture_output=True, check=False, timeout=60, start_new_session=True)
    paths = out.read_text(encoding="utf-8").splitlines()
    named = (re.sub(r"^.*/\.agentctl/(tasks/[^/]+/)?", "", path) for path in paths)
    return Counter("task.yaml" if re.fullmatch(r"task\.yaml\..+\.tmp", name) else name for name in named)


@pytest.mark.parametrize("command", AGAIN)
def test_a_command_opens_no_file_twice_without_a_reason(root: Path, tmp_path: Path, command: str) -> None:
    task = new_task(cap=len(NAMES))
    for name in NAMES:
        spawn(worker("sleeps", 600), name=name)
    # Whoever comes upon a roster that is behind mends it: that is not what these commands do every time.
    wait_until(task.roster, accept=dict.fromkeys(NAMES, "active").__eq__, what="the roster, which the shims write")
    run("list")
    snapshot(task.path)
    found = {path: count for path, count in opened(command, tmp_path / "opened").items() if count > 1}
    run("cancel", "--all")
    allowed = AGAIN[command]
    assert {path: count for path, count in found.items() if path not in allowed} == {}
    counted = {path: again.times for path, again in allowed.items() if again.times is not None}
    assert {path: found.get(path, 0) for path in counted} == counted
