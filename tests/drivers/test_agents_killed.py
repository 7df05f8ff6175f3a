"""At stake: whatever process of an agent is killed, its end is true, its slot comes back, and it can be continued."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import psutil
import pytest

from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.life import is_settled, kill_shims, kill_tree, known, living, read
from tests.processes import variables_of, words_of
from tests.steps import Task, row, statuses
from tests.support import run, start, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=1, grace=0.3)


def driver_of(task: Task, instance: str = "a") -> psutil.Process:
    return psutil.Process(read(task.agent(instance) / "worker.json")["pid"])


def kill_all(task: Task, instance: str = "a") -> None:
    """Kill shim, driver and program, in this order, so that none sees the end of the next one."""
    kill_tree(task.shim_of(instance))


def fails(instance: str = "a") -> str:
    """Wait until a worker has failed; return its reason."""
    wait_until(lambda: row(instance)["status"], what="its failure", accept=lambda status: status == "failed")
    return str(row(instance)["reason"])


def goes_on(task: Task) -> None:
    """Check that no question is open, and that the only slot is free."""
    assert run("interact", "list", "--json").json == []
    run("spawn", "--wait", "--", "true")


@pytest.mark.slow
def test_the_program_killed_while_it_asks(task: Task) -> None:
    agent("permit x")
    blocked()
    program = driver_of(task).children()[0]
    program.kill()
    assert ends()["reason"] == "signal"
    goes_on(task)
    told = run("resume", "--lost", "--json").json
    assert ends(told[0]["agentInstance"])["status"] == "completed"


@pytest.mark.slow
def test_the_driver_killed_while_it_asks(task: Task) -> None:
    agent("permit x")
    blocked()
    driver = driver_of(task)
    program = known(driver.children()[0].pid)
    driver.kill()
    assert ends()["reason"] == "signal"
    assert living([program]) == []
    goes_on(task)
    assert run("interact", "respond", "a", "--id", "q1", "allow", check=False).code in (1, 3)


@pytest.mark.slow
def test_the_shim_killed_while_it_asks(task: Task) -> None:
    """The agent is unsupervised: its question can still be answered, and its end is the one that its driver wrote."""
    agent("permit x")
    blocked()
    kill_shims(task, "a")
    assert row("a")["status"] == "blocked"
    run("interact", "respond", "a", "--id", "q1", "allow")
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "allowed")
    is_settled(task, "a")
    goes_on(task)


@pytest.mark.slow
def test_all_killed_while_it_asks(task: Task) -> None:
    agent("permit x")
    blocked()
    kill_all(task)
    assert fails() in ("lost", "signal")
    goes_on(task)
    is_settled(task, "a")


def test_an_agent_that_had_answered_is_not_lost_with_its_shim(task: Task, tmp_path: Path) -> None:
    """The answer is on disk, the program lingers, and everything is killed."""
    agent(plays(tmp_path, "import time; me.answer('done'); time.sleep(600)"))
    wait_until((task.agent("a") / "outcome.json").exists, what="the answer")
    kill_all(task)
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "done")
    assert run("resume", "--lost", "--json").json == []
    goes_on(task)


@pytest.mark.slow
def test_a_failure_that_was_told_stays_one_without_the_shim(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, "me.waiting['x'] = lambda answer: me.error(429); me.ask('Bash', {}, me.waiting['x'])"))
    blocked()
    kill_shims(task, "a")
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert ends()["reason"] == "rate_limited"


@pytest.mark.slow
def test_a_run_that_was_killed_before_it_began_does_not_end_the_chain(task: Task) -> None:
    """Its shim died at the gate, so it has left no session of its own."""
    agent("say one")
    ends()
    run("resume", "a", "say two", env={"AGENTCTL_FAILPOINT": "shim.after-started"}, check=False)
    second = next(name for name in statuses() if name != "a")
    wait_until(lambda: row(second)["status"], what="its loss", accept=lambda status: status == "failed")
    assert not (task.agent(second) / "session.json").exists()
    third = run("resume", "a", "argv", "--json").json["agentInstance"]
    session = read(task.agent("a") / "session.json")["session"]
    assert session in str(ends(third)["result"]["finalMessage"])


@pytest.mark.slow
def test_of_two_that_continue_one_agent_one_does(task: Task) -> None:
    task.set_cap(3)
    agent("say one")
    ends()
    both = [start("resume", "a", "hang", "--json") for _ in range(2)]
    codes = sorted(one.wait(30) for one in both)
    running = [name for name, status in statuses().items() if status == "running"]
    assert (codes, len(running)) == ([0, 1], 1)
    run("cancel", *running)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_anything_killed_at_any_moment(task: Task, tmp_path: Path, seed: int) -> None:
    """Several agents in one slot, some kept, one asking; their processes are killed at random."""
    chance = random.Random(seed)
    names = ["a", "b", "c", "d"]
    prompts = {"a": "say a", "b": "permit b", "c": "say c", "d": "say d"}
    for name in names:
        keep = ["--keep"] if name in "ac" else []
        run("spawn", "--agent", "general", "--name", name, "--queue", *keep, prompts[name])
    for _ in range(6):
        victims = [child for child in _processes(task) if chance.random() < 0.4]
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        name = chance.choice(names)
        answer = ("interact", "respond", name, "--id", "q1", "allow")
        run(*chance.choice([("send", name, "say x"), answer, ("list",)]), check=False)
    run("list")
    run("cancel", "--all")
    run("wait-all", "--timeout-seconds", "20", check=False)
    for name in names:
        is_settled(task, name)
        if (task.agent(name) / "dialogue.jsonl").exists() and (task.agent(name) / "activity.jsonl").exists():
            run("activity", name, "--rebuild")
    goes_on(task)
    told = run("resume", "--lost", "--queue", "--json").json
    run("cancel", "--all")
    assert all(one["status"] in ("running", "queued") for one in told)
    goes_on(task)


def _processes(task: Task) -> list[psutil.Process]:
    """Return the shims, drivers and programs of a task."""
    found = []
    for process in psutil.process_iter():
        line = " ".join(words_of(process))
        is_ours = str(task.path) in line or str(task.path) in variables_of(process).get("AGENTCTL_AGENT_DIR", "")
        if is_ours and any(word in line for word in ("shim", "agent_host", "agent_program")):
            found.append(process)
    return found
