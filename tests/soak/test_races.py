"""At stake: what no single run shows. Races tried many times; each has a short variant in every test run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.where.locating import find_task
from tests.steps import Task, most_at_once, new_task, spawn, statuses
from tests.support import is_alive, run, start, start_argv, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"
ENDS = ("agent.completed", "agent.failed", "agent.cancelled")


def rounds(short: int, long: int) -> pytest.MarkDecorator:
    """Give a test its number of rounds: few in every run, many in a soak."""
    return pytest.mark.parametrize("count", [short, pytest.param(long, marks=pytest.mark.soak)])


# -- cancel and start ----------------------------------------------------------------------------------------------

#: Cancels each worker that it is told of, a moment after its ticket or its shim was seen; no two moments are alike.
CANCELLER = """
import os, random, sys, time
from agentctl.operations.stop.cancelling import cancel_workers
from agentctl.operations.where.locating import find_task
from agentctl.adapters.treedir import tree_of
task, chance = find_task(None), random.Random(int(sys.argv[1]))
queue = tree_of(task).queue
for name in map(str.strip, sys.stdin):
    worker = task.worker(name)
    while not (worker.shim.exists() or any(ticket.endswith("." + name) for ticket in os.listdir(queue))):
        pass
    until = time.monotonic() + chance.random() * 0.03
    while time.monotonic() < until:
        pass
    cancel_workers(task, [name], grace_s=0.05)
    print(name, flush=True)
