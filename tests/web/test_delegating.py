"""Work is delegated by the paths of a service, and workers are steered from beginning to end, over HTTP alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import worker
from tests.web.support import API, Server, ended, new_task, serving, spawned

pytestmark = pytest.mark.server

ECHO = """---
name: {name}
description: Answers with its prompt.
driver: command
argv: ["/bin/sh", "-c", {line}, "sh"]
---
"""


@pytest.fixture(autouse=True)
def agents(root: Path, tmp_path: Path) -> None:
    """Define agents that need no model."""
    folder = tmp_path / "home" / ".config" / "agentctl" / "agents"
    folder.mkdir(parents=True)
    for name, line in (("echo", '"printf %s \\"$1\\""'), ("fails", '"echo no; exit 3"'), ("sleeps", '"sleep 60"')):
        (folder / f"{name}.md").write_text(ECHO.format(name=name, line=line), encoding="utf-8")


def test_one_task_and_several(server: Server) -> None:
    one = server.ask("POST", "/task", {"objective": "Look", "subagent_type": "echo", "session_id": "s"}).done()
    assert one.keys() >= {
        "task_id", "objective", "agent_type", "status", "result", "error", "duration", "started_at", "completed_at",
    }  # fmt: skip
    assert (one["status"], one["result"], one["objective"], one["agent_type"]) == ("completed", "Look", "Look", "echo")

    items = [
        {"objective": "a", "subagent_type": "echo", "context": {"k": 1}}, {"objective": "b", "subagent_type": "fails"},
        {"objective": "c", "subagent_type": "nobody"},
    ]  # fmt: skip
    several = server.ask("POST", "/task/parallel", {"tasks": items, "session_id": "s"}).done()["results"]
    assert [each["status"] for each in several] == ["completed", "failed", "failed"]
    assert several[0]["result"] == 'a\n\nContext:\n{\n  "k": 1\n}'
    assert several[2]["error"].startswith("Unknown agent type: nobody")

    session = server.ask("GET", "/task/session/s").done()
    assert [each["objective"] for each in session] == ["Look", "a", "b"]
    assert [each["status"] for each in session] == ["completed", "completed", "failed"]
    assert server.ask("GET", "/task/session/other").done() == []


def test_a_key_holds_where_the_server_is_started_again_in_another_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends a request says no folder in it."""
    asked, found = {"objective": "Look", "subagent_type": "echo", "key": "k"}, []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with serving(root) as server:
            found.append(server.ask("POST", "/task", asked).done())
    assert found[0]["task_id"] == found[1]["task_id"]
    assert [one["status"] for one in found] == ["completed", "completed"]


def test_the_time_of_a_task(server: Server) -> None:
    late = server.ask("POST", "/task", {"objective": "x", "subagent_type": "sleeps", "timeout_seconds": 0.2}).done()
    assert late["status"] == "timeout"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/task", {}), ("/task", {"objective": ""}), ("/task", {"objective": "x", "unknown": 1}),
     ("/task/parallel", {"tasks": "x"}), ("/task/parallel", {})],
)  # fmt: skip
def test_what_is_no_task(server: Server, path: str, body: object) -> None:
    assert server.ask("POST", path, body).problem["name"] == "USAGE"


def test_workers_are_steered(server: Server, tmp_path: Path) -> None:
    task = new_task(server)
    at = f"/tasks/{task}/workers"
    name = spawned(server, task, worker("waits_for_file", tmp_path / "never"), name="w", cwd="/")
    assert server.post(f"{at}/{name}/pause").done()["paused"] is True
    assert server.get(f"{at}/{name}").done()["paused"] is True
    assert server.post(f"{at}/{name}/unpause").done()["paused"] is False
    assert server.post(f"{at}/{name}/send", {"text": "hello"}).done()["messageId"]
    done = server.post(f"{at}/{name}/cancel", {"grace_seconds": 1}).done()
    assert (done["cancelled"], done["status"], done["survivors"]) == (True, "cancelled", [])

    again = server.post(f"{at}/{name}/retry", {"name": "w-again"}).done()
    assert again["agentInstance"] == "w-again"
    assert server.post(f"/tasks/{task}/cancel", {"all": True}).done()[0]["agentInstance"] == "w-again"

    tried = server.post(f"/tasks/{task}/retry", {"status": "cancelled"}).done()
    assert [one["agentInstance"] for one in tried] == ["w-2"]
    assert server.post(f"/tasks/{task}/cancel", {"status": "running"}).done()[0]["agentInstance"] == "w-2"

    batch = [{"argv": ["echo", "one"], "name": "b1"}, {"prompt": "two", "agent": "echo", "name": "b2"}]
    assert [one["agentInstance"] for one in server.post(f"/tasks/{task}/spawn-batch", {"workers": batch}).done()] == [
        "b1",
        "b2",
    ]
    assert {one["status"] for one in server.post(f"/tasks/{task}/wait-all").done()} == {"completed", "cancelled"}
    assert server.get(f"{at}/b2/result").done()["text"] == "two"
    joined = server.post(f"/tasks/{task}/join").done()
    assert {one["agentInstance"] for one in joined["workers"]} == {"w-2", "b1", "b2"}, "the newest of each work"
    assert server.post(f"/tasks/{task}/resume-queue").done() == []


def test_a_template(server: Server, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    made = server.post(
        "/tasks", {"template": "shipped:survey", "set": [f"path={tmp_path / 'src'}", "focus=."], "id": "survey"}
    ).done()
    assert made["taskId"] == "survey"
    started = server.post("/tasks/survey/spawn-template").done()
    assert {one["agentInstance"] for one in started} >= {"size", "report"}
    server.post("/tasks/survey/cancel", {"all": True}).done()


def test_a_task_that_is_made_here_is_not_chosen(server: Server) -> None:
    new_task(server, "first")
    assert [one["current"] for one in server.get("/tasks").done()] == [False]


def test_an_output_is_sent_whole(server: Server) -> None:
    task, size = new_task(server), 6_000_000
    spawned(server, task, ["head", "-c", str(size), "/dev/zero"], name="much", cwd="/")
    ended(server, task, "much")
    answer = server.ask("GET", f"{API}/tasks/{task}/workers/much/logs/stdout")
    assert (answer.status, len(answer.body), answer.headers["Content-Length"]) == (200, size, str(size))
    part = server.get(f"/tasks/{task}/workers/much/logs/stdout", {"Range": "bytes=0-"})
    assert part.status == 206
    assert part.headers["Content-Range"] == f"bytes 0-{len(part.body) - 1}/{size}"
