"""At stake: who has lost an answer of the server sends the request again, and nothing is done twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.notice.answer_links import sign
from tests.agent_steps import agent, agent_world, ends
from tests.served import link_to
from tests.support import wait_until, worker
from tests.web.support import API, Server, ended, new_task, spawned


@pytest.fixture
def task(server: Server) -> str:
    """Return a task of the server."""
    return new_task(server)


def lost(server: Server, path: str, body: Any, is_done: Callable[[], object]) -> None:
    """Send a request, and leave without its answer once it was carried out."""
    data = json.dumps(body).encode()
    head = (
        f"POST {API}{path} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with server.connected() as connection:
        connection.sendall(head.encode() + data)
        wait_until(is_done, what=f"{path} to be carried out")


def texts(server: Server, task: str, instance: str) -> list[str]:
    """Return the messages that were sent to a worker."""
    files = (server.root / "tasks" / task / "agents" / instance / "inbox").glob("*.json")
    return [json.loads(file.read_bytes())["text"] for file in sorted(files)]


def names(server: Server, task: str) -> list[str]:
    """Return the workers of a task."""
    return [row["agentInstance"] for row in server.get(f"/tasks/{task}/list").done()]


def conflict(server: Server, path: str, body: Any) -> dict[str, Any]:
    """Send a request whose key has done something else; return the problem."""
    answer = server.post(path, body)
    assert (answer.status, answer.problem["name"]) == (409, "CONFLICT")
    return answer.problem


def test_a_start_whose_answer_was_lost_is_one_worker(server: Server, task: str) -> None:
    path, body = f"/tasks/{task}/spawn", {"argv": ["sleep", "60"], "key": "k"}
    lost(server, path, body, lambda: names(server, task))
    again = server.post(path, body).done()
    assert (again["reused"], names(server, task)) == (True, [again["agentInstance"]])
    problem = conflict(server, path, {"argv": ["sleep", "61"], "key": "k"})
    assert problem["done"] == {"taskId": task, "agentInstance": again["agentInstance"]}
    assert problem["detail"].endswith("differs in argv")
    assert "--" not in problem["hint"]
    assert server.post(f"{path}-batch", {"workers": [body, body]}).done()[1]["reused"]
    server.post(f"/tasks/{task}/workers/{again['agentInstance']}/cancel").done()


def test_a_message_whose_answer_was_lost_is_one_message(server: Server, task: str) -> None:
    spawned(server, task, ["sleep", "60"], name="a")
    path, body = f"/tasks/{task}/workers/a/send", {"text": "hello", "key": "k"}
    lost(server, path, body, lambda: texts(server, task, "a"))
    assert server.post(path, body).done()["messageId"] == "m1"
    assert texts(server, task, "a") == ["hello"]
    assert conflict(server, path, {"text": "bye", "key": "k"})["done"] == {"taskId": task, "agentInstance": "a"}
    server.post(f"/tasks/{task}/workers/a/cancel").done()
    assert server.post(path, body).done()["messageId"] == "m1"


def test_a_task_whose_answer_was_lost_is_one_task(server: Server) -> None:
    body = {"title": "Port it", "key": "k"}
    lost(server, "/tasks", body, lambda: server.get("/tasks").done())
    assert server.post("/tasks", body).done()["taskId"] == "port-it"
    problem = conflict(server, "/tasks", {"title": "Port that", "key": "k"})
    assert problem["done"] == {"taskId": "port-it", "agentInstance": None}
    assert len(server.get("/tasks").done()) == 1


def test_a_further_try_whose_answer_was_lost_is_one_try(server: Server, task: str) -> None:
    for name in ("a", "b"):
        spawned(server, task, ["false"], name=name)
        ended(server, task, name)
    path = f"/tasks/{task}/workers/a/retry"
    lost(server, path, {"queue": True, "key": "k"}, lambda: "a-2" in names(server, task))
    ended(server, task, "a-2")
    assert server.post(path, {"queue": True, "key": "k"}).done()["agentInstance"] == "a-2"
    both = {"workers": [{"taskId": task, "agentInstance": name} for name in ("a-2", "b")], "key": "both"}
    lost(server, "/workers/retry", both, lambda: {"a-3", "b-2"} <= {*names(server, task)})
    rows = server.post("/workers/retry", both).done()["workers"]
    assert [row["startedAs"] for row in rows] == ["a-3", "b-2"]
    assert sorted(names(server, task)) == ["a", "a-2", "a-3", "b", "b-2"]


def test_several_get_one_message_each_also_those_that_end_meanwhile(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.web.support import serving

    agent_world(tmp_path, monkeypatch)
    agent("say hello", "--keep")
    agent("say hello", name="b")
    ends("b")
    with serving(root) as server:
        both = {"workers": [{"taskId": "t1", "agentInstance": name} for name in ("a", "b")], "text": "say more"}
        lost(server, "/workers/send", {**both, "key": "k"}, lambda: len(names(server, "t1")) == 3)
        server.post("/tasks/t1/workers/a/cancel").done()
        first, second = server.post("/workers/send", {**both, "key": "k"}).done()["workers"]
        assert (first["done"], "startedAs" in first, second["startedAs"]) == (True, False, "b-1")
        assert texts(server, "t1", "a") == ["say more"]
        other = server.post("/workers/send", {**both, "text": "say less", "key": "k"}).done()["workers"]
        assert [row["conflict"] for row in other] == [True, True]
        assert len(names(server, "t1")) == 3
        ends("b-1")


def test_an_answer_whose_answer_was_lost_is_what_it_was(server: Server, task: str) -> None:
    name = spawned(server, task, worker("asks", "--kind", "confirm", "Go?"), name="a")
    wait_until(lambda: server.get("/interact").done(), what="the question")
    path, row = f"/tasks/{task}/workers/{name}/interact/q1", ended
    lost(server, path, {"answer": "yes"}, lambda: not server.get("/interact").done())
    assert server.post(path, {"answer": "yes"}).done()["answer"] == "yes"
    row(server, task, name)
    assert server.post(path, {"answer": "yes"}).done()["answer"] == "yes"
    refused = server.post(path, {"answer": "no"})
    assert (refused.status, "with 'yes' by user" in refused.problem["detail"]) == (409, True)
    for answer, status in (("yes", 200), ("no", 409)):
        link = sign(link_to(server.root, answer)._replace(task=task), server.token)
        assert server.ask("POST", f"/answer/{link}", token=None).status == status


def test_what_needs_no_key_may_be_sent_again(server: Server, task: str) -> None:
    spawned(server, task, ["sleep", "60"], name="a")
    for verb in ("pause", "pause", "unpause", "unpause", "cancel", "cancel", "seen", "seen"):
        assert server.post(f"/tasks/{task}/workers/a/{verb}").status == 200, verb


@pytest.mark.parametrize("what", ["spawn", "send", "tasks", "retry"])
def test_twenty_at_once_are_one(server: Server, task: str, what: str) -> None:
    spawned(server, task, ["false"], name="a")
    ended(server, task, "a")
    spawned(server, task, ["sleep", "60"], name="b")
    paths: dict[str, tuple[str, dict[str, Any]]] = {
        "spawn": (f"/tasks/{task}/spawn", {"argv": ["true"], "queue": True}),
        "send": (f"/tasks/{task}/workers/b/send", {"text": "hello"}),
        "tasks": ("/tasks", {"title": "Port it"}),
        "retry": (f"/tasks/{task}/workers/a/retry", {"queue": True}),
    }
    path, body = paths[what]
    with ThreadPoolExecutor(20) as threads:
        answers = [one.done() for one in threads.map(lambda _: server.post(path, {**body, "key": "k"}), range(20))]
    assert (
        len({one.get("agentInstance", "") + one.get("messageId", "") + one.get("taskId", "") for one in answers}) == 1
    )
    assert sum(one.get("reused") is True for one in answers) == (0 if what == "send" else 19)
    assert len(names(server, task)) == (3 if what in {"spawn", "retry"} else 2)
    server.post(f"/tasks/{task}/workers/b/cancel").done()
    for name in {*names(server, task)}:
        ended(server, task, name)
