"""At stake: a sub-agent's question reaches somebody who can answer it, and no reply of a client does any harm."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from tests.agent_steps import agent_world, define
from tests.mcp_steps import call, seen, talk
from tests.steps import Task
from tests.support import run, start

Fill = Callable[[Any, Any], Awaitable[types.ElicitResult]]
#: Replies to a form that do not answer its question.
UNUSABLE: dict[str, types.ElicitResult] = {
    "declined": types.ElicitResult(action="decline"),
    "cancelled": types.ElicitResult(action="cancel"),
    "no such option": types.ElicitResult(action="accept", content={"answer": "green"}),
    "without the field": types.ElicitResult(action="accept", content={}),
    "null": types.ElicitResult(action="accept", content={"answer": None}),
    "a number": types.ElicitResult(action="accept", content={"answer": 5}),
}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed and an agent that asks for any text."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "asks", "echo got: $(agentctl interact ask 'Which name?')")
    return made


def fills(result: types.ElicitResult) -> Fill:
    """Return a user who always fills in the same."""

    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        return result

    return fill


async def comes_back_as_data(client: Client, kind: str, name: str) -> None:
    """Start a worker that asks, check that its question comes back as data, and answer it."""
    asked = await call(client, "task", objective="question", subagent_type=kind)
    assert asked.get("still_running"), asked
    assert name in asked["questions"], asked
    assert "send_input" in asked["hint"], "to wait again brings the question again"
    told = await call(client, "wait", ids=asked["ids"], timeout_ms=50)
    assert "being asked" not in str(told), "nobody is"
    await call(client, "send_input", id=name, message="blue")
    ended = await call(client, "wait", ids=asked["ids"], cursor=told["cursor"])
    assert "blue" in ended["results"][name]["output"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_question_that_no_form_settles_comes_back_as_data(task: Task, mode: str) -> None:
    filled: list[str] = []
    now: list[str] = []

    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        filled.append(now[-1])
        return UNUSABLE[now[-1]]

    async def to(client: Client) -> None:
        for number, kind in enumerate(UNUSABLE, 1):
            now.append(kind)
            await comes_back_as_data(client, "general", f"general-{number}")
        for number, kind in enumerate([one for one in UNUSABLE if one != "no such option"], 1):
            now.append(kind)
            await comes_back_as_data(client, "asks", f"asks-{number}")  # For this agent any text is an answer.
        assert list((task.path / "handles").glob("*")) == [], "what has been answered leaves nothing"

    talk(to, "--call-seconds", "0", mode=mode, elicitation_callback=fill)
    assert len(filled) == 2 * len(UNUSABLE) - 1, "each question is put once"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_without_forms_hears_of_a_question_at_once(task: Task, mode: str) -> None:
    async def to(client: Client) -> None:
        await asyncio.wait_for(comes_back_as_data(client, "general", "general-1"), 20)

    talk(to, mode=mode)


@pytest.mark.slow
@pytest.mark.parametrize("is_declined", [False, True])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_sub_tasks_call_of_a_client_that_waits_for_ever_answers_with_its_end(
    task: Task, mode: str, is_declined: bool
) -> None:
    user: dict[str, Any] = {"elicitation_callback": fills(types.ElicitResult(action="decline"))} if is_declined else {}

    async def to(client: Client) -> None:
        calling = asyncio.ensure_future(call(client, "create_subtask_general", title="Pick", intent="question"))
        await seen(lambda: run("interact", "list", "--recursive", "--json").json)
        other = await call(client, "task", objective="question")
        assert other["questions"], "a call that does not promise its end hands the question over"
        assert not calling.done()
        await asyncio.to_thread(run, "interact", "respond", "pick", "--id", "q1", "blue")
        assert (await calling)["finalAssistantMessage"] == "blue"
        assert "through its questions" in await described(client, "create_subtask_general")

    async def within_limits(client: Client) -> None:
        assert "has ended, or asks" in await described(client, "create_subtask_general")
        asked = await call(client, "create_subtask_general", title="Pick another", intent="question")
        assert asked["questions"], asked

    talk(to, "--call-seconds", "0", mode=mode, **user)
    talk(within_limits, "--call-seconds", "30", mode=mode, **user)
    run("cancel", "--all", "--recursive")


async def described(client: Client, name: str) -> str:
    """Return the description of a tool."""
    return next(tool.description or "" for tool in (await client.list_tools()).tools if tool.name == name)


def said(server: subprocess.Popen[str], **message: Any) -> None:
    """Send a message to a server."""
    assert server.stdin is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def heard(server: subprocess.Popen[str], is_it: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the next message of a kind from a server."""
    assert server.stdout is not None
    while True:
        message: dict[str, Any] = json.loads(server.stdout.readline())
        if is_it(message):
            return message


def is_for(number: int) -> Callable[[dict[str, Any]], object]:
    """Return a function that recognizes the answer to a request."""
    return lambda message: message.get("id") == number and "method" not in message


