"""At stake: an agent cannot get around its restrictions by starting a worker, however it starts one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent_world, ends, plays
from tests.life import set_config
from tests.shells import define_shells
from tests.steps import Task, statuses
from tests.support import PROGRAM, alike, run, worker

#: Makes the agent's program run a command, whatever its tools are, and answer with the command's result.
RUNS = """
import json, os, subprocess
done = subprocess.run({argv!r}, env={{**os.environ, **{env!r}}}, input={stdin!r}, capture_output=True, text=True)
me.answer(json.dumps({{"code": done.returncode, "out": done.stdout, "err": done.stderr}}))
"""
#: Makes it start agentctl's server itself, send it some lines, and answer with the server's answer to the last one.
ASKS_A_SERVER = """
import json, subprocess
server = subprocess.Popen({argv!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in {lines!r}:
    server.stdin.write(line + "\\n")
server.stdin.flush()
answer = next(line for line in server.stdout if json.loads(line).get("id") == 2)
server.stdin.close()
server.wait()
me.answer(answer)
"""


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task in which agents may start others, with one agent program installed."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    set_config(made, maxConcurrentAgents=3, maxDepth=3, graceSeconds=1)
    return made


def runs(folder: Path, *argv: str, stdin: str = "", **env: str) -> str:
    """Return the prompt that makes the agent program run a command."""
    return plays(folder, RUNS.format(argv=list(argv), env=env, stdin=stdin))


def said_in(folder: Path, argv: tuple[str, ...], *options: str, agent: str = "explore", **more: str) -> dict[str, Any]:
    """Let an agent run a command; return the command's exit code and output."""
    run("spawn", "--agent", agent, "--name", "parent", *options, runs(folder, *argv, **more))
    found: dict[str, Any] = json.loads(ends("parent")["result"]["finalMessage"])
    return found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (("spawn", "--", "touch", "made"), "the command touch"),
        *alike(
            (("spawn", "--queue", "--after", "parent", "--", "touch", "made"), "the command touch"),
            (("spawn", "--agent", "general", "say hi"), "the agent general"),
            (("spawn", "--agent", "shell", "touch made"), "the agent shell"),
            (("spawn", "--agent", "general", "--permissions", "deny", "say hi"), "the agent general"),
        ),
        (("resume", "freer", "say hi"), "the agent general"),
        (("retry", "freer"), "the agent general"),
    ],
)
@pytest.mark.slow
def test_a_read_only_agent_starts_nothing_that_is_freer(
    task: Task, tmp_path: Path, line: tuple[str, ...], what: str
) -> None:
    define_shells()
    run("spawn", "--agent", "general", "--name", "freer", "say hi")
    run("wait", "freer")
    said = said_in(tmp_path, (*PROGRAM, *line))
    assert said["code"] == 1
    assert f"parent is readOnly, and can only start what is readOnly too: {what} is not" in said["err"]
    assert statuses() == {"freer": "completed", "parent": "completed"}
    assert not Path("made").exists()


def test_nor_under_another_name(task: Task, tmp_path: Path) -> None:
    """It removes the variable that says who it is, and makes a task of its own in which everything is allowed."""
    said = said_in(tmp_path, ("env", "-u", "AGENTCTL_INSTANCE", *PROGRAM, "spawn", "--", "touch", "made"))
    assert "the command touch is not" in said["err"]
    assert statuses() == {"parent": "completed"}


@pytest.mark.slow
def test_nor_by_a_subtask(task: Task, tmp_path: Path) -> None:
    said = said_in(tmp_path, (*PROGRAM, "subtask", "general", "say hi", "--json"))
    answer = json.loads(said["out"])
    assert (answer["taskId"], answer["subTaskStatus"], said["code"]) == (None, "Error", 1)
    assert "the agent general is not" in answer["failureReason"]
    assert run("list", "--recursive", "--json").json[0]["agentInstance"] == "parent"
    assert len(list(task.path.parent.iterdir())) == 1


@pytest.mark.slow
def test_nor_by_a_tool(task: Task, tmp_path: Path) -> None:
    calls = [
        ["spawn_agent", {"agent_type": "general", "message": "say hi"}, 30],
        ["task", {"objective": "say hi", "subagent_type": "general"}, 30],
        ["create_subtask_general", {"title": "say hi"}, 30],
        ["spawn_agent", {"agent_type": "plan", "message": "say hi", "id": "child"}, 30],
        ["wait", {}, 30],
    ]
    said = said_in(tmp_path, tuple(worker("calls_tools", "all", json.dumps(calls))))
    answers = [json.loads(line) for line in said["out"].splitlines()][1:]
    assert all("the agent general is not" in str(answer["error"]) for answer in answers[:2])
    assert "the agent general is not" in answers[2]["failureReason"]
    assert answers[4]["status"] == {"child": "completed"}
    assert statuses() == {"parent": "completed", "child": "completed"}


