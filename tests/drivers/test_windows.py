"""At stake: a used-up usage window costs time, but no work, whatever is killed while a worker waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import activity, agent, agent_world, blocked, ends, inside, plays
from tests.life import known, lives, read, set_config
from tests.steps import Task, statuses
from tests.support import run, text_in, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed."""
    return agent_world(tmp_path, monkeypatch)


def accounts() -> list[Path]:
    """Return the files of the accounts."""
    return list((Path(os.environ["HOME"]) / ".local/state/agentctl/accounts").glob("*.json"))


def reset(seconds: float = -1.0, file: Path | None = None) -> None:
    """Change the accounts' files so that the windows are reset in `seconds`."""
    for one in [file] if file else accounts():
        told = read(one)
        for window in told["windows"]:
            window["resetsAt"] = time.time() + seconds
        told |= {"at": time.time(), "boot": "another"}
        draft = one.with_suffix(".new")
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.rename(one)


def row(name: str = "a") -> dict[str, Any]:
    return next(one for one in run("list", "--json").json if one["agentInstance"] == name)


def wakers(task: Task) -> list[int]:
    """Return the live waker of a task, if any; one that has the lock but has not written its pid yet is not found."""
    told = text_in(task.path / "waker.json")
    pid = json.loads(told).get("pid") if told else None
    return [pid] if pid is not None and Path(f"/proc/{pid}").exists() else []


def parked(task: Task, *, name: str = "a", seconds: float = 9000, options: tuple[str, ...] = ()) -> None:
    """Start an agent that its account's limit stops in the middle of its work, and wait until it is parked."""
    agent(f"stopped {seconds} {task.path / ('tries-' + name)}", *options, name=name)
    task.has("agent.parked", name)


def test_a_stopped_agent_is_parked_until_the_reset_and_goes_on_in_its_session(task: Task) -> None:
    parked(task, seconds=1)
    end = ends()
    assert (end["status"], end["attempt"], end["result"]["finalMessage"]) == ("completed", 2, "at last")
    assert read(task.agent("a") / "exit.1.json")["reason"] == "rate_limited"
    kinds = [event["type"] for event in task.events() if event.get("agentInstance") == "a"]
    assert [kind for kind in kinds if kind in {"agent.parked", "agent.retried", "agent.completed"}] == [
        "agent.parked", "agent.retried", "agent.completed",
    ]  # fmt: skip
    told = [one["text"] for one in activity(task) if one.get("name") == "user"]
    assert len(told) == 2
    assert told[1].startswith("You were interrupted")


@pytest.mark.slow
def test_a_parked_agent_is_shown_as_that_and_its_slot_is_free(task: Task) -> None:
    set_config(task, maxConcurrentAgents=1)
    parked(task)
    run("spawn", "--name", "b", "--", "true")
    task.ended("b")
    assert statuses() == {"a": "queued", "b": "completed"}
    told = row()
    assert (told["parked"], told["awaitsAccount"]["window"]) == (True, "five_hour")
    assert told["awaitsAccount"]["until"] == task.events("agent.parked")[0]["payload"]["until"]
    for view in ("list", "tree"):
        assert "parked until " in run(view).out
    assert "(5 h window)" in run("list").out
    line = run("wait-any", "--for", "parked")
    assert line.out.startswith("a parked until ")
    assert run("wait-any", "--for", "parked", "--timeout-seconds", "0.1", check=False).code == 4
    (account,) = run("usage", "--json").json["accounts"]
    assert account["windows"][0]["usedPercent"] == 100
    assert account["held"]["window"] == "five_hour"
    assert "5 h window 100 % used" in run("usage").err
    assert "is used up until" in run("doctor", check=False).out
    run("cancel", "a")
    end = read(task.agent("a") / "exit.json")
    assert (end["status"], end["attempt"]) == ("cancelled", 1)
    wait_until(lambda: wakers(task), accept=lambda left: not left, what="nobody to wait for the window")


