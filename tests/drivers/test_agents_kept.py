"""At stake: a kept agent lends its slot and gets it back, and gets every message exactly once, in every race."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests import faults as layer
from tests.agent_steps import activity, agent, agent_world, blocked, ends
from tests.faults import Faults
from tests.life import kill_shims, known, living, passes, read
from tests.steps import Task, kill, row, spawn_batch, statuses
from tests.support import alike, run, start, start_argv, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=1, grace=0.3)


def says(task: Task, instance: str, text: str) -> None:
    """Wait until an agent's answer is this text."""
    file = task.agent(instance) / "result.json"
    wait_until(lambda: file.exists() and read(file)["finalMessage"], what=f"{instance} to say {text}",
               accept=lambda said: said == text)  # fmt: skip


def is_idle(task: Task, instance: str) -> None:
    """Wait until an agent waits for its next message."""
    wait_until(lambda: run("interact", "list", "--json").json, what=f"{instance} to ask what next",
               accept=lambda asked: any(one["agentInstance"] == instance for one in asked))  # fmt: skip


def guest(gate: Path, name: str = "g") -> None:
    """Start a command that ends once the file `gate` exists."""
    run("spawn", "--name", name, "--", "/bin/sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.02; done")


@pytest.mark.slow
def test_many_wait_in_one_slot_and_all_hear_what_is_sent_at_once(task: Task) -> None:
    names = ["a", "b", "c"]
    for name in names:
        agent(f"say hello {name}", "--keep", name=name)
        blocked(name)
    senders = [start("send", name, f"say again {name}") for name in names]
    assert [sender.wait(20) for sender in senders] == [0, 0, 0]
    for name in names:
        says(task, name, f"again {name}")
        is_idle(task, name)
    closers = [start("send", name, "--close") for name in names]
    assert [closer.wait(20) for closer in closers] == [0, 0, 0]
    run("wait-all")
    assert statuses() == dict.fromkeys(names, "completed")
    run("spawn", "--name", "z", "--wait", "--", "true")  # No slot was lost.


@pytest.mark.parametrize("how", ["is killed with its shim", *alike("ends", "is cancelled", "is killed")])
@pytest.mark.slow
def test_the_slot_comes_back_however_the_guest_goes(task: Task, tmp_path: Path, how: str) -> None:
    agent("say one", "--keep")
    blocked()
    guest(tmp_path / "gate")
    run("send", "a", "say two")
    leader, shim = known(read(task.agent("g") / "worker.json")["pid"]), task.shim_of("g")
    match how:
        case "ends":
            (tmp_path / "gate").touch()
        case "is cancelled":
            run("cancel", "g")
        case "is killed":
            os.killpg(leader.pid, signal.SIGKILL)
        case _:
            kill(shim)
            os.killpg(leader.pid, signal.SIGKILL)
    says(task, "a", "two")
    run("send", "a", "--close")
    assert ends()["status"] == "completed"
    run("spawn", "--name", "z", "--wait", "--", "true")


@pytest.mark.slow
def test_closing_waits_for_no_guest(task: Task, tmp_path: Path) -> None:
    agent("say one", "--keep")
    blocked()
    guest(tmp_path / "gate")
    run("send", "a", "--close")
    assert ends()["status"] == "completed"
    assert run("spawn", "--", "true", check=False).code == 5  # The slot now belongs to the guest.
    (tmp_path / "gate").touch()
    run("wait", "g")


@pytest.mark.slow
def test_a_cancel_of_an_idle_agent_leaves_its_guest_alone(task: Task, tmp_path: Path) -> None:
    agent("say one", "--keep")
    blocked()
    guest(tmp_path / "gate")
    run("cancel", "a")
    assert statuses() == {"a": "cancelled", "g": "running"}
    assert run("spawn", "--", "true", check=False).code == 5
    (tmp_path / "gate").touch()
    run("wait", "g")
    assert run("interact", "list", "--json").json == []


@pytest.mark.slow
def test_who_ends_in_the_middle_of_a_chain_leaves_no_place_for_two(task: Task, tmp_path: Path) -> None:
    """A lends its place to b, and b to a command: when b ends, the command has the place that a lends."""
    for name in ("a", "b"):
        agent(f"say {name}", "--keep", name=name)
        blocked(name)
    guest(tmp_path / "gate")
    run("send", "b", "--close")
    run("wait", "b")
    assert run("spawn", "--", "true", check=False).code == 5
    run("send", "a", "say more")
    assert run("spawn", "--", "true", check=False).code == 5
    (tmp_path / "gate").touch()
    says(task, "a", "more")
    run("cancel", "a")


@pytest.mark.slow
def test_an_answer_and_a_message_at_once_are_both_heard(task: Task, tmp_path: Path) -> None:
    """Both arrive before the agent gets its slot back."""
    agent("say one", "--keep")
    blocked()
    guest(tmp_path / "gate")
    run("send", "a", "say sent")
    run("interact", "respond", "a", "--id", "q1", "say responded")
    (tmp_path / "gate").touch()
    heard = lambda: {one["text"] for one in activity(task) if one.get("name") == "user"}  # noqa: E731
    wait_until(heard, what="both", accept=lambda texts: {"say sent", "say responded"} <= texts)
    run("send", "a", "--close")
    assert ends()["status"] == "completed"


