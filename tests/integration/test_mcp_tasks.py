"""At stake: a client of the Tasks extension gets what the protocol promises, whatever it can show its user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from tests.agent_steps import agent_world, define
from tests.mcp_steps import TasksOfClient, ask_task, call, seen, talk, until
from tests.steps import Task
from tests.support import remove, run


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed, an agent that waits for a file and one that fails."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done; echo at last")
    define(root, "fails", "exit 3")
    return made


def result_of(told: dict[str, Any]) -> Any:
    """Return the final answer of a tool."""
    return json.loads(told["result"]["content"][0]["text"])


@pytest.mark.slow
def test_a_question_that_no_form_can_ask_is_the_result_of_its_task(task: Task) -> None:
    async def to(client: Client) -> None:
        token = (await call(client, "task", objective="question"))["taskId"]
        told = await until(client, token, "completed")
        asked = result_of(told)
        assert (asked["still_running"], asked["ids"]) == (True, ["general-1"])
        assert asked["questions"]["general-1"]["question"] == "Which colour?"
        await call(client, "send_input", id="general-1", message="blue")
        ended = await call(client, "wait", ids=asked["ids"])
        assert ended["results"]["general-1"]["output"] == "blue"
        assert await ask_task(client, "tasks/get", taskId=token) == told, "an end stays as it is"

    talk(to, mode="auto", extensions=[TasksOfClient()])


@pytest.mark.slow
def test_a_question_of_a_sub_task_is_no_result_where_the_client_waits_for_ever(task: Task) -> None:
    async def to(client: Client) -> None:
        token = (await call(client, "create_subtask_general", title="Pick", intent="question"))["taskId"]
        await seen(lambda: run("interact", "list", "--recursive", "--json").json)
        assert (await ask_task(client, "tasks/get", taskId=token))["status"] == "working"
        run("interact", "respond", "pick", "--id", "q1", "blue")
        assert result_of(await until(client, token, "completed"))["finalAssistantMessage"] == "blue"

    talk(to, "--call-seconds", "0", mode="auto", extensions=[TasksOfClient()])


@pytest.mark.slow
def test_what_its_user_declines_is_the_result_and_what_is_no_answer_is_refused(task: Task) -> None:
    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        raise AssertionError("the question comes with the task")

    async def to(client: Client) -> None:
        token = (await call(client, "task", objective="question"))["taskId"]
        ((name, _),) = (await until(client, token, "input_required"))["inputRequests"].items()
        bad: list[Any] = [5, "x", None, [], {"action": "perhaps"}, {"action": "accept", "content": "text"}]
        for reply in bad:
            with pytest.raises(MCPError) as refused:
                await ask_task(client, "tasks/update", taskId=token, inputResponses={name: reply})
            assert refused.value.error.code == types.INVALID_PARAMS, reply
        assert (await ask_task(client, "tasks/get", taskId=token))["status"] == "input_required"
        await ask_task(client, "tasks/update", taskId=token, inputResponses={name: {"action": "decline"}})
        told = await until(client, token, "completed")
        assert list(result_of(told)["questions"]) == ["general-1"]
        await call(client, "close_agent", id="general-1")

    talk(to, mode="auto", extensions=[TasksOfClient()], elicitation_callback=fill)


@pytest.mark.slow
def test_the_methods_are_for_those_who_have_declared_the_extension(task: Task) -> None:
    tokens: list[str] = []

    async def begin(client: Client) -> None:
        tokens.append((await call(client, "task", objective="x", subagent_type="held"))["taskId"])

    async def to(client: Client) -> None:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await ask_task(client, method, taskId=tokens[0])
            assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert "io.modelcontextprotocol/tasks" in str(refused.value.error.data)
        assert (await call(client, "list_agents"))[0]["status"] == "running", "nobody was cancelled"
        await call(client, "close_agent", id="held-1")

    talk(begin, mode="auto", extensions=[TasksOfClient()])
    talk(to, mode="auto")


@pytest.mark.slow
def test_a_failed_agent_is_a_completed_task_with_an_error(task: Task) -> None:
    async def to(client: Client) -> None:
        token = (await call(client, "task", objective="x", subagent_type="fails"))["taskId"]
        told = await until(client, token, "completed")
        assert (told["result"]["isError"], result_of(told)["status"]) == (True, "failed")
        assert told["ttlMs"] > 0

    talk(to, mode="auto", extensions=[TasksOfClient()])


@pytest.mark.slow
def test_a_worker_under_the_name_of_a_removed_one_has_an_end_of_its_own(task: Task, tmp_path: Path) -> None:
    run("spawn", "--agent", "fails", "--name", "held-1", "x")
    run("wait", "held-1", check=False)
    remove(task.agent("held-1"))

    async def to(client: Client) -> None:
        token = (await call(client, "task", objective="x", subagent_type="held"))["taskId"]
        await seen((task.agent("held-1") / "worker.json").exists)
        assert (await ask_task(client, "tasks/get", taskId=token))["status"] == "working"
        (tmp_path / "gate").touch()
        told = await until(client, token, "completed")
        assert (result_of(told)["task_id"], result_of(told)["result"]) == ("held-1", "at last")

    talk(to, mode="auto", extensions=[TasksOfClient()])