@pytest.mark.slow
def test_who_asks_next_for_the_account_waits_and_another_account_does_not(task: Task) -> None:
    parked(task)
    refused = agent("say no", name="b", check=False)
    assert refused.code == 1
    assert "is used up until" in refused.err
    told = agent("say late", "--queue", "--json", name="c").json
    assert told["status"] == "queued"
    assert (row("c")["parked"], row("c")["awaitsAccount"]["window"]) == (False, "five_hour")
    assert "waits for its account until" in run("list").out
    agent("say at once", "--env", "ANTHROPIC_API_KEY=other", name="d")
    assert ends("d")["status"] == "completed"
    assert statuses() == {"a": "queued", "c": "queued", "d": "completed"}
    reset()
    assert [ends(name)["status"] for name in "ac"] == ["completed"] * 2


@pytest.mark.slow
def test_a_person_can_say_that_an_account_may_be_used_again(task: Task) -> None:
    parked(task)
    account = row()["awaitsAccount"]["account"]
    assert run("doctor", "--free-account", "other", check=False).code == 3
    own = run("doctor", "--free-account", account, env=inside(task, "a"), check=False)
    assert (own.code, "only a person lifts this limit" in own.err) == (1, True), own
    run("doctor", "--free-account", account)
    assert ends()["status"] == "completed"


@pytest.mark.slow
def test_two_accounts_do_not_hold_each_other(task: Task) -> None:
    parked(task)
    parked(task, name="b", options=("--env", "ANTHROPIC_API_KEY=other"))
    first, second = (row(name)["awaitsAccount"]["account"] for name in "ab")
    assert first != second
    reset(file=next(file for file in accounts() if file.stem == second))
    assert ends("b")["status"] == "completed"
    assert statuses() == {"a": "queued", "b": "completed"}
    run("cancel", "a")


@pytest.mark.slow
def test_a_reset_that_moves_is_followed(task: Task) -> None:
    parked(task, seconds=8)
    first = time.time() + 8
    reset(9000)
    agent("used 40", "--env", "HOME=" + os.environ["HOME"], "--queue", name="b")
    wait_until(time.time, accept=lambda now: now > first + 1, what="the time that was told first to pass")
    assert statuses() == {"a": "queued", "b": "queued"}
    reset()
    assert [ends(name)["status"] for name in "ab"] == ["completed"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["shim", "waker"])
def test_whoever_is_killed_meanwhile_it_goes_on(task: Task, killed: str) -> None:
    parked(task)
    wait_until(lambda: wakers(task), what="somebody to wait for the window")
    if killed == "shim":  # It has ended, unless it lingers.
        with contextlib.suppress(ProcessLookupError):
            os.kill(read(task.agent("a") / "shim.json")["pid"], 9)
    else:
        (waker,) = wakers(task)
        process = known(waker)
        os.kill(waker, 9)
        wait_until(lambda: lives(process), accept=lambda alive: not alive, what="its end")
    assert statuses() == {"a": "queued"}
    reset()
    assert ends()["status"] == "completed"
    assert len((task.path / "tries-a").read_text()) == 1, "nothing was done twice"


@pytest.mark.slow
@pytest.mark.parametrize("point", ["park.after-ticket", "park.after-event"])
def test_a_shim_that_is_killed_while_it_parks_leaves_a_parked_worker_or_a_failed_one(task: Task, point: str) -> None:
    run("spawn", "--agent", "general", "--name", "a", f"stopped 1 {task.path / 'tries'}",
        env={"AGENTCTL_FAILPOINT": point})  # fmt: skip
    end = ends()
    expected = ("failed", "lost") if point == "park.after-ticket" else ("completed", None)
    assert (end["status"], end.get("reason")) == expected
    run("doctor", "--fix", check=False)
    assert list((task.path / "queue").iterdir()) == []
    if end["status"] == "failed":
        (again,) = run("resume", "--lost", "--queue", "--json").json
        reset()
        assert ends(again["agentInstance"])["status"] == "completed"
    assert len((task.path / "tries").read_text()) == 1, "nothing was done twice"


