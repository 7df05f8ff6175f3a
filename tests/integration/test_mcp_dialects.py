"""At stake: each tool of each dialect keeps its contract, for agent programs and for the protocol's own client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.agent_steps import agent, agent_world, define, ends, plays
from tests.life import read, set_config
from tests.repositories import new_repository
from tests.steps import Task, statuses
from tests.support import PROGRAM, run, wait_until, worker

Call = Callable[..., Awaitable[Any]]
RESULT = ("output", "success", "turnsUsed")
TASK_RESULT = [
    "task_id", "objective", "agent_type", "status", "result", "error", "duration", "started_at", "completed_at",
]  # fmt: skip


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed and an agent that prints its prompt."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "echo", 'echo "said: $1"')
    return made


def talk(dialect: str, to: Callable[[Client, Call], Awaitable[None]]) -> None:
    """Start a server for a dialect, and connect the protocol's own client to it for `to`."""

    async def connected() -> None:
        command = [*PROGRAM, "mcp", "--tools", dialect]
        server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with Client(stdio_client(server), mode="legacy") as client:

            async def call(tool: str, **arguments: Any) -> Any:
                result = await client.call_tool(tool, arguments)
                assert isinstance(result, types.CallToolResult)
                (content,) = result.content
                assert isinstance(content, types.TextContent)
                return json.loads(content.text)

            await asyncio.wait_for(to(client, call), 45)

    asyncio.run(connected())


def test_codex(task: Task) -> None:
    async def to(client: Client, call: Call) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["spawn_agent", "send_input", "wait", "close_agent", "resume_agent", "list_agents"]
        started = await call("spawn_agent", message="say one", agent_type="worker", fork_context=True)
        assert (started["id"], started["status"] in {"queued", "running"}) == ("general-1", True)
        assert "fork_context is not honoured" in started["warnings"][0]
        kept = await call("spawn_agent", items=[{"type": "text", "text": "say kept"}], id="k", keep=True)
        assert kept["id"] == "k"
        first = await call("wait_agent", targets=["general-1"], timeout_ms=20000.0)
        assert (first["status"], first["timed_out"]) == ({"general-1": "completed"}, False)
        assert {key: first["results"]["general-1"][key] for key in RESULT} == {
            "output": "one", "success": True, "turnsUsed": 0,
        }  # fmt: skip
        follow = await call("send_input", target="general-1", message="say two")
        assert (follow["id"], follow["submission_id"]) == ("general-1", follow["instance"])
        second = await call("wait", ids=["general-1"], cursor=first["cursor"])
        assert second["results"]["general-1"]["output"] == "two"
        resumed = await call("resume_agent", id="general-1", message="say three")
        assert resumed["id"] == "general-1"
        await call("wait", ids=["general-1"])
        assert await call("close_agent", target="general-1") == {"previous_status": "completed"}
        await call("wait", ids="k")
        rows = {row["id"]: row for row in await call("list_agents") if row["status"] != "completed"}
        assert set(rows["k"]) >= {"id", "agent_type", "status", "parent", "last_message"}
        assert await call("close_agent", target="k") == {"previous_status": "blocked", "status": "completed"}
        assert (await call("wait", ids=["nobody"]))["status"] == {"nobody": "not_found"}
        again = await call("spawn_agent", message="x", id="k")
        assert again["hint"] == "choose another `id`: a name cannot be used again"

    talk("codex", to)


@pytest.mark.slow
def test_claude(task: Task) -> None:
    async def to(client: Client, call: Call) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["task", "task_parallel", "wait", "send_input", "close_agent"]
        done = await call("Task", description="Find cookie", prompt="say two", subagent_type="general-purpose")
        assert list(done) == TASK_RESULT
        assert (done["task_id"], done["agent_type"]) == ("find-cookie-1", "general")
        assert (done["status"], done["result"], done["objective"]) == ("completed", "two", "say two")
        quick = await call("Agent", description="Look", prompt="say x", subagent_type="ECHO", run_in_background=True)
        assert quick == {"id": "look-1", "status": "queued", "task_id": "look-1"}
        told = await call("wait", ids=["look-1"])
        assert told["results"]["look-1"]["output"] == "said: say x"
        named = await call("Agent", description="Look", prompt="say y", name="finder", mode="plan")
        assert (named["task_id"], named["result"]) == ("finder", "y")
        again = await call("Agent", description="Look", prompt="say y", name="finder")
        assert again["error"].endswith("exists already in task t1 (choose another name: none can be used again)")
        await call("SendMessage", to="finder", message="say z")
        assert (await call("wait", ids=["finder"]))["results"]["finder"]["output"] == "z"
        more = await call("task", prompt="argv", resume="find-cookie-1", model="")
        assert (more["task_id"], "--resume=" in more["result"]) == ("find-cookie-1", True)
        nothing = {"subagent_type": None, "context": None, "model": "", "description": ""}
        both = await call("task_parallel", tasks=[
            {"prompt": "say a", **nothing}, {"objective": "b", "subagent_type": "nobody"},
            {"objective": "c", "subagent_type": "echo", "context": '{"path": "src"}'},
        ])  # fmt: skip
        assert [list(one) for one in both["results"]] == [TASK_RESULT] * 3
        assert [one["status"] for one in both["results"]] == ["completed", "failed", "completed"]
        assert both["results"][1]["error"].startswith("Unknown agent type: nobody (")
        assert both["results"][2]["result"] == 'said: c\n\nContext:\n{\n  "path": "src"\n}'
        late = await call("task", objective="hang", timeout_seconds=0.2)
        assert late["status"] == "timeout"

    talk("claude", to)


