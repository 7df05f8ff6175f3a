"""At stake: while a queue is held nothing of it starts, however a place becomes free; let go, it goes on by itself."""

from __future__ import annotations

import errno
import json
import os
import random
import shlex
import signal
import sys
from pathlib import Path

import pytest

from agentctl.adapters.treedir import tree_at
from agentctl.supervision.queue.places import read_occupant
from tests import faults as layer
from tests.advice import follow
from tests.faults import Faults
from tests.life import kill_shims, set_config
from tests.shells import define_shells
from tests.steps import Task, held, new_task, row, spawn, spawn_batch, statuses
from tests.support import is_alive, run, start, wait_until, worker

AGENTCTL = f"{sys.executable} -m agentctl"
AFTER_WRITE = {"AGENTCTL_FAILPOINT": "hold.after-write"}
HOLDS = pytest.mark.parametrize("by", ["pause", "a cap of 0"])


def hold(task: Task, by: str) -> None:
    """Hold the queue of a task, in either way."""
    if by == "pause":
        run("pause")
    else:
        set_config(task, maxConcurrentAgents=0)
        run("wait-any", "--timeout-seconds", "0.01", check=False)  # It counts from the next command that waits.


def let_go(task: Task, by: str, cap: int = 1) -> None:
    """Let it go, in the same way."""
    if by == "pause":
        run("unpause")
    else:
        set_config(task, maxConcurrentAgents=cap)


def shims_left(task: Task, *names: str) -> None:
    """Wait until the shims of workers are gone: what they start when they leave is started by then."""
    wait_until(lambda: not any(is_alive(task.shim_of(name)) for name in names), what="the shims to leave")


@HOLDS
def test_an_end_starts_nobody_while_the_queue_is_held(root: Path, tmp_path: Path, by: str) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), {"name": "next", "argv": ["true"]}])
    hold(task, by)
    (tmp_path / "gate").touch()
    run("wait", "first")
    shims_left(task, "first")
    assert run("wait-any", "next", "--timeout-seconds", "0.05", check=False).code == 4
    assert (row("next")["status"], row("next")["health"]) == ("queued", "held")
    assert task.order("agent.started") == ["first"]
    let_go(task, by)
    run("wait", "next")
    assert statuses() == {"first": "completed", "next": "completed"}


@pytest.mark.slow
@HOLDS
def test_a_lent_place_starts_nobody_while_the_queue_is_held(root: Path, tmp_path: Path, by: str) -> None:
    task = new_task(cap=1)
    gates = {name: shlex.join(worker("exits", 0, "--after-file", tmp_path / name)) for name in ("one", "two")}
    queue = [f"{AGENTCTL} spawn --queue --name {name} -- {gate} || exit 1" for name, gate in gates.items()]
    spawn(["bash", "-c", "; ".join([*queue, f"{AGENTCTL} wait one two"])], name="top")
    task.has("agent.started", "one")
    task.has("agent.queued", "two")
    hold(task, by)
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    task.ended("one")
    shims_left(task, "one")
    assert run("wait-any", "two", "--timeout-seconds", "1.5", check=False).code == 4
    assert task.order("agent.started") == ["top", "one"]
    let_go(task, by)
    task.ended("top") if by == "pause" else run("wait", "top")
    assert statuses() == dict.fromkeys(("top", "one", "two"), "completed")


@HOLDS
def test_a_start_without_the_queue_is_refused_and_its_next_step_works(root: Path, by: str) -> None:
    task = new_task(cap=1)
    hold(task, by)
    refused = spawn(["true"], name="a", check=False)
    assert refused.code == 5
    assert "nothing is started: " in refused.err
    assert "held by user since" in refused.err if by == "pause" else "maxConcurrentAgents is 0" in refused.err
    spawn(["true"], "--queue", name="b")
    if by == "pause":
        hint = refused.err.partition("hint: ")[2].splitlines()[0]
        assert hint == "--queue puts it into the queue; agentctl unpause --task t1 ends that"
    let_go(task, by)
    run("wait", "b")
    assert list(statuses()) == ["b"]