"""


@rounds(15, 500)
def test_of_a_cancel_and_a_start_one_comes_first(root: Path, tmp_path: Path, count: int) -> None:
    """Two races a round at a cap of one: one worker is started by the spawn, the other by a shim, or neither is."""
    task = new_task(cap=1, grace=0.05)
    notes = tmp_path / "notes"
    canceller = start_argv([sys.executable, "-c", CANCELLER, str(count)], stdin=subprocess.PIPE)
    assert canceller.stdin is not None
    assert canceller.stdout is not None
    place, script = find_task(None), f"echo $AGENTCTL_INSTANCE >> {notes}; exec sleep 0.01"
    pairs = [(f"a{number}", f"b{number}") for number in range(count)]
    for number, pair in enumerate(pairs):
        order = pair if number % 2 else pair[::-1]
        canceller.stdin.write("".join(f"{name}\n" for name in order))
        canceller.stdin.flush()
        spawn_workers(place, [SpawnRequest(name=name, argv=["sh", "-c", script]) for name in pair], queue=True)
        assert tuple(canceller.stdout.readline().strip() for _ in pair) == order
    _, err = canceller.communicate(timeout=60)
    assert (canceller.returncode, err) == (0, "")
    names = [name for pair in pairs for name in pair]
    check_lives(task, names, Counter(notes.read_text().split()) if notes.exists() else Counter())


def check_lives(task: Task, names: list[str], ran: Counter[str]) -> None:
    """Check that each worker started at most once, ended once, and ran only if it had started."""
    started = Counter(task.order("agent.started"))
    ended = Counter(event["agentInstance"] for event in task.events(*ENDS))
    assert {name: times for name, times in started.items() if times > 1} == {}
    assert ended == Counter(names)
    assert {name: times for name, times in ran.items() if times > started[name]} == {}
    assert task.tickets() == []
    found = statuses()
    assert {name for name in names if found[name] == "completed"} <= set(started)
    assert {found[name] for name in names} <= {"completed", "cancelled"}


# -- the cap -------------------------------------------------------------------------------------------------------


@rounds(4, 60)
def test_the_cap_holds_while_spawners_race_and_shims_are_killed(root: Path, tmp_path: Path, count: int) -> None:
    """Workers whose shim was killed are at work all the same; a wait keeps the queue going."""
    task = new_task(cap=3)
    notes = tmp_path / "notes"
    argv = worker("overlaps", notes)
    spawners = []
    for number in range(5):
        rows = tmp_path / f"batch-{number}"
        lines = [{"name": f"w{number}-{one}", "argv": argv} for one in range(count)]
        rows.write_text("\n".join(str(line).replace("'", '"') for line in lines))
        spawners.append(start("spawn", "--batch", str(rows)))
    waiter = None
    chance, killed = random.Random(count), 0
    names = {f"w{number}-{one}" for number in range(5) for one in range(count)}
    while names - {event["agentInstance"] for event in task.events(*ENDS)}:
        if waiter is None or waiter.poll() is not None:
            waiter = start("wait-all")
        shims = [event["payload"]["shimPid"] for event in task.events("agent.started")[-3:]]
        if killed < count and shims and kill_shim(task, chance.choice(shims)):
            killed += 1
    # 1 tells of a worker that failed because its shim was killed before it ran.
    assert {spawner.wait(timeout=60) for spawner in spawners} <= {0, 1}
    assert waiter is not None
    waiter.communicate(timeout=60)
    run("wait-all", check=False)
    assert most_at_once(notes) <= 3
    assert Counter(task.order("agent.started")) == Counter(names)
    assert killed


def kill_shim(task: Task, pid: int) -> bool:
    """SIGKILL a process if it is a shim of this task; tell whether it was."""
    try:
        if str(task.path) not in Path(f"/proc/{pid}/cmdline").read_text():
            return False
        os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return False
    wait_until(lambda: is_alive(pid), accept=lambda alive: not alive, what="the shim's death")
    return True


# -- nesting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [pytest.param(80, marks=pytest.mark.soak)])
def test_a_nested_shim_takes_a_stranger_while_the_outer_worker_ends(root: Path, tmp_path: Path, count: int) -> None:
    """The outer ends in the moment in which the nested worker has ended: its sweep meets a shim between two workers."""
    task = new_task(cap=2, grace=0.1)
    for number in range(count):
        nested, outer, stranger = f"n{number}", f"o{number}", f"s{number}"
        gate, decided = tmp_path / f"gate{number}", task.agent(nested) / "exit.json"
        leaf = f"while [ ! -e {gate} ]; do sleep 0.01; done"
        watching = f'import os\nwhile not os.path.exists("{decided}"): pass'
        script = f"{AGENTCTL} spawn --name {nested} -- sh -c '{leaf}' && exec {sys.executable} -S -c '{watching}'"
        spawn(["sh", "-c", script], name=outer)
        task.has("agent.started", nested)
        spawn(
            ["sh", "-c", f"while [ ! -e {task.agent(outer)}/exit.json ]; do sleep 0.01; done"], "--queue", name=stranger
        )
        gate.touch()
        run("wait", outer, nested, stranger)
    ends = {event["agentInstance"]: event["type"] for event in task.events(*ENDS)}
    assert set(ends.values()) == {"agent.completed"}
    assert max(Counter(task.order("agent.started")).values()) == 1


# -- waiting -------------------------------------------------------------------------------------------------------

#: Takes ends as one of several waiters of a consumer, until nothing is left. A line is one write: with
#: PYTHONUNBUFFERED, `print` makes a write of each word, and a waiter killed between them leaves half a line.
TAKER = """
import os
from agentctl.errors import NothingLeft
from agentctl.operations.where.locating import find_task
from agentctl.operations.wait.waiting import next_end
while True:
    try:
        with next_end(find_task(None), [], timeout_s=60, consumer="crowd", kinds=None) as end:
            os.write(1, f"{end.agent_instance} {'again' if end.redelivered else 'first'}\\n".encode())
    except NothingLeft:
        break
"""


@rounds(40, 500)
def test_each_end_is_given_once_though_waiters_are_killed(root: Path, tmp_path: Path, count: int) -> None:
    task = new_task(cap=4)
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="last")
    place = find_task(None)
    names = [f"w{number}" for number in range(count)]
    takers: list[subprocess.Popen[str]] = []
    files: list[Path] = []

    def take() -> None:
        files.append(tmp_path / f"given-{len(files)}")
        with files[-1].open("w") as file:
            takers.append(start_argv([sys.executable, "-c", TAKER], stdout=file.fileno()))

    for _ in range(3):
        take()
    chance = random.Random(count)
    for first in range(0, count, 10):
        spawn_workers(place, [SpawnRequest(name=name, argv=["true"]) for name in names[first : first + 10]], queue=True)
        if chance.random() < 0.5:
            victim = takers.pop(chance.randrange(len(takers)))
            victim.kill()
            victim.wait(timeout=30)
            take()
    task.ended(*names)
    gate.touch()
    assert [taker.wait(timeout=300) for taker in takers] == [0] * 3
    given = [line.split() for file in files for line in file.read_text().splitlines()]
    assert {name for name, _ in given} == {*names, "last"}, "an end was lost"
    first_time = Counter(name for name, which in given if which == "first")
    assert max(first_time.values()) == 1, "an end was given twice and not marked so"
    assert run("wait-any", "--consumer", "crowd", check=False).code == 6