def test_subtask(task: Task, root: Path) -> None:
    long = "reviewer-of-all-that-was-written-by-anybody"
    define(root, long, "echo reviewed")

    async def to(client: Client, call: Call) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[-3:] == ["wait", "send_input", "close_agent"]
        assert all(len(f"mcp__agentctl__{name}") <= 64 for name in names)
        (shortened,) = [name for name in names if name.startswith("create_subtask_reviewer")]
        done = await call("create_subtask_general", title="First", intent="say one", priority=3, artifactRefs=[])
        assert done == {
            "taskId": "first", "agentId": "first/general-1", "subTaskStatus": "Success", "finalAssistantMessage": "one",
        }  # fmt: skip
        for name in ("first", "first/general-1"):
            assert await call("close_agent", id=name) == {"previous_status": "completed"}
        for name in (shortened, f"create_subtask_{long}"):
            assert (await call(name, title="Read"))["finalAssistantMessage"] == "reviewed"
        refused = await call("create_subtask_general", title="Second", artifactRefs=["nowhere"])
        assert (refused["taskId"], refused["subTaskStatus"]) == (None, "Error")
        assert "nowhere" in refused["failureReason"]
        failed = await call("create_subtask_general", title="Third", intent="crash")
        assert (failed["taskId"], failed["subTaskStatus"]) == ("third", "Error")
        unknown = await call("create_subtask_nobody", title="x")
        assert unknown["error"] == "Unknown agent type: nobody"
        assert unknown["hint"].startswith("known: echo, ")

    talk("subtask", to)


# -- what a child has from who starts it -------------------------------------------------------------------------------


def calls_within(folder: Path, *options: str, **spawn: Any) -> dict[str, Any]:
    """Let an agent start another one with agentctl's tools, and return the answer."""
    made = json.dumps([["spawn_agent", {"run_in_background": False, **spawn}, 40]])
    line = worker("calls_tools", "codex", made)
    script = f"import subprocess\nme.answer(subprocess.run({line!r}, capture_output=True, text=True).stdout)\n"
    agent(plays(folder, script), *options, name="parent")
    told: dict[str, Any] = json.loads(ends("parent")["result"]["finalMessage"].splitlines()[-1])
    return told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wish", "has", "lacks"),
    [({}, {"--model=parents", "--effort=high"}, set()), ({"model": "own"}, {"--model=own"}, {"--model=parents"})],
)
def test_a_child_has_the_model_of_its_parent_unless_it_is_named(
    task: Task, tmp_path: Path, wish: dict[str, str], has: set[str], lacks: set[str]
) -> None:
    told = calls_within(tmp_path, "--model", "parents", "--effort", "high", message="argv", **wish)
    argv = set(json.loads(told["output"]))
    assert has <= argv
    assert not lacks & argv


RULES = [
    {"tool": "Bash", "pattern": "rm *", "answer": "deny"},
    {"tool": "Bash", "pattern": "*", "answer": "allow"},
]


@pytest.mark.parametrize(
    ("wish", "command", "said"),
    [
        (None, "ls", "allowed"),
        ("ask", "ls", None),
        ("ask", "rm x", "denied"),
        ("deny", "ls", "denied"),
    ],
)
@pytest.mark.slow
def test_permissions_can_be_tightened_by_a_tool_and_not_loosened(
    task: Task, wish: str | None, command: str, said: str | None
) -> None:
    set_config(task, maxConcurrentAgents=3, graceSeconds=1, permissions=json.dumps(RULES))
    run("trust", task.path / "task.yaml")
    made = [["spawn_agent", {"id": "a", "instruction": f"permit {command}", "permissions": wish}, 9],
            ["wait", {"ids": ["a"]}, 20], ["spawn_agent", {"instruction": "x", "permissions": "allow"}, 9]]  # fmt: skip
    done = subprocess.run(worker("calls_tools", "codex", json.dumps(made)), capture_output=True, text=True, check=True)
    _, told, refused = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert told["results"]["a"]["output"] == (said or "")
    assert told["status"]["a"] == ("completed" if said else "blocked")
    assert refused["error"] == 'spawn_agent.permissions must be one of ask, deny, not "allow"'
    run("cancel", "--all")