@pytest.mark.slow
def test_an_empty_answer_is_no_message(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    refused = run("interact", "respond", "a", "--id", "q1", " ", check=False)
    assert (refused.code, "empty" in refused.err) == (2, True)
    assert statuses() == {"a": "blocked"}
    run("cancel", "a")


@pytest.mark.slow
def test_messages_are_heard_in_their_order_and_none_after_the_close(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    senders = [start("send", "a", f"say {number}") for number in range(3)]
    assert [sender.wait(20) for sender in senders] == [0, 0, 0]
    inbox = sorted((task.agent("a") / "inbox").glob("*.json"))
    sent = [read(file)["text"] for file in inbox]
    run("send", "a", "say last", "--close")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "last")
    heard = [one["text"] for one in activity(task) if one.get("name") == "user"]
    assert heard == ["say one", *sent, "say last"]


@pytest.mark.slow
def test_a_wait_is_given_each_block_once(task: Task) -> None:
    agent("say one", "--keep")
    first = run("wait-any", "--consumer", "c", "--json", "--timeout-seconds", "20").json
    assert (first["agentInstance"], first["status"]) == ("a", "blocked")
    assert run("wait-any", "--consumer", "c", "--timeout-seconds", "0.2", check=False).code == 4
    run("send", "a", "say two")
    again = run("wait-any", "--consumer", "c", "--json", "--timeout-seconds", "20").json
    assert again["status"] == "blocked"
    assert read(task.agent("a") / "result.json")["finalMessage"] == "two"
    run("cancel", "a")


@pytest.mark.slow
def test_the_clock_of_an_idle_agent_stands_still(task: Task) -> None:
    agent("say one", "--keep", "--timeout-seconds", "4")
    blocked()
    passes(4.5)
    run("send", "a", "say two")
    says(task, "a", "two")
    run("cancel", "a")


@pytest.mark.slow
def test_a_paused_idle_agent_hears_its_messages_when_it_goes_on(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    run("pause", "a")
    run("send", "a", "say two")
    run("spawn", "--name", "b", "--wait", "--", "true")  # It lends its slot although it is paused.
    assert read(task.agent("a") / "result.json")["finalMessage"] == "one"
    run("unpause", "a")
    says(task, "a", "two")
    run("cancel", "a")


@pytest.mark.slow
def test_an_idle_agent_whose_shim_was_killed_goes_on_lending_and_hearing(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    kill_shims(task, "a")
    run("spawn", "--name", "b", "--wait", "--", "true")
    run("send", "a", "say two")
    says(task, "a", "two")
    run("send", "a", "--close")
    wait_until(lambda: row("a")["status"], what="its end", accept=lambda status: status == "completed")
    run("spawn", "--name", "z", "--wait", "--", "true")


@pytest.mark.slow
def test_nothing_is_left_of_an_idle_agent_that_was_killed_with_its_shim(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    leader = known(read(task.agent("a") / "worker.json")["pid"])
    kill_shims(task, "a")
    os.kill(leader.pid, signal.SIGKILL)
    wait_until(lambda: row("a")["status"], what="its loss", accept=lambda status: status == "failed")
    assert living([leader]) == []
    assert run("interact", "list", "--json").json == []
    run("spawn", "--name", "z", "--wait", "--", "true")
    told = run("resume", "--lost", "--json").json
    assert [one["status"] for one in told] == ["running"]
    is_idle(task, told[0]["agentInstance"])
    run("cancel", told[0]["agentInstance"])


@pytest.mark.slow
def test_idle_agents_hold_up_no_queue(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "batch"
    rows = [{"name": f"k{n}", "agent": "general", "prompt": f"say {n}", "keep": True} for n in range(3)]
    rows += [{"name": f"c{n}", "argv": ["true"]} for n in range(3)]
    file.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    spawn_batch(rows)
    task.ended("c0", "c1", "c2")
    for number in range(3):
        is_idle(task, f"k{number}")
    run("cancel", "--all")
    assert {status for name, status in statuses().items() if name.startswith("k")} == {"cancelled"}
    run("spawn", "--name", "z", "--wait", "--", "true")


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_kept_agent_does_not_hold_its_parent_up_and_ends_well(task: Task, tmp_path: Path, is_busy: bool) -> None:
    """Nobody is left who could send it another message."""
    prompt = "hang" if is_busy else "say one"
    line = f"{sys.executable} -m agentctl spawn --queue --agent general --keep --name k '{prompt}'"
    wait = f"{sys.executable} -m agentctl wait-any k --for blocked"
    run("spawn", "--name", "p", "--", "sh", "-c", line if is_busy else f"{line} && {wait}")
    if is_busy:
        task.has("agent.started", "k")
        task.has("agent.awaiting_children", "p")
        run("send", "k", "--interrupt", "say one")
    assert run("wait", "p", "--timeout-seconds", "20").code == 0
    assert statuses() == {"p": "completed", "k": "completed"}
    assert read(task.agent("k") / "result.json")["finalMessage"] == "one"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "calls", "error"),
    [
        ("agents/a/outbox", layer.OPEN | layer.SCAN, errno.ESTALE),
        *alike(
            ("agents/a/inbox", layer.OPEN | layer.SCAN | layer.READ, errno.EIO),
            ("agents/a/interactions", layer.OPEN | layer.SCAN | layer.READ, errno.EIO),
            ("queue", layer.SCAN, errno.EIO),
            ("../../../run", layer.MKDIR | layer.CREATE, errno.EDQUOT),
        ),
    ],
)
def test_what_a_failing_disk_hides_from_an_idle_agent_costs_it_nothing(
    task: Task, faulty: Faults, where: str, calls: int, error: int
) -> None:
    agent("say one", "--keep")
    blocked()
    fault = faulty.fail((task.path / where).resolve(), calls, error)
    said = start_argv([sys.executable, "-m", "agentctl", "send", "a", "say two"])  # Without the layer.
    assert said.wait(20) == 0
    wait_until(lambda: faulty.hits(fault) > 2, what="its driver to be refused")
    faulty.mend()
    says(task, "a", "two")
    run("send", "a", "--close")
    assert ends()["status"] == "completed"
