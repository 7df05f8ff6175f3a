"""At stake: sub-agents of other programs are shown but not controlled, and no hook ever delays one of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.documents.workers.worker import WorkerRow
from tests.life import read
from tests.steps import new_task, spawn
from tests.support import run, start_argv


def told(event: str, agent_id: str = "agent-1234567890", **more: Any) -> str:
    """Return the JSON that a program passes to its hook."""
    return json.dumps(
        {"hook_event_name": event, "session_id": "s1", "agent_id": agent_id, "agent_type": "Explore", **more}
    )


def test_a_session_by_hand_is_observed_in_the_task(root: Path) -> None:
    new_task()
    run("hook", stdin=told("SubagentStart"))
    run("hook", stdin=told("SubagentStart", "other-9999"))
    run("hook", stdin=told("SubagentStop", last_assistant_message="found it"))
    rows = run("list", "--json").json
    assert [(one["agentInstance"], one["status"], one["observed"]) for one in rows] == [
        ("explore-34567890", "completed", True),
        ("explore-her-9999", "running", True),
    ]
    assert (rows[0]["command"], rows[0]["agent"]) == ("found it", "Explore")
    not_here = {"host", "taskId", "placement", "refused", "unreadable", "after"}
    not_here |= {"work", "nthTry", "retryOf", "continues", "supersededBy"}
    assert set(rows[0]) | not_here == set(WorkerRow.__annotations__), "what is not known is null"
    shown = run("tree").out
    assert "explore-34567890" in shown
    assert "explore-her-9999" in shown
    assert run("list").out.startswith("explore-34567890\tcompleted\tobserved")
    assert "explore-her-9999  [Explore]  running  observed" in shown
    assert run("show", "explore-34567890", "--json").json == {**rows[0], "taskId": "t1"}
    assert run("tree", "explore-34567890").out.splitlines()[1].startswith("  explore-34567890  [Explore]  completed")
    for command in ("cancel", "wait", "result", "logs", "pause"):
        refused = run(command, "explore-her-9999", check=False)
        assert (refused.code, "it is observed, not a worker" in refused.err) == (1, True)
    assert run("show", "nobody", check=False).code == 3
    assert run("wait-any", check=False).code == 6, "nobody waits for what is only observed"


def test_in_a_worker_it_is_a_row_of_its_activity(root: Path) -> None:
    task = new_task()
    hook = [sys.executable, "-m", "agentctl", "hook"]
    script = "\n".join(f"echo '{told(event)}' | {' '.join(hook)}" for event in ("SubagentStart", "SubagentStop"))
    spawn(["/bin/sh", "-c", script], "--wait", name="a1")
    lines = (task.agent("a1") / "activity.jsonl").read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(one["type"], one["phase"], one["agentType"]) for one in rows] == [
        ("agent", "start", "Explore"),
        ("agent", "end", "Explore"),
    ]
    assert not (task.path / "observed.jsonl").exists()
    assert read(task.agent("a1") / "exit.json")["status"] == "completed"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"hook_event_name": "Stop"}', '{"hook_event_name": "SubagentStart"}', "\x00"]
)
def test_whatever_it_is_told_it_says_nothing_and_fails_never(root: Path, text: str) -> None:
    new_task()
    done = run("hook", stdin=text)
    assert (done.out, done.err) == ("", "")
    assert run("list", "--json").json == []


def test_where_there_is_no_task_nothing_is_made(root: Path) -> None:
    done = run("hook", stdin=told("SubagentStart", cwd=str(Path.cwd())))
    assert (done.out, done.err) == ("", "")
    assert not root.exists()


def test_it_loads_no_parser(root: Path) -> None:
    """At each start of a sub-agent, the hook costs the program the start of Python and little more."""
    new_task()
    code = (
        "import sys; from agentctl.interfaces.cli.app import main; code = main(['hook']);"
        "print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    process = start_argv([sys.executable, "-c", code])
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert not {"typer", "rich", "yaml", "asyncio", "psutil", "pydantic"} & set(err.split())