def test_a_hold_is_one_of_the_sub_tasks_too(root: Path) -> None:
    define_shells()
    task = new_task(cap=3, depth=3)
    run("pause")
    run("subtask", "shell", ": child", "--no-wait", "--id", "child")
    below = Task(task.path.parent / "child")
    assert [row["health"] for row in run("list", "--task", "child", "--json").json] == ["held"]
    assert "the queue of t1 is held" in run("list", "--task", "child").err
    refused = run("unpause", "--task", "child", check=False)
    assert refused.err.splitlines()[-1] == "hint: agentctl unpause --task t1 ends that"
    run("unpause", "--task", "t1")
    run("wait-all", "--task", "child")
    assert below.order("agent.started") == below.order("agent.queued")


def test_a_sub_task_is_held_alone(root: Path, tmp_path: Path) -> None:
    define_shells()
    task = new_task(cap=1, depth=3)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="first")
    run("subtask", "shell", ": child", "--no-wait", "--id", "child")
    run("pause", "--task", "child")
    spawn(["true"], "--queue", name="behind")
    (tmp_path / "gate").touch()
    run("wait", "behind")
    shims_left(task, "behind")
    rows = run("tasks", "--json").json
    shown = {row["taskId"]: (row["state"], row["held"] and row["held"]["taskId"]) for row in rows}
    assert shown == {"t1": ("held", None), "child": ("held", "child")}
    assert Task(task.path.parent / "child").order("agent.started") == []
    run("unpause", "--task", "child")
    run("wait-all", "--task", "child")


@pytest.mark.slow
def test_all_views_show_it(root: Path) -> None:
    task = new_task(cap=1)
    run("pause")
    spawn(["true"], "--queue", name="a")
    line = run("list")
    assert line.out.split("\t")[:3] == ["a", "queued", "held"]
    assert "the queue of t1 is held by user since" in line.err
    assert line.err.rstrip().endswith("; agentctl unpause ends that")
    shown = run("tasks", "--json").json[0]
    assert (shown["state"], shown["held"]["taskId"], shown["held"]["by"]) == ("held", "t1", "user")
    assert run("tasks").out.rstrip().endswith("held by user")
    why = run("why", "a", "--json").json
    assert (why["state"], why["since"]) == ("held", shown["held"]["at"])
    assert "agentctl unpause" in [way["command"] for way in why["waysOut"]]
    assert not any("the next look at the queue starts it" in one["text"] for one in why["statements"])
    assert "held" in run("tree").out
    assert "the queue of t1 is held" in run("tree").err
    for wait in ("wait", "wait-all", "wait-any"):
        names = ["a"] if wait == "wait" else []
        told = run(wait, *names, "--timeout-seconds", "0.05", check=False)
        assert (told.code, told.err.count("the queue of t1 is held")) == (4, 1), wait
    doctor = run("doctor", "--json", check=False).json
    assert [one["severity"] for one in doctor if "the queue of t1 is held" in one["what"]] == ["note"]
    watched = start("watch", "--plain")
    assert watched.stdout is not None
    said = next(line for line in watched.stdout if "a of t1" in line)
    watched.send_signal(signal.SIGINT)
    watched.communicate(timeout=20)
    assert said == "a of t1 is held in the queue: agentctl why a --task t1\n"
    assert [event["type"] for event in task.events("queue.held", "queue.let_go")] == ["queue.held"]
    run("unpause")
    run("wait", "a")
    assert [event["by"] for event in task.events("queue.held", "queue.let_go")] == ["user", "user"]
    assert run("tasks", "--json").json[0]["held"] is None
    assert run("list").err == ""


def test_a_hold_is_placed_once_and_let_go_once(root: Path) -> None:
    task = new_task()
    first = run("pause", "--json").json
    assert run("pause", "--json").json["held"] == first["held"]
    assert run("unpause", "--json").json["held"] is None
    assert run("unpause", "--json").json["held"] is None
    assert [event["type"] for event in task.events("queue.held", "queue.let_go")] == ["queue.held", "queue.let_go"]
    assert not (task.path / "held.json").exists()


def test_a_cap_of_0_is_let_go_in_the_file_alone(root: Path) -> None:
    task = new_task()
    set_config(task, maxConcurrentAgents=0)
    refused = run("unpause", check=False)
    assert refused.code == 1
    assert refused.err.splitlines() == [
        f"error: the queue of t1 is held for another reason: maxConcurrentAgents is 0 in {task.path / 'task.yaml'}",
        "hint: a number above 0 in its task.yaml ends that",
    ]