@pytest.mark.slow
def test_after_a_restart_of_the_machine_the_queue_is_resumed(task: Task) -> None:
    parked(task)
    wait_until(lambda: wakers(task), what="somebody to wait for the window")
    os.kill(wakers(task)[0], 9)
    for file in (task.agent("a") / "worker.json", task.agent("a") / "shim.json", task.path / "waker.json"):
        file.write_text(json.dumps({**read(file), "boot": "another"}), encoding="utf-8")
    for blob in (Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl").iterdir():
        blob.unlink() if blob.is_file() else None
    assert statuses() == {"a": "queued"}
    assert row()["awaitsAccount"]["window"] == "five_hour"
    assert "agentctl resume --lost" in run("doctor", check=False).out
    run("resume", "--lost")
    assert statuses() == {"a": "queued"}
    reset()
    assert ends()["status"] == "completed"


@pytest.mark.parametrize("way", ["worker", "task"])
def test_who_would_rather_fail_does(task: Task, way: str) -> None:
    options: tuple[str, ...] = ("--max-park-seconds", "60") if way == "worker" else ()
    if way == "task":
        set_config(task, maxParkSeconds=60)
    agent(f"stopped 9000 {task.path / 'tries'}", *options)
    end = ends()
    assert (end["status"], end["reason"], end["attempt"]) == ("failed", "rate_limited", 1)
    assert "maxParkSeconds" in end["message"]
    assert "(5 h window)" in end["message"]


def test_a_window_that_is_nearly_used_up_is_warned_of_once(task: Task) -> None:
    agent(f"{plays(task.path, NEARLY)}")
    assert ends()["status"] == "completed"
    (event,) = task.events("agent.near_limit")
    assert (event["payload"]["window"], event["payload"]["usedPercent"]) == ("five_hour", 85)
    (account,) = run("usage", "--json").json["accounts"]
    assert (account["windows"][0]["usedPercent"], account["held"]) == (86, None)


NEARLY = """
import time
for percent in (50, 85, 86):
    windows = {"five_hour": {"utilization": percent / 100, "resetsAt": time.time() + 900, "status": "allowed"}}
    say(type="rate_limit_event", rate_limit_info={"status": "allowed", "unifiedWindows": windows})
me.answer("done")
"""

ODD = """
import time
me.assistant({"type": "text", "text": "half"})
if me.turns == 1 and not __import__("pathlib").Path("seen").exists():
    __import__("pathlib").Path("seen").touch()
    windows = {"five_hour": {"utilization": float("nan"), "resetsAt": %s, "status": "rejected"}}
    say(type="rate_limit_event", rate_limit_info={"status": "rejected", "resetsAt": %s, "rateLimitType": "five_hour",
                                                  "unifiedWindows": windows})
    me.assistant({"type": "text", "text": "no"}, model="<synthetic>", error="rate_limit")
    me.result("no", is_error=True, api_error_status=429)
else:
    me.answer("done")
"""


@pytest.mark.parametrize("reset_at", ["253402300800", "-1", "'tomorrow'", "float('nan')"])
@pytest.mark.slow
def test_a_time_that_cannot_be_is_none(task: Task, reset_at: str) -> None:
    set_config(task, cooldownSeconds=0.1)
    agent(plays(task.path, ODD % (reset_at, reset_at)))
    assert ends()["status"] == "completed"
    assert task.events("agent.parked")[0]["payload"]["window"] is None


@pytest.mark.slow
def test_a_pause_of_the_account_is_seen_too(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=600)
    agent(f"once 429 {tmp_path / 'tried'}")
    assert "a waits for its account until " in run("wait-any", "--for", "parked").out
    assert row()["awaitsAccount"]["window"] is None
    for view in (("list",), ("tree",), ("show", "a")):
        assert "until" in run(*view).out
    run("cancel", "a")


@pytest.mark.slow
def test_a_kept_agent_that_is_stopped_in_a_later_turn_is_parked(task: Task) -> None:
    agent("say one", "--keep")
    blocked()
    run("send", "a", f"stopped 1 {task.path / 'tries'}")
    task.has("agent.parked", "a")
    blocked()
    assert task.events("agent.retried")
    run("send", "--close", "a")
    assert ends()["result"]["finalMessage"] == "at last"
