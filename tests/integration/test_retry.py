"""At stake: what is started once more is what was started before, and never something that may do more."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agent_steps import agent, agent_world, ends, plays
from tests.life import set_config
from tests.repositories import new_repository
from tests.shells import define_shells
from tests.steps import Task, new_task, row, spawn, spawn_batch, statuses
from tests.support import PROGRAM, run, wait_until, worker

DENIED = {"tool": "Bash", "pattern": "rm *", "answer": "deny"}
LISTED = {"tool": "Bash", "pattern": "ls", "answer": "allow"}
MADE = {"tool": "Bash", "pattern": "make", "answer": "allow"}


def spec(task: Task, instance: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((task.agent(instance) / "spec.json").read_bytes())
    return found


def refused(*args: str) -> str:
    done = run("retry", *args, check=False)
    assert done.code != 0, done
    return done.err


@pytest.mark.slow
def test_a_command_is_started_again_as_it_was_with_the_environment_of_now(root: Path, tmp_path: Path) -> None:
    task = new_task()
    place = tmp_path / "a place"
    place.mkdir()
    script = 'echo "$WORD in $PWD"; [ "$WORD" = right ]'
    spawn_batch(
        [
            {"name": "first", "argv": ["true"]},
            {"name": "build", "argv": ["sh", "-c", script], "cwd": str(place), "after": ["first"], "key": "k",
             "retries": 1, "retry_delay_seconds": 0, "timeout_seconds": 50, "grace_seconds": 3, "priority": 4},
        ]
    )  # fmt: skip
    run("wait", "build", check=False)
    assert row("build")["status"] == "failed"
    told = run("retry", "build", "--json", env={"WORD": "right"}).json
    assert (told["agentInstance"], told["taskId"], told["reused"]) == ("build-2", "t1", False)
    run("wait", "build-2")
    assert run("result", "build-2").out == f"right in {place}\n"
    before, after = spec(task, "build"), spec(task, "build-2")
    changed = {key for key in before if before[key] != after.get(key)}
    assert changed <= {"agentInstance", "key", "envNames"}
    assert (after["after"], after["key"], after["retryOf"]) == (["first"], None, "build")
    line = run("retry", "build-2", env={"WORD": "right"}).out
    assert line.startswith("build-3 running")
    run("wait", "build")
    assert run("retry", "build", "--name", "other", env={"WORD": "right"}).out.startswith("other running")
    run("wait-all", check=False)
    assert statuses() == dict.fromkeys(("first", "build-2", "build-3", "other"), "completed") | {"build": "failed"}


@pytest.mark.slow
def test_a_lost_worker_is_started_again(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    shim = psutil.Process(task.shim_of("a"))
    children = shim.children()
    shim.send_signal(signal.SIGKILL)
    for child in children:
        child.send_signal(signal.SIGKILL)
    psutil.wait_procs([shim, *children], timeout=20)
    assert run("retry", "a", "--json").json["agentInstance"] == "a-2"
    assert statuses() == {"a": "failed", "a-2": "running"}
    run("cancel", "a-2")


@pytest.mark.slow
def test_what_cannot_be_started_again_says_what_to_do_instead(root: Path, tmp_path: Path) -> None:
    define_shells()
    task = new_task(cap=1)
    spawn(worker("sleeps", 60), name="busy")
    assert "busy has not ended\nhint: agentctl cancel busy ends it" in refused("busy")
    assert "no worker 'nobody'" in refused("nobody")
    run("cancel", "busy")
    assert "the instance 'busy' exists already" in refused("busy", "--name", "busy")
    spawn(["sh", "-c", f"until [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done"], name="holds")
    full = run("retry", "busy", check=False)
    assert (full.code, statuses()) == (5, {"busy": "cancelled", "holds": "running"})
    assert run("retry", "busy", "--queue").out == "busy-2 queued in t1\n"
    run("cancel", "busy-2")
    (tmp_path / "gate").touch()
    run("wait", "holds")
    answer = run("subtask", "shell", ": it", "--intent", "true", "--json").json
    err = refused("shell-1", "--task", answer["taskId"])
    assert "shell-1 is the one worker for which the sub-task it was made" in err
    assert 'agentctl subtask shell "TITLE" --task t1 makes' in err
    shutil.rmtree(Path(os.environ["HOME"], ".config/agentctl/own"))
    assert "was not made here by you" in refused("busy")
    assert task.order("agent.queued") == ["busy", "holds", "busy-2"]


@pytest.mark.slow
def test_a_worktree_is_made_anew_from_the_same_folder(root: Path, tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    task = new_task()
    spawn(["sh", "-c", "pwd; cat c.txt; echo changed > c.txt"], "--worktree", "--cwd", repository / "sub", name="a")
    run("wait", "a")
    told = run("retry", "a", "--json").json
    run("wait", "a-2")
    folder = root / "worktrees" / "t1" / "a-2"
    assert told["worktree"] == {"path": str(folder), "branch": "agentctl/t1/a-2"}
    assert (task.agent("a-2") / "stdout.log").read_text() == f"{folder}/sub\nc\n"


@pytest.mark.slow
def test_an_agent_gets_its_prompt_and_options_in_a_new_session(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "array"}')
    rules = json.dumps([LISTED, DENIED])
    agent("argv", "--model", "big", "--effort", "low", "--permissions", rules, "--max-turns", "5",
          "--output-schema", schema)  # fmt: skip
    first = ends()
    second = ends(run("retry", "a", "--json").json["agentInstance"])
    before, after = spec(task, "a"), spec(task, "a-2")
    own = {"instance", "session", "walls", "mcpServers"}
    assert {key for key, value in before["order"].items() if after["order"][key] != value} <= own
    assert after["order"]["permissions"][:2] == [LISTED, DENIED]
    assert before["order"]["session"] != after["order"]["session"]
    assert (before["agentId"], after["agentId"]) == ("a", "a-2")
    for one in (first, second):
        assert "--model=big" in json.loads(one["result"]["finalMessage"])
    run("resume", "a", "say more", "--name", "b")
    ends("b")
    assert "b continues an earlier run" in refused("b")


@pytest.mark.slow
def test_an_agent_is_held_to_the_rules_of_today_and_to_those_that_were_given_with_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its definition and its task have taken back what they allowed, and the definition now wants more tools."""
    task = agent_world(tmp_path, monkeypatch)
    file = Path(os.environ["HOME"], ".config/agentctl/agents/mine.md")
    file.parent.mkdir(parents=True, exist_ok=True)

    def define(**keys: Any) -> None:
        file.write_text(f"---\n{json.dumps({'name': 'mine', 'description': 'd', **keys})}\n---\nDo.\n")

    define(permissions=[MADE], tools=["Bash", "Read"])
    run("spawn", "--agent", "mine", "--name", "a", "--permissions", json.dumps([LISTED]), "say hi")
    ends()
    assert spec(task, "a")["order"]["permissions"][:2] == [LISTED, MADE]
    define(permissions=[DENIED], tools=["Read", "Write"], maxTurns=3)
    run("retry", "a")
    ends("a-2")
    order = spec(task, "a-2")["order"]
    assert order["permissions"] == [LISTED, DENIED]
    assert (order["tools"], order["maxTurns"]) == (["Read"], 3)
    define(readOnly=True)
    run("retry", "a")
    ends("a-3")
    assert spec(task, "a-3")["order"]["readOnly"] is True
    define()
    run("retry", "a-3")
    ends("a-4")
    assert spec(task, "a-4")["order"]["readOnly"] is True, "what was restricted stays so"
    file.unlink()
    assert "Unknown agent type: mine" in refused("a")