def greets(capabilities: dict[str, Any]) -> subprocess.Popen[str]:
    """Start a server, and open a conversation as a client with these capabilities."""
    server = start("mcp", "--tools", "all", stdin=subprocess.PIPE)
    who = {"name": "c", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": who}
    said(server, id=1, method="initialize", params=hello)
    heard(server, is_for(1))
    said(server, method="notifications/initialized")
    return server


def answer_of(message: dict[str, Any]) -> Any:
    """Return a tool's answer."""
    return json.loads(message["result"]["content"][0]["text"])


@pytest.mark.slow
def test_a_reply_that_is_none_ends_neither_the_call_nor_the_server(task: Task) -> None:
    server = greets({"elicitation": {}})
    replies: list[Any] = [{"action": "yes!"}, {"content": "x"}, [], None, {"action": "accept", "content": "text"}]
    for number, reply in enumerate(replies, 10):
        asking = {"name": "task", "arguments": {"objective": "question"}}
        said(server, id=number, method="tools/call", params=asking)
        form = heard(server, lambda message: message.get("method") == "elicitation/create")
        said(server, id=form["id"], result=reply)
        (asked,) = answer_of(heard(server, is_for(number)))["questions"]
        run("interact", "respond", asked, "--id", "q1", "red")
    said(server, id=99, method="tools/list", params={})
    assert heard(server, is_for(99))["result"]["tools"]
    server.terminate()
    server.wait(10)
    run("cancel", "--all")


@pytest.mark.slow
def test_a_form_whose_question_was_answered_elsewhere_is_withdrawn(task: Task) -> None:
    server = greets({"elicitation": {"form": {}}})
    said(server, id=2, method="tools/call", params={"name": "task", "arguments": {"objective": "question"}})
    form = heard(server, lambda message: message.get("method") == "elicitation/create")
    run("interact", "respond", "general-1", "--id", "q1", "red")
    both = [heard(server, bool), heard(server, bool)]
    answered, withdrawn = sorted(both, key=lambda message: "method" in message)
    assert withdrawn["params"]["requestId"] == form["id"]
    assert answer_of(answered)["result"] == "red"
    server.terminate()
    server.wait(10)


@pytest.mark.slow
def test_a_client_that_shows_no_forms_but_links_is_sent_none(task: Task) -> None:
    server = greets({"elicitation": {"url": {}}})
    said(server, id=2, method="tools/call", params={"name": "task", "arguments": {"objective": "question"}})
    first = heard(server, lambda message: "id" in message)
    assert answer_of(first)["questions"]["general-1"]["question"] == "Which colour?"
    server.terminate()
    server.wait(10)
    run("cancel", "--all")


@pytest.mark.slow
def test_what_was_asked_by_an_answer_is_taken_for_that_call_alone(task: Task) -> None:
    async def to(client: Client) -> None:
        given = {"objective": "question"}
        asked = await client.session.call_tool("task", given, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        assert asked.input_requests is not None
        ((key, _),) = asked.input_requests.items()
        answers = {key: types.ElicitResult(action="accept", content={"answer": "blue"})}
        again: dict[str, Any] = {"request_state": asked.request_state, "input_responses": answers}
        for tool, other in (("list_agents", {}), ("task", {"objective": "else"}), ("create_subtask_general", given)):
            with pytest.raises(MCPError, match="another call"):
                await client.session.call_tool(tool, other, **again)
        done = await client.session.call_tool("task", given, **again)
        assert isinstance(done, types.CallToolResult)
        assert answer_of({"result": done.model_dump(by_alias=True)})["result"] == "blue"
        with pytest.raises(MCPError, match="no such task"):
            await client.session.call_tool("task", given, **again)

    talk(to, mode="auto", elicitation_callback=fills(UNUSABLE["declined"]))


@pytest.mark.slow
def test_a_line_that_is_no_message_is_answered_or_mended(task: Task) -> None:
    server = greets({})
    assert server.stdin is not None

    def answer(line: str) -> dict[str, Any]:
        assert server.stdin is not None
        server.stdin.write(line + "\n")
        server.stdin.flush()
        return heard(server, bool)

    def calls(number: int, text: str) -> str:
        call = {"name": "task", "arguments": {"objective": "X"}}
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
        return json.dumps(request).replace('"X"', text)

    mended = answer(calls(3, r'"say cut \ud83d"'))
    assert (mended["id"], answer_of(mended)["result"]) == (3, "cut \N{REPLACEMENT CHARACTER}")
    for number, broken in ((4, "9" * 5000), (5, "[" * 5000 + "]" * 5000), (6, '"no end')):
        told = answer(calls(number, broken))
        assert (told["id"], told["error"]["code"]) == (number, -32700)
    assert answer("nonsense") == {"jsonrpc": "2.0", "id": None, "error": answer("nonsense")["error"]}
    assert answer("[]")["error"]["code"] == -32600
    assert answer('{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": 5}')["id"] == 7
    said(server, id=8, method="tools/list", params={})
    assert heard(server, bool)["id"] == 8
    server.terminate()
    server.wait(10)
