"""At stake: a rate limit costs time, but no work: all agents of the account wait once, and no others do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, ends
from tests.life import known, living, read, set_config
from tests.steps import Task, statuses
from tests.support import run, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed."""
    return agent_world(tmp_path, monkeypatch)


def known_accounts() -> list[Path]:
    """Return the files of the accounts."""
    return list((Path(os.environ["HOME"]) / ".local/state/agentctl/accounts").glob("*.json"))


def free() -> None:
    """Free all accounts, as if time had passed."""
    for file in known_accounts():
        file.unlink()


def test_a_rate_limited_agent_is_begun_again_after_the_cool_down_without_a_retry_of_its_own(
    task: Task, tmp_path: Path
) -> None:
    set_config(task, cooldownSeconds=0.2)
    agent(f"once 429 {tmp_path / 'tried'}")
    end = ends()
    assert (end["status"], end["attempt"]) == ("completed", 2)
    assert read(task.agent("a") / "exit.1.json")["reason"] == "rate_limited"
    assert [event["payload"]["reason"] for event in task.events("agent.retrying")] == ["rate_limited"]


@pytest.mark.slow
def test_everybody_of_the_account_waits_and_the_slot_is_lent_to_others(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=600, maxConcurrentAgents=1)
    agent(f"once 429 {tmp_path / 'tried'}")
    task.has("agent.retrying", "a")
    refused = agent("say no", name="b", check=False)
    assert refused.code == 1
    assert "is on hold for another" in refused.err
    for name in ("c", "d"):
        agent("say late", "--queue", name=name)
    run("spawn", "--name", "command", "--queue", "--", "true")
    run("wait", "command")  # It runs in the slot of a, which waits.
    assert statuses() == {"a": "queued", "c": "queued", "d": "queued", "command": "completed"}
    notes = [one["what"] for one in run("doctor", "--json", check=False).json if "on hold" in one["what"]]
    assert len(notes) == 1
    free()
    assert [ends(name)["status"] for name in ("a", "c", "d")] == ["completed"] * 3


@pytest.mark.slow
def test_another_task_of_the_person_waits_too_and_its_queue_goes_on_by_itself(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=600)
    agent(f"once 429 {tmp_path / 'tried'}")
    task.has("agent.retrying", "a")
    run("new", "Other", "--id", "other")
    told = agent("say hello", "--queue", "--json", name="x").json
    assert told["status"] == "queued"
    assert "is on hold" in told["message"]
    other = Task(task.path.parent / "other")
    assert other.events("agent.started") == []
    free()
    other.ended("x")
    assert ends("x")["status"] == "completed"
    task.ended("a")


@pytest.mark.slow
def test_another_account_is_not_waited_for(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=600)
    agent(f"once 429 {tmp_path / 'tried'}")
    task.has("agent.retrying", "a")
    agent("say at once", "--env", "ANTHROPIC_API_KEY=other", name="b")
    assert ends("b")["status"] == "completed"
    run("cancel", "a")


@pytest.mark.slow
def test_a_cancel_ends_the_waiting_of_a_started_and_of_a_queued_agent(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=600)
    agent(f"once 429 {tmp_path / 'tried'}")
    task.has("agent.retrying", "a")
    run("new", "Other", "--id", "other")
    agent("say never", "--queue", name="x")
    shim = known(Task(task.path.parent / "other").shim_of("x"))
    run("cancel", "x")
    run("cancel", "a", "--task", "t1")
    assert statuses() == {"x": "cancelled"}
    wait_until(lambda: living([shim]), accept=lambda left: not left, what="its shim to leave")


@pytest.mark.slow
def test_it_is_begun_again_only_so_often(task: Task) -> None:
    set_config(task, cooldownSeconds=0.01, retryCeilingSeconds=0.05)
    agent("retry 429")
    end = ends()
    assert (end["status"], end["reason"], end["attempt"]) == ("failed", "rate_limited", 6)


@pytest.mark.slow
def test_no_cool_down_where_none_is_wanted(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=0)
    agent(f"once 429 {tmp_path / 'tried'}")
    assert ends()["reason"] == "rate_limited"
    assert known_accounts() == []