def test_who_was_queued_while_the_cap_was_0_starts_once_it_is_not(root: Path, tmp_path: Path) -> None:
    """A worker is held to the limits of its spawn, and so is its child; a hold is none of these limits."""
    task = new_task(cap=1, depth=2)
    set_config(task, maxConcurrentAgents=0, maxDepth=2)
    first, last = (shlex.join(worker("exits", 0, "--after-file", tmp_path / name)) for name in ("first", "last"))
    spawn(["sh", "-c", f"{first}; {AGENTCTL} spawn --queue --name child -- true; {last}"], "--queue", name="top")
    set_config(task, maxConcurrentAgents=1, maxDepth=2)
    run("wait-any", "--timeout-seconds", "0.01", check=False)
    task.has("agent.started", "top")
    set_config(task, maxConcurrentAgents=0, maxDepth=2)
    (tmp_path / "first").touch()
    run("wait-any", "top", "--timeout-seconds", "0.01", check=False)
    task.has("agent.queued", "child")
    set_config(task, maxConcurrentAgents=2, maxDepth=2)
    run("wait", "child", "--timeout-seconds", "20")
    (tmp_path / "last").touch()
    run("wait-all")


@pytest.mark.slow
@pytest.mark.follows(
    "supervision/queue/queue_hold.QueueHold.next_step: agentctl unpause",
    "operations/show/queue_holds._way_out: agentctl unpause",
    "operations/show/queued_reasons._hold: agentctl unpause",
)
def test_each_way_out_that_is_printed_is_one(root: Path) -> None:
    new_task(cap=1)
    for name, printed in (("a", "a refusal"), ("b", "list"), ("c", "why")):
        run("pause")
        refused = spawn(["true"], name=name, check=False)
        spawn(["true"], "--queue", name=name)
        told = refused if printed == "a refusal" else run(printed, *[name] * (printed == "why"))
        follow(told, "agentctl unpause --task t1" if printed == "a refusal" else "agentctl unpause")
        run("wait", name)


def test_whoever_pauses_and_is_killed_has_held(root: Path) -> None:
    task = new_task(cap=1)
    assert run("pause", env=AFTER_WRITE, check=False).code == -signal.SIGKILL
    assert spawn(["true"], name="a", check=False).code == 5
    spawn(["true"], "--queue", name="b")
    assert run("unpause", env=AFTER_WRITE, check=False).code == -signal.SIGKILL
    run("wait", "b")
    assert task.order("agent.started") == ["b"]


@pytest.mark.slow
@pytest.mark.follows("supervision/queue/queue_hold._parsed: agentctl doctor --fix")
def test_what_cannot_be_read_holds_the_queue_until_it_is_set_aside(root: Path) -> None:
    task = new_task(cap=1)
    (task.path / "held.json").write_text("[]")
    refused = spawn(["true"], name="a", check=False)
    assert refused.code == 1
    assert f"{task.path / 'held.json'} " in refused.err
    assert task.order("agent.started") == []
    found = run("doctor", "--json", check=False)
    assert [one["severity"] for one in found.json if "held.json" in one["where"]] == ["error"]
    follow(refused, "agentctl doctor --fix", check=False)
    spawn(["true"], name="a")
    run("wait", "a")


@pytest.mark.parametrize("broken", ["ENOSPC", pytest.param("EIO", marks=pytest.mark.slow)])
def test_a_hold_counts_although_the_disk_refuses_it(root: Path, tmp_path: Path, faulty: Faults, broken: str) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), {"name": "next", "argv": ["true"]}])
    calls = layer.TAKES_ROOM if broken == "ENOSPC" else layer.CHANGES
    faulty.fail(root, calls, getattr(errno, broken))
    assert run("pause", "--json").json["held"]["by"] == "user"
    assert not (task.path / "held.json").exists()
    assert run("list", "--json").json[1]["health"] == "held"
    faulty.mend()
    (tmp_path / "gate").touch()
    run("wait", "first")
    shims_left(task, "first")
    assert json.loads((task.path / "held.json").read_bytes())["held"]["t1"]["by"] == "user"
    assert task.order("agent.started") == ["first"]
    faulty.fail(root, calls, getattr(errno, broken))
    assert run("unpause", "--json", check=False).json["held"] is None
    faulty.mend()
    run("wait", "next")
    assert not (task.path / "held.json").exists()


