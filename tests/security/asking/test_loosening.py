"""At stake: what an agent is asked about, it has done unasked by no agent that it starts or continues."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.domain.agent.permissions import first_beyond
from agentctl.supervision.worker.spec import WorkerSpec
from tests.agent_steps import agent, agent_world, blocked, ends, inside
from tests.life import forge, set_config
from tests.steps import Task
from tests.support import run, start_argv, worker

BEYOND = "may not allow its child what it is not allowed itself"
LISTING = {"tool": "Bash", "pattern": "ls *", "answer": "allow"}
#: What the screen does with a line.
DISPATCH = """
import os, sys
from agentctl.adapters.taskdir import Root
from agentctl.errors import AgentctlError
from agentctl.interfaces.screen.start.start_line import known_names, parse_start_line, start_by_line
root = Root(os.environ["AGENTCTL_ROOT"])
try:
    print(start_by_line(root, parse_start_line(sys.argv[1], known_names(root))))
except AgentctlError as error:
    print(error)
"""
ALL = {"tool": "*", "pattern": "*", "answer": "allow"}
SHELL = {"tool": "Bash", "pattern": "*", "answer": "allow"}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    made = agent_world(tmp_path, monkeypatch, cap=5)
    set_config(made, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1)
    return made


def kept(task: Task, *rules: dict[str, str]) -> dict[str, str]:
    """Start an agent under these rules that stays; return what its processes have in their environment."""
    agent("say x", "--keep", *(("--permissions", json.dumps(rules)) if rules else ()))
    blocked()
    return inside(task, "a")


def under(*rules: dict[str, str]) -> str:
    """Let an agent that a person started under these rules end; return its name."""
    agent("say x", "--permissions", json.dumps(rules), name="free")
    ends("free")
    return "free"


def loose(task: Task, permissions: str = "allow") -> Task:
    """Make a task whose rules allow something, for which the person has vouched."""
    run("new", "Loose", "--id", "loose")
    made = Task(task.path.with_name("loose"))
    set_config(made, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1, permissions=permissions)
    run("trust", made.path / "task.yaml")
    run("use", "t1")
    return made


# -- one that a person started, continued ------------------------------------------------------------------------------


@pytest.mark.slow
def test_who_is_continued_is_not_freer_than_who_continues_it(task: Task) -> None:
    under(ALL)
    parent = kept(task)
    refused = run("resume", "free", "permit touch y", env=parent, check=False)
    assert (refused.code, f"a {BEYOND}" in refused.err) == (1, True)
    run("resume", "free", "--name", "again", "permit touch y")
    assert ends("again")["result"]["finalMessage"] == "allowed", "a person continues whom they want"
    run("cancel", "a")


@pytest.mark.slow
def test_whose_work_is_tried_again_is_not_freer_than_who_tries_it(task: Task) -> None:
    """By `retry`, and by the line of the screen."""
    under(ALL)
    loose(task)
    parent = kept(task)
    refused = run("retry", "free", env=parent, check=False)
    assert (refused.code, f"a {BEYOND}" in refused.err) == (1, True)
    line = start_argv([sys.executable, "-c", DISPATCH, "@loose general permit touch y"], env=parent)
    assert BEYOND in line.communicate()[0]
    assert not task.agent("free-2").exists()
    run("retry", "free")
    assert ends("free-2")["result"]["finalMessage"] == "x"
    run("cancel", "a")


@pytest.mark.slow
def test_a_message_has_no_freer_agent_do_it(task: Task) -> None:
    """But those above decide themselves what they do with what they are told."""
    agent("say x", "--keep", "--permissions", json.dumps([ALL]), name="free")
    blocked("free")
    parent = kept(task)
    refused = run("send", "free", "permit touch y", env=parent, check=False)
    assert (refused.code, BEYOND in refused.err) == (1, True)
    assert task.events("message.sent") == []
    run("spawn", "--agent", "general", "--name", "child", "--keep", "say x", env=inside(task, "free"))
    blocked("child")
    run("send", "child", "say y", env=inside(task, "free"))
    run("send", "free", "say z", env=inside(task, "child"))
    run("cancel", "--all")


def test_nor_by_a_tool(task: Task) -> None:
    run("spawn", "--agent", "general", "--name", "free", "--wait", "say x", env=kept(task))
    spec = task.agent("free") / "spec.json"
    forge(spec, order={**json.loads(spec.read_bytes())["order"], "permissions": [ALL]})
    calls = json.dumps([["resume_agent", {"id": "free"}, 20]])
    process = start_argv(worker("calls_tools", "codex", calls), env=inside(task, "a"))
    answer = json.loads(process.communicate()[0].splitlines()[1])
    assert BEYOND in answer["error"]
    run("cancel", "a")


@pytest.mark.slow
def test_it_continues_who_is_as_free_as_it_is(task: Task) -> None:
    under(LISTING)
    parent = kept(task, SHELL, LISTING)
    run("resume", "free", "--name", "again", "permit ls y", env=parent)
    assert ends("again")["result"]["finalMessage"] == "allowed"
    run("cancel", "a")


@pytest.mark.slow
def test_its_own_child_it_continues_under_the_rules_of_task_and_definition(task: Task, root: Path) -> None:
    set_config(task, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1, permissions="[" + json.dumps(LISTING) + "]")
    run("trust", task.path / "task.yaml")
    definition = root / "agents" / "builder.md"
    definition.parent.mkdir(exist_ok=True)
    rules = [{"tool": "Bash", "pattern": "make", "answer": "allow"}]
    definition.write_text(f"---\ndescription: Builds.\npermissions: {json.dumps(rules)}\n---\n", encoding="utf-8")
    run("trust", definition)
    parent = kept(task)
    run("spawn", "--agent", "builder", "--name", "b", "--wait", "permit make", env=parent)
    run("resume", "b", "--name", "again", "permit ls y", env=parent)
    assert [ends(name)["result"]["finalMessage"] for name in ("b", "again")] == ["allowed", "allowed"]
    run("cancel", "a")


# -- another task ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_other_tasks_rules_free_its_child(task: Task) -> None:
    """Nor where a plain command in that task is between them."""
    other, parent = loose(task), kept(task)
    line = ("spawn", "--task", "loose", "--agent", "general", "--name", "b")
    refused = run(*line, "permit touch y", env=parent, check=False)
    assert (refused.code, f"a {BEYOND}" in refused.err) == (1, True)
    run("spawn", "--task", "loose", "--name", "plain", "--", *worker("sleeps", 60), env=parent)
    refused = run(*line, "permit touch y", env=inside(other, "plain"), check=False)
    assert (refused.code, f"plain {BEYOND}" in refused.err) == (1, True)
    run(*line, "--permissions", "deny", "--wait", "permit touch y", env=parent)
    assert run("result", "b", "--task", "loose").out == "denied\n"
    run("cancel", "a")


@pytest.mark.slow
def test_in_its_own_task_the_rules_of_that_hold(task: Task) -> None:
    """Also in a sub-task, which has taken them over."""
    set_config(task, maxConcurrentAgents=5, maxDepth=3, graceSeconds=1, permissions="[" + json.dumps(LISTING) + "]")
    run("trust", task.path / "task.yaml")
    parent = kept(task, {"tool": "*", "pattern": "*", "answer": "ask"})
    run("spawn", "--agent", "general", "--name", "b", "permit ls y", env=parent)
    assert ends("b")["result"]["finalMessage"] == "allowed"
    assert "allowed" in run("subtask", "general", "permit ls y", "--json", env=parent).out
    run("cancel", "a")


# -- what a worker made of its own order -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"order": 5},
        {"order": {"permissions": [5]}},
        {"order": {"permissions": [{"tool": "Bash", "answer": "allow"}]}},
        {"order": {"deniedAbove": [{}]}},
        {"order": {"cwd": 5}},
        {"order": {}, "depth": "x"},
    ],
)
def test_an_order_that_no_spawn_wrote_is_told_and_starts_no_agent(task: Task, changes: dict[str, Any]) -> None:
    forged = task.agent("a")
    forged.mkdir(parents=True)
    spec = WorkerSpec("a", "general", ["true"], "/", [], 0, 1, 0).to_json()
    (forged / "spec.json").write_text(json.dumps({**spec, **changes}), encoding="utf-8")
    line = ("spawn", "--agent", "general", "--permissions", json.dumps([LISTING]), "say x")
    refused = run(*line, env=inside(task, "a"), check=False)
    assert refused.code == 1, refused
    assert "bug" not in refused.err
    assert f"{forged}/spec.json" in refused.err or BEYOND in refused.err


# -- what is as much ---------------------------------------------------------------------------------------------------

ASKED = {"tool": "Bash", "pattern": "rm *", "answer": "ask"}
DENIED = {"tool": "Bash", "pattern": "rm *", "answer": "deny"}
NOTHING = {"tool": "*", "pattern": "*", "answer": "ask"}


@pytest.mark.parametrize(
    ("own", "wished", "beyond"),
    [
        ([], [], None),
        ([], [DENIED, ASKED], None),
        ([], [LISTING], LISTING),
        ([LISTING], [LISTING], None),
        ([LISTING], [SHELL], SHELL),
        ([ALL], [LISTING], None),
        ([ALL], [ALL], None),
        ([ASKED, SHELL], [SHELL], SHELL),
        ([ASKED, SHELL], [ASKED, SHELL], None),
        ([ASKED, SHELL], [DENIED, ASKED, SHELL], None),
        ([ASKED, ALL], [LISTING], LISTING),
        ([SHELL, ASKED], [SHELL], None),
        ([DENIED, ALL], [LISTING], LISTING),
        ([], [NOTHING, SHELL], None),
        ([NOTHING, SHELL], [SHELL], SHELL),
    ],
)
def test_a_rule_counts_where_it_stands(own: Any, wished: Any, beyond: Any) -> None:
    assert first_beyond(wished, own) == beyond
