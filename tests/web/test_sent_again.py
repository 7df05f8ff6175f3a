"""At stake: whatever is sent to the server a second time, because its answer was lost, changes nothing a second time.

Each POST route of the description is in one of two tables: its requests have a key, or it says why it needs none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.agent_steps import agent, agent_world, ends
from tests.house import PACKAGE
from tests.repositories import new_repository
from tests.support import run, wait_until, worker
from tests.web.support import API, Answered, Server, ended, serving, spawned

#: What a worker that was started has become meanwhile; and that this is told of one that was started before.
_MEANWHILE = frozenset({"reused", "status", "pid", "completed_at", "duration"})
_ONE = "/tasks/t1/workers/{}/{}".format
_HELD = ["sleep", "600"]


def nothing(_server: Server) -> None:
    """Need no worker."""


def at_work(server: Server) -> None:
    """Have two workers, a and b, at work."""
    for name in ("a", "b"):
        spawned(server, "t1", _HELD, name=name)


def failed(server: Server) -> None:
    """Have two workers, a and b, that have failed."""
    for name in ("a", "b"):
        spawned(server, "t1", ["false"], name=name)
        ended(server, "t1", name)


def answered(_server: Server) -> None:
    """Have an agent that has answered."""
    agent("say hello")
    ends()


def from_template(server: Server) -> None:
    """Have a task that was made from a template with two workers."""
    folder = server.root / "templates" / "two"
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text("roster:\n- {name: a, argv: ['true']}\n- {argv: ['true']}\n", encoding="utf-8")
    run("trust", folder)
    server.post("/tasks", {"template": "two", "id": "two"}).done()


def paused(server: Server) -> None:
    """Have two workers that are paused."""
    at_work(server)
    server.post("/workers/pause", _TWO).done()


def held(server: Server) -> None:
    """Have a task whose queue is held."""
    server.post("/tasks/t1/pause").done()


def asking(server: Server) -> None:
    """Have a worker that asks."""
    spawned(server, "t1", worker("asks", "--kind", "confirm", "Go?"), name="a")
    wait_until(lambda: server.get("/interact").done(), what="the question")


def in_worktree(server: Server) -> None:
    """Have a worker that has ended and had a worktree."""
    repository = new_repository(server.root.parent / "repository")
    spawned(server, "t1", ["true"], name="a", cwd=str(repository), worktree=True)
    ended(server, "t1", "a")


_TWO = {"workers": [{"taskId": "t1", "agentInstance": name} for name in ("a", "b")]}
_TRUE: dict[str, Any] = {"argv": ["true"], "queue": True}


class Keyed(NamedTuple):
    """A request with a key, and another one to which the same key is given."""

    path: str
    body: dict[str, Any]
    #: A path and a body that differ; None where nothing but the key can be said.
    other: tuple[str, dict[str, Any]] | None
    before: Callable[[Server], None] = nothing
    #: Where the key is in the body: beside the rest, or in each item of this list.
    items: str = ""


KEYED = {
    "new": Keyed("/tasks", {"title": "Port it"}, ("/tasks", {"title": "Port that"})),
    "spawn": Keyed("/tasks/t1/spawn", _TRUE, ("/tasks/t1/spawn", {"argv": ["false"]})),
    "spawn-batch": Keyed(
        "/tasks/t1/spawn-batch", {"workers": [_TRUE]}, ("/tasks/t1/spawn-batch", {"workers": [{"argv": ["false"]}]}),
        items="workers",
    ),
    "spawn-template": Keyed("/tasks/two/spawn-template", {}, None, from_template),
    "send": Keyed(_ONE("a", "send"), {"text": "one"}, (_ONE("a", "send"), {"text": "two"}), at_work),
    "resume": Keyed(_ONE("a", "resume"), {"prompt": "say a"}, (_ONE("a", "resume"), {"prompt": "say b"}), answered),
    "retry": Keyed(_ONE("a", "retry"), {"queue": True}, (_ONE("b", "retry"), {"queue": True}), failed),
    "retry.several": Keyed(
        "/tasks/t1/retry", {"instances": ["a", "b"], "queue": True}, ("/tasks/t1/retry", {"instances": ["b"]}),
        failed,
    ),
    "workers.retry": Keyed("/workers/retry", _TWO, ("/workers/retry", {"workers": _TWO["workers"][:1]}), failed),
    "workers.send": Keyed(
        "/workers/send", {**_TWO, "text": "one"}, ("/workers/send", {**_TWO, "text": "two"}), at_work
    ),
    "task": Keyed("/task", {"objective": "say a"}, ("/task", {"objective": "say b"})),
    "task_parallel": Keyed(
        "/task/parallel", {"tasks": [{"objective": "say a"}]}, ("/task/parallel", {"tasks": [{"objective": "say b"}]}),
        items="tasks",
    ),
}  # fmt: skip
#: The answers of these say of each item whether its key has done something else: they are 200.
_OF_EACH = frozenset({"workers.retry", "workers.send", "task", "task_parallel"})


class Keyless(NamedTuple):
    """A request that needs no key, and why."""

    reason: str
    path: str
    body: dict[str, Any]
    before: Callable[[Server], None]
    #: Its second answer may be another one.
    is_news: bool = False


_STATE = "it names the state that is wanted: a second one finds it"
_READS = "it waits or reads, and changes nothing"
KEYLESS = {
    "cancel": Keyless(_STATE, "/tasks/t1/cancel", {"instances": ["a"]}, at_work),
    "cancel.one": Keyless(_STATE, _ONE("a", "cancel"), {}, at_work),
    "workers.cancel": Keyless(_STATE, "/workers/cancel", _TWO, at_work),
    "pause": Keyless(_STATE, _ONE("a", "pause"), {}, at_work),
    "unpause": Keyless(_STATE, _ONE("a", "unpause"), {}, paused),
    "workers.pause": Keyless(_STATE, "/workers/pause", _TWO, at_work),
    "workers.unpause": Keyless(_STATE, "/workers/unpause", _TWO, paused),
    "pause.queue": Keyless(_STATE, "/tasks/t1/pause", {}, nothing),
    "unpause.queue": Keyless(_STATE, "/tasks/t1/unpause", {}, held),
    "resume-queue": Keyless("who has an environment by then is left alone", "/tasks/t1/resume-queue", {}, nothing),
    "seen": Keyless(_STATE, _ONE("a", "seen"), {}, failed),
    "workers.seen": Keyless(_STATE, "/workers/seen", _TWO, failed),
    "worktrees.remove": Keyless("there is one to be removed", _ONE("a", "worktree/remove"), {}, in_worktree),
    "interact.respond": Keyless("the question is one", _ONE("a", "interact/q1"), {"answer": "yes"}, asking),
    "wait-any": Keyless(
        "an end counts as told once whoever waits has it", "/tasks/t1/wait-any", {"timeoutSeconds": 5}, failed, True
    ),
    "wait-all": Keyless(_READS, "/tasks/t1/wait-all", {"timeoutSeconds": 5}, failed),
    "wait": Keyless(_READS, _ONE("a", "wait"), {"timeoutSeconds": 5}, failed),
    "join": Keyless(_READS, "/tasks/t1/join", {}, failed, True),
}  # fmt: skip


@pytest.fixture
def server(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Return a server of a task, where agents need no model."""
    agent_world(tmp_path, monkeypatch, cap=4)
    with serving(root) as server:
        yield server
        for task in server.get("/tasks").done():
            server.post(f"/tasks/{task['taskId']}/cancel", {"all": True}).done()