@pytest.mark.slow
def test_nothing_is_started_below_a_paused_worker(root: Path, tmp_path: Path) -> None:
    """It has spawned two; one waits in the queue, and its slot becomes free while the parent is paused."""
    task = new_task(cap=2)
    gate = worker("exits", 0, "--after-file", tmp_path / "gate")
    queue = [f"{AGENTCTL} spawn --queue --name one -- true", f"touch {tmp_path / 'lined'}", shlex.join(gate)]
    spawn(gate, name="other")
    spawn(["bash", "-c", "; ".join(queue)], name="top")
    wait_until((tmp_path / "lined").exists)
    assert run("pause", "top", "--json").json["paused"] is True
    (tmp_path / "gate").touch()
    run("wait", "other")
    shims_left(task, "other")
    assert run("wait-any", "one", "--timeout-seconds", "0.05", check=False).code == 4
    assert row("one")["health"] == "held"
    why = run("why", "one").out
    assert "top above it is paused since" in why
    assert "agentctl unpause top" in why
    spawn(["true"], name="stranger")
    run("unpause", "top")
    run("wait-all")
    assert set(statuses().values()) == {"completed"}
    assert not (task.path / "held.json").exists()


def test_a_pause_that_cannot_be_asked_for_holds_nothing_below(root: Path, tmp_path: Path, faults: Faults) -> None:
    """Neither the disk nor memory takes the request of the worker; its task's folder takes all."""
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="top")
    for folder in (task.agent("top"), root.parent / "run"):
        faults.fail(folder, layer.CHANGES, errno.EIO)
    done = run("pause", "top", env=faults.environ, check=False)
    assert (done.code, done.err.splitlines()[-2:][0][:6]) == (1, "error:")
    assert not (task.path / "held.json").exists()
    (tmp_path / "gate").touch()
    run("wait", "top")


def test_what_a_killed_pause_left_holds_nothing_once_the_worker_has_ended(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="top")
    assert run("pause", "top", env=AFTER_WRITE, check=False).code == -signal.SIGKILL
    (tmp_path / "gate").touch()
    run("wait", "top")
    spawn(["true"], "--queue", name="a")
    run("wait", "a")
    assert task.order("agent.started") == ["top", "a"]


@pytest.mark.slow
def test_a_worker_does_not_let_go_what_a_person_holds(root: Path, tmp_path: Path) -> None:
    new_task(cap=2)
    script = f"until [ -e {tmp_path / 'held'} ]; do sleep 0.02; done; {AGENTCTL} unpause"
    spawn(["bash", "-c", script], name="w")
    run("pause")
    (tmp_path / "held").touch()
    assert run("wait", "w", check=False).code == 7
    assert "a person holds it" in run("logs", "w").out + run("logs", "w").err
    assert run("tasks", "--json").json[0]["held"]["by"] == "user"


def test_a_held_queue_is_not_stranded(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), {"name": "next", "argv": ["true"]}])
    run("pause")
    kill_shims(task, "first")
    (tmp_path / "gate").touch()
    run("wait", "first", check=False)
    assert row("next")["health"] == "held"
    run("unpause")
    run("wait", "next")


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_once_pause_has_returned_nothing_starts(root: Path, count: int) -> None:
    """A queue in full swing, held at any moment."""
    seed = int(os.environ.get("AGENTCTL_TEST_SEED", random.randrange(1 << 32)))
    print(f"AGENTCTL_TEST_SEED={seed}")
    chance = random.Random(seed)
    task = new_task(cap=2, grace=0.05)
    for turn in range(count):
        names = [f"r{turn}-{number}" for number in range(chance.randrange(8, 25))]
        argv = ["sleep", f"{chance.choice((0, 0.01, 0.05)):g}"]
        spawn_batch([{"name": name, "argv": argv} for name in names])
        run("pause")
        had_begun = placed(task)
        run("wait-any", "--timeout-seconds", "0.2", "--consumer", f"c{turn}", check=False)
        assert placed(task) == had_begun, f"AGENTCTL_TEST_SEED={seed}"
        run("unpause")
        run("wait-all", check=False)
    assert set(statuses().values()) == {"completed"}


def placed(task: Task) -> set[str]:
    """Return the workers that were started, or are about to be: a place names them."""
    found = [read_occupant(tree_at(str(task.path)).slots / name) for name in os.listdir(task.path / "slots")]
    return {*task.order("agent.started"), *(one.worker_id.instance for one in found if one is not None)}