@pytest.mark.slow
def test_what_an_agent_was_denied_from_above_stays_denied_to_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch, cap=3)
    set_config(task, maxConcurrentAgents=3, maxDepth=3, graceSeconds=1)
    argv = [*PROGRAM, "spawn", "--agent", "general", "--name", "child", "say hi"]
    script = f"import subprocess; subprocess.run({argv!r}, check=True); me.answer('done')"
    agent(plays(tmp_path, script), "--permissions", json.dumps([DENIED]), name="parent")
    ends("parent")
    ends("child")
    (denied,) = spec(task, "child")["order"]["deniedAbove"]
    assert denied[0] == DENIED
    run("retry", "child")
    ends("child-2")
    assert spec(task, "child-2")["order"]["deniedAbove"] == [denied]
    assert spec(task, "child-2")["parent"] is None


def test_a_definition_of_the_project_that_was_changed_has_to_be_trusted_again(root: Path) -> None:
    task = new_task()
    file = root / "agents" / "shell.md"
    file.parent.mkdir()
    file.write_text("---\ndescription: d\nargv: [sh, -c]\n---\n")
    run("trust", file)
    run("spawn", "--agent", "shell", "--name", "a", "echo one")
    run("wait", "a")
    file.write_text("---\ndescription: d\nargv: [sh, -c, 'touch made', x]\n---\n")
    assert "is not trusted" in refused("a")
    run("trust", file)
    run("retry", "a")
    run("wait", "a-2")
    wait_until(lambda: task.exit("a-2"))
    assert Path("made").exists()