@pytest.mark.slow
def test_a_tool_gives_an_agent_a_worktree_and_the_driver_that_is_named(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(new_repository(tmp_path / "repository"))
    made = [["spawn_agent", {"id": "a", "instruction": "say x", "worktree": True, "run_in_background": False}, 40],
            ["spawn_agent", {"instruction": "say x", "driver": "codex"}, 9]]  # fmt: skip
    done = subprocess.run(
        worker("calls_tools", "codex", json.dumps(made)), capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{os.environ['PATH'].split(os.pathsep)[0]}:/usr/bin:/bin"},
    )  # fmt: skip
    told, second = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert told["status"] == "completed", told
    assert read(task.agent("a") / "worktree.json")["branch"]
    assert "codex is not installed" in second["error"], "it is tried with the program that was named"


@pytest.mark.slow
def test_a_subtask_that_outlives_its_cancelled_caller_answers_cancel(task: Task, root: Path, tmp_path: Path) -> None:
    set_config(task, maxConcurrentAgents=3, graceSeconds=5, childrenAtEnd="leave")
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done")
    line = f"trap '' INT TERM; {sys.executable} -m agentctl subtask held First --json"
    run("spawn", "--name", "p", "--", "sh", "-c", line)
    child = Task(root / "tasks" / "first")
    wait_until((child.path / "events.jsonl").exists, what="the sub-task")
    child.has("agent.started", "held-1")
    run("cancel", "p")
    told = json.loads((task.agent("p") / "stdout.log").read_text(encoding="utf-8"))
    assert (told["taskId"], told["subTaskStatus"]) == ("first", "Cancel")
    assert "childrenAtEnd: leave" in told["failureReason"]
    assert statuses()["p"] == "cancelled"
    (tmp_path / "gate").touch()
    child.ended("held-1")


# -- what a model is told when something cannot be done ----------------------------------------------------------------

#: A command of agentctl, or an option.
COMMAND_LINE = re.compile(r"agentctl (?:[a-z-]+ ?)+|(?<![\w-])--[a-z]")
LIMITS: list[dict[str, float]] = [{"maxWorkers": 3}, {"maxTokens": 5}]
CANNOT: list[tuple[str, dict[str, Any]]] = [
    ("spawn_agent", {"instruction": "x", "id": "taken"}),
    ("spawn_agent", {"instruction": "x", "id": "no name"}),
    ("spawn_agent", {"instruction": "x", "agent_type": "nobody"}),
    ("spawn_agent", {"instruction": "x", "agent_type": "stranger"}),
    ("spawn_agent", {"instruction": "x", "working_dir": "missing"}),
    ("spawn_agent", {"instruction": "x", "worktree": True}),
    ("spawn_agent", {"instruction": "x", "driver": "nobody"}),
    ("spawn_agent", {"instruction": "x", "driver": "codex"}),
    ("spawn_agent", {"instruction": "x", "driver": "command"}),
    ("spawn_agent", {"instruction": "x", "agent_type": "echo", "permissions": "deny"}),
    ("spawn_agent", {"instruction": "x", "colour": "red"}),
    ("spawn_agent", {}),
    ("task", {"objective": "x", "resume": "taken"}),
    ("task", {"objective": "x", "resume": "nobody"}),
    ("task", {"objective": "x", "worktree": True}),
    ("task_parallel", {"tasks": [{"objective": "x", "driver": "command"}, {"objective": "x", "driver": "codex"}]}),
    ("create_subtask_general", {"title": "x" * 5000}),
    ("create_subtask_general", {"title": "x", "artifactRefs": ["nowhere"]}),
    ("create_subtask_stranger", {"title": "x"}),
    ("send_input", {"id": "nobody", "message": "x"}),
    ("send_input", {"id": "command", "message": "x"}),
    ("send_input", {"id": "asks", "message": "yes", "question_id": "q9"}),
    ("send_input", {"id": "asks", "message": "allow"}),
    ("resume_agent", {"id": "asks"}),
    ("resume_agent", {"id": "../x"}),
    ("close_agent", {"id": "nobody"}),
    ("nothing", {}),
]


@pytest.mark.parametrize("limits", [{}, *(pytest.param(one, marks=pytest.mark.slow) for one in LIMITS)])
@pytest.mark.slow
def test_no_answer_names_a_command_line(
    task: Task, root: Path, limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("spawn", "--agent", "echo", "--name", "taken", "x")
    run("spawn", "--name", "command", "--", "true")
    run("spawn", "--agent", "general", "--name", "asks", "permit ls")
    run("wait", "taken")
    run("wait-any", "asks", "--for", "blocked")
    stranger = {"name": "stranger", "permissions": [{"tool": "*", "answer": "allow"}]}
    (root / "agents" / "stranger.md").write_text(f"---\n{json.dumps(stranger)}\n---\n", encoding="utf-8")
    set_config(task, maxConcurrentAgents=3, graceSeconds=1, **limits)
    monkeypatch.setenv("PATH", f"{os.environ['PATH'].split(os.pathsep)[0]}:/usr/bin:/bin")
    made = json.dumps([[*call, 3] for call in CANNOT])
    done = subprocess.run(worker("calls_tools", "claude", made), capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()[1:]
    for (name, given), answer in zip(CANNOT, answers, strict=True):
        assert re.search(r'"(error|failureReason)": "', answer), (name, given, answer)
        assert COMMAND_LINE.search(answer) is None, (name, given, answer)
    run("cancel", "--all")