def posted(server: Server) -> dict[str, Any]:
    """Return the POST routes of the description, by the names of their operations."""
    paths = server.get("/openapi.json").done()["paths"]
    return {one["post"]["operationId"]: one["post"] for one in paths.values() if "post" in one}


def sent(server: Server, path: str, body: dict[str, Any]) -> Answered:
    """Send a request; the paths of delegation are below no prefix."""
    prefix = "" if path.startswith("/task/") or path == "/task" else API
    return server.ask("POST", f"{prefix}{path}", body)


def with_key(one: Keyed, body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with the key `k`."""
    if one.items:
        return {**body, one.items: [{**item, "key": "k"} for item in body[one.items]]}
    return {**body, "key": "k"}


def lasting(value: Any) -> Any:
    """Return an answer without what has become of the workers meanwhile."""
    if isinstance(value, list):
        return [lasting(one) for one in value]
    if isinstance(value, dict):
        return {name: lasting(one) for name, one in value.items() if name not in _MEANWHILE}
    return value


def state(server: Server) -> Any:
    """Return what there is: the workers of each task, and what was done to them and sent to them."""
    tasks = [one["taskId"] for one in server.get("/tasks").done()]
    rows = {task: sorted(row["agentInstance"] for row in server.get(f"/tasks/{task}/list").done()) for task in tasks}
    for task, names in rows.items():
        for name in names:
            if name not in {"a", "b"}:  # Those may be at work until the end of the test.
                ended(server, task, name)
    texts = {
        str(file.relative_to(server.root)): json.loads(file.read_bytes())["text"]
        for file in server.root.glob("tasks/*/agents/*/inbox/*.json")
    }
    done = [
        (event["taskId"], event["type"], event.get("agentInstance"))
        for task in tasks for event in server.get(f"/tasks/{task}/events").done()["events"]
    ]  # fmt: skip
    return rows, texts, sorted(map(str, done))


def test_the_page_offers_to_send_again_what_needs_no_key_and_nothing_else_without_one() -> None:
    page = (PACKAGE / "interfaces/web/page/js/api.js").read_text(encoding="utf-8")
    pattern = re.search(r"^const SAME_TWICE = /(.*)/;$", page, re.MULTILINE)
    assert pattern is not None
    same_twice = re.compile(pattern[1].replace(r"\/", "/"))
    assert [name for name, one in KEYED.items() if same_twice.search(one.path)] == []
    left_out = {name for name, one in KEYLESS.items() if not same_twice.search(one.path)}
    assert left_out == {"wait-any", "wait-all", "wait", "join"}, "the page does not ask for these"


def test_each_route_that_changes_something_has_a_key_or_says_why_it_needs_none(server: Server) -> None:
    takes_key = {name for name, operation in posted(server).items() if '"key"' in json.dumps(operation["requestBody"])}
    takes_key.add("task_parallel")  # Its items are checked one by one: each takes what `task` takes.
    assert takes_key == KEYED.keys()
    assert posted(server).keys() - takes_key == KEYLESS.keys()
    assert all(one.reason for one in KEYLESS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYED)
def test_the_same_request_with_its_key_does_nothing_twice_and_another_one_conflicts(server: Server, name: str) -> None:
    one = KEYED[name]
    one.before(server)
    first = sent(server, one.path, with_key(one, one.body)).done()
    then = state(server)
    second = sent(server, one.path, with_key(one, one.body))
    assert (second.status, lasting(second.done())) == (200, lasting(first))
    assert state(server) == then
    if one.other is not None:
        path, body = one.other
        refused = sent(server, path, with_key(one, body))
        if name in _OF_EACH:
            assert refused.status == 200
            assert "that request differs in" in json.dumps(refused.json)
        else:
            assert (refused.status, refused.problem["name"]) == (409, "CONFLICT")
        assert state(server) == then


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYLESS)
def test_what_needs_no_key_changes_nothing_when_it_is_sent_again(server: Server, name: str) -> None:
    one = KEYLESS[name]
    one.before(server)
    first = sent(server, one.path, one.body).done()
    if one.before is asking:
        ended(server, "t1", "a")
    then = state(server)
    second = sent(server, one.path, one.body).done()
    assert state(server) == then
    if not one.is_news:
        assert without_notes(second) == without_notes(first)


def without_notes(value: Any) -> Any:
    """Return an answer without the words that say that it was so before."""
    if isinstance(value, list):
        return [without_notes(one) for one in value]
    if isinstance(value, dict):
        return {name: without_notes(one) for name, one in value.items() if name not in {"note", "detail"}}
    return value
