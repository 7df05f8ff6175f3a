"""At stake: a request about several workers does to each what was asked, or says by name why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import run, wait_until
from tests.web.support import Server, ended, new_task, serving, spawned

pytestmark = pytest.mark.server


def about(server: Server, verb: str, *names: str, **more: Any) -> dict[str, Any]:
    """Act on workers, `TASK/INSTANCE`, and return the answer by their names."""
    workers = [{"taskId": task, "agentInstance": name} for task, name in (one.split("/") for one in names)]
    done = server.post(f"/workers/{verb}", {"workers": workers, **more}).done()
    assert [f"{one['taskId']}/{one['agentInstance']}" for one in done["workers"]] == list(dict.fromkeys(names))
    return {f"{one['taskId']}/{one['agentInstance']}": one for one in [*done["workers"], *done["below"]]}


def said(one: dict[str, Any]) -> tuple[bool, str | None]:
    return one["done"], one["detail"]


def state(server: Server, task: str, name: str) -> Any:
    return server.get(f"/tasks/{task}/workers/{name}").done()["status"]


def test_a_cancel_is_one_decision_about_workers_of_any_tasks(server: Server) -> None:
    """What waits in the queues behind them goes on, in each of the trees; what is named twice is one."""
    for task in ("one", "two"):
        server.post("/tasks", {"title": task, "id": task, "max_concurrent": 1, "grace_seconds": 0.2}).done()
        spawned(server, task, ["sleep", "600"], name="a", cwd="/")
        spawned(server, task, ["sleep", "600"], name="b", queue=True, cwd="/")
        spawned(server, task, ["true"], name="after-b", queue=True, after=["b"], cwd="/")
        spawned(server, task, ["true"], name="c", queue=True, cwd="/")
    spawned(server, "two", ["true"], name="d", queue=True, cwd="/")
    done = about(server, "cancel", "one/a", "two/b", "one/nobody", "one/a", "no-such/a")
    assert said(done["one/a"]) == (True, None)
    assert done["one/a"]["status"] == done["two/b"]["status"] == "cancelled"
    assert said(done["one/nobody"]) == (False, "no worker 'nobody' in task one")
    assert done["no-such/a"]["done"] is False
    assert "no task 'no-such'" in done["no-such/a"]["detail"]
    assert ended(server, "two", "after-b")["reason"] == "dependency"
    assert state(server, "two", "a") == "running"
    wait_until(lambda: state(server, "one", "b"), accept=lambda it: it == "running", what="b to have the slot of a")
    again = about(server, "cancel", "two/after-b", "two/b")
    assert said(again["two/after-b"]) == (
        False,
        "it had ended before as failed (dependency); nothing changed",
    )
    for task in ("one", "two"):
        server.post(f"/tasks/{task}/cancel", {"all": True}).done()


def test_what_cannot_be_acted_on_is_left_alone_and_told(server: Server) -> None:
    task = new_task(server)
    for name in ("bad", "worse"):
        spawned(server, task, ["false"], name=name, cwd="/")
        ended(server, task, name)
    for name in ("x", "y"):
        spawned(server, task, ["sleep", "600"], name=name, cwd="/")
    every = ("t1/bad", "t1/x", "t1/worse", "t1/y")
    paused = about(server, "pause", *every)
    assert {name: said(one) for name, one in paused.items()} == {
        "t1/bad": (False, "bad cannot be paused: it is over"), "t1/x": (True, None),
        "t1/worse": (False, "worse cannot be paused: it is over"), "t1/y": (True, None),
    }  # fmt: skip
    assert {row["agentInstance"] for row in server.get(f"/tasks/{task}/list").done() if row["paused"]} == {"x", "y"}
    go_on = about(server, "unpause", *every)
    assert [one["done"] for one in go_on.values()] == [False, True, False, True]
    assert not any(row["paused"] for row in server.get(f"/tasks/{task}/list").done())
    tried = about(server, "retry", *every)
    assert {name: one.get("startedAs") for name, one in tried.items()} == {
        "t1/bad": "bad-2", "t1/x": None, "t1/worse": "worse-2", "t1/y": None,
    }  # fmt: skip
    ends_it = "POST /api/v1/tasks/t1/workers/x/cancel ends it"
    assert (tried["t1/x"]["detail"], tried["t1/x"]["hint"]) == ("x has not ended", ends_it)
    assert (tried["t1/x"]["next"]["task"], tried["t1/x"]["next"]["words"]) == ("t1", ends_it)
    again = about(server, "retry", "t1/bad")
    assert said(again["t1/bad"]) == (False, "bad is an earlier try: the newest one of bad is bad-2")
    assert again["t1/bad"]["hint"] == "GET /api/v1/tasks/t1/workers/bad-2"
    sent = about(server, "send", *every, text="hello")
    assert [one["done"] for one in sent.values()] == [False, True, False, True]
    assert (sent["t1/worse"]["detail"] or "").startswith("worse")
    agents = server.root / "tasks" / task / "agents"
    assert [len(list((agents / name / "inbox").glob("*.json"))) for name in ("x", "y")] == [1, 1]
    seen = about(server, "seen", *every)
    assert {name: said(one) for name, one in seen.items()} == {
        "t1/bad": (True, None), "t1/worse": (True, None),
        "t1/x": (False, "x has neither ended nor answered: there is nothing to look at"),
        "t1/y": (False, "y has neither ended nor answered: there is nothing to look at"),
    }  # fmt: skip
    server.post(f"/tasks/{task}/cancel", {"all": True}).done()


def test_works_that_wait_for_each_other_are_tried_again_together(server: Server) -> None:
    task = new_task(server)
    spawned(server, task, ["false"], name="first", cwd="/")
    spawned(server, task, ["true"], name="second", queue=True, after=["first"], cwd="/")
    ended(server, task, "second")
    alone = about(server, "retry", "t1/second")
    assert said(alone["t1/second"]) == (False, "second waits for first, which is failed")
    both = about(server, "retry", "t1/second", "t1/first")
    assert [one["startedAs"] for one in both.values()] == ["second-2", "first-2"]
    assert ended(server, task, "second-2")["reason"] == "dependency"


def test_a_key_is_for_the_workers_that_are_named_whichever_of_them_are_there(server: Server) -> None:
    task = new_task(server)
    for name in ("x", "y", "z"):
        spawned(server, task, ["sleep", "600"], name=name, cwd="/")
    agents = server.root / "tasks" / task / "agents"

    def told(*names: str, key: str) -> dict[str, Any]:
        return {name: one["done"] for name, one in about(server, "send", *names, text="hello", key=key).items()}

    def inboxes() -> dict[str, int]:
        return {name.name: len(list((name / "inbox").glob("*.json"))) for name in agents.iterdir()}

    assert told("t1/x", "t1/y", key="k") == {"t1/x": True, "t1/y": True}
    assert told("t1/y", "t1/x", key="k") == {"t1/y": True, "t1/x": True}
    assert told("t1/y", key="k") == {"t1/y": False}
    assert told("t1/x", key="k") == {"t1/x": False}
    refused = about(server, "send", "t1/x", "t1/y", "t1/z", text="hello", key="k")
    assert [(one["done"], one["conflict"]) for one in refused.values()] == [(False, True)] * 3
    assert inboxes() == {"x": 1, "y": 1, "z": 0}
    server.post(f"/tasks/{task}/cancel", {"instances": ["x"]}).done()
    run("rm", "x", "--task", task, "--root", str(server.root))
    assert told("t1/x", "t1/y", key="k") == {"t1/x": False, "t1/y": True}
    assert told("t1/x", "t1/z", key="late") == {"t1/x": False, "t1/z": True}
    spawned(server, task, ["sleep", "600"], name="x", cwd="/")
    assert told("t1/x", "t1/z", key="late") == {"t1/x": True, "t1/z": True}
    assert inboxes() == {"x": 1, "y": 1, "z": 1}
    server.post(f"/tasks/{task}/cancel", {"all": True}).done()


def test_a_further_try_is_one_also_where_another_worker_of_its_request_was_removed(server: Server) -> None:
    task = new_task(server)
    for name in ("a", "b"):
        spawned(server, task, ["false"], name=name, cwd="/")
        ended(server, task, name)
    first = about(server, "retry", "t1/a", "t1/b", key="k")
    assert [one["startedAs"] for one in first.values()] == ["a-2", "b-2"]
    ended(server, task, "a-2")
    ended(server, task, "b-2")
    run("rm", "a", "a-2", "--task", task, "--root", str(server.root))
    again = about(server, "retry", "t1/a", "t1/b", key="k")
    assert (again["t1/a"]["done"], again["t1/b"]["startedAs"]) == (False, "b-2")
    assert {row["agentInstance"] for row in server.get(f"/tasks/{task}/list?all=true").done()} == {"b", "b-2"}


def test_a_task_of_somebody_else_can_only_be_stopped(server: Server) -> None:
    own, other = new_task(server, "own"), new_task(server, "other")
    for task in (own, other):
        spawned(server, task, ["sleep", "600"], name="a", cwd="/")
    (server.root / "tasks" / other / "origin").write_text("0" * 32)
    paused = about(server, "pause", "other/a", "own/a")
    assert [one["done"] for one in paused.values()] == [False, True]
    assert "other" in paused["other/a"]["detail"]
    assert [said(one) for one in about(server, "cancel", "other/a", "own/a").values()] == [(True, None)] * 2


def test_nothing_is_done_by_a_request_that_is_not_valid(server: Server) -> None:
    task = new_task(server)
    spawned(server, task, ["sleep", "600"], name="a", cwd="/")
    one = {"taskId": task, "agentInstance": "a"}
    bodies: list[Any] = [
        {}, {"workers": []}, {"workers": [one, "t1/a"]}, {"workers": [{"taskId": task}]},
        {"workers": [{**one, "agentInstance": "../a"}]}, {"workers": [{**one, "all": True}]},
        {"workers": [one], "everyone": True},
    ]  # fmt: skip
    for body in bodies:
        assert server.post("/workers/cancel", body).problem["name"] == "USAGE", body
    assert server.post("/workers/send", {"workers": [one]}).problem["name"] == "USAGE"
    assert about(server, "send", "t1/a", text="  ")["t1/a"]["detail"] == "the message is empty"
    assert state(server, task, "a") == "running"
    run("cancel", "--all", "--task", task)


def test_whoever_may_only_look_may_not_do_it(root: Path) -> None:
    run("new", "t1")
    with serving(root, "--read-only") as server:
        body = {"workers": [{"taskId": "t1", "agentInstance": "a"}]}
        assert server.post("/workers/cancel", body).problem["status"] == 403