@pytest.mark.slow
def test_nor_over_mcp(task: Task, tmp_path: Path) -> None:
    call = {"name": "spawn_agent", "arguments": {"agent_type": "general", "message": "say hi"}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
    prompt = plays(tmp_path, ASKS_A_SERVER.format(argv=[*PROGRAM, "mcp", "--tools", "all"], lines=lines))
    run("spawn", "--agent", "explore", "--name", "parent", prompt)
    answer = json.loads(ends("parent")["result"]["finalMessage"])
    assert "the agent general is not" in str(answer["result"])
    assert statuses() == {"parent": "completed"}


@pytest.mark.slow
def test_it_may_start_what_is_read_only_too(task: Task, tmp_path: Path) -> None:
    inner = runs(tmp_path, *PROGRAM, "spawn", "--", "touch", "made")
    said = said_in(tmp_path, (*PROGRAM, "spawn", "--agent", "plan", "--name", "child", "--wait", inner))
    assert said["code"] == 0, said
    refused = json.loads(ends("child")["result"]["finalMessage"])
    assert "child is readOnly" in refused["err"]
    assert statuses() == {"parent": "completed", "child": "completed"}


# -- rules -------------------------------------------------------------------------------------------------------------

NO_REMOVING = '[{"tool": "Bash", "pattern": "rm *", "answer": "deny"}]'


@pytest.mark.slow
def test_what_an_agent_is_denied_those_below_it_are_denied(task: Task, tmp_path: Path) -> None:
    """The child's own rules allow it: a person wrote them without this parent in mind."""
    (tmp_path / "home" / ".config" / "agentctl" / "agents").mkdir(parents=True)
    free = tmp_path / "home" / ".config" / "agentctl" / "agents" / "free.md"
    free.write_text("---\ndescription: May do all.\npermissions: allow\n---\n", encoding="utf-8")
    inner = runs(tmp_path, *PROGRAM, "spawn", "--agent", "free", "--name", "leaf", "--wait", "permit rm -rf x")
    child = (*PROGRAM, "spawn", "--agent", "free", "--name", "child", "--wait")
    assert said_in(tmp_path, (*child, inner), "--permissions", NO_REMOVING, agent="general")["code"] == 0
    assert ends("leaf")["result"]["finalMessage"] == "denied"
    run("spawn", "--agent", "free", "--name", "outside", "permit rm -rf x")
    assert ends("outside")["result"]["finalMessage"] == "allowed"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("spawn", "--", "sh", "-c", "cd / && rm -rf x"), "the permissions of parent deny it the command sh"),
        *alike((("spawn", "--agent", "shell", "rm -rf x"), "the driver command cannot honour permissions")),
    ],
)
def test_nor_does_a_command_do_it_for_them(task: Task, tmp_path: Path, line: tuple[str, ...], problem: str) -> None:
    define_shells()
    said = said_in(tmp_path, (*PROGRAM, *line), "--permissions", NO_REMOVING, agent="general")
    assert said["code"] == 1
    assert problem in said["err"]
    assert statuses() == {"parent": "completed"}


def test_commands_that_no_rule_denies_are_run(task: Task, tmp_path: Path) -> None:
    line = (*PROGRAM, "spawn", "--name", "child", "--wait", "--", "touch", "made")
    assert said_in(tmp_path, line, "--permissions", NO_REMOVING, agent="general")["code"] == 0
    assert Path("made").exists()


@pytest.mark.slow
def test_an_agent_continues_under_the_denials_of_who_continues_it(task: Task, tmp_path: Path) -> None:
    shell = {"tool": "Bash", "pattern": "*", "answer": "allow"}
    run("spawn", "--agent", "general", "--name", "other", "--permissions", json.dumps([shell]), "say hi")
    run("wait", "other")
    line = (*PROGRAM, "resume", "other", "--name", "again", "permit rm -rf x")
    but_no_removing = json.dumps([*json.loads(NO_REMOVING), shell])
    assert said_in(tmp_path, line, "--permissions", but_no_removing, agent="general")["code"] == 0
    assert ends("again")["result"]["finalMessage"] == "denied"


def test_a_worker_trusts_nothing_under_no_name_either(task: Task, tmp_path: Path, root: Path) -> None:
    definition = root / "agents" / "mine.md"
    definition.parent.mkdir()
    definition.write_text("---\nargv: [sh, -c]\n---\n", encoding="utf-8")
    said = said_in(tmp_path, ("env", "-u", "AGENTCTL_INSTANCE", *PROGRAM, "trust", str(definition)), agent="general")
    assert "only a person decides what to trust" in said["err"]
    assert [one["trusted"] for one in run("trust", "--list", "--json").json] == [False]
