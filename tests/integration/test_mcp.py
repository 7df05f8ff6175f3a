"""At stake: any MCP client can delegate, whatever its capabilities, and no worker ends with a client that goes away."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from tests.agent_steps import agent_world, define
from tests.mcp_steps import HELLO, TasksOfClient, ask_task, call, talk, until
from tests.steps import Task, statuses
from tests.support import is_alive, start, start_argv, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed and an agent that waits for a file."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done; echo at last")
    return made


@pytest.mark.slow
def test_a_client_starts_waits_and_reads_and_a_broken_call_ends_nobody(task: Task, tmp_path: Path) -> None:
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async def to(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[:2] == ["spawn_agent", "send_input"]
        assert names == [tool.name for tool in (await client.list_tools()).tools]
        assert "create_subtask_held" in names
        bad = await client.call_tool("task", {})
        assert bad.is_error
        assert bad.structured_content == {"error": "task lacks 'objective'", "hint": bad.structured_content["hint"]}
        started = await call(client, "spawn_agent", agent_type="held", instruction="x", id="h1")
        assert started["id"] == "h1"
        broken = asyncio.create_task(client.call_tool("task", {"objective": "x", "subagent_type": "held"}))
        await asyncio.to_thread(task.has, "agent.started", "held-1")
        broken.cancel()
        many = [asyncio.create_task(call(client, "wait", ids=["h1"], timeout_ms=45000)) for _ in range(50)]
        slow = await client.call_tool("wait", {"ids": ["h1"], "timeout_ms": 400}, progress_callback=on_progress)
        assert slow.structured_content["timed_out"] is True
        (tmp_path / "gate").touch()
        for answer in await asyncio.gather(*many):
            assert answer["results"]["h1"]["output"] == "at last"
        after = await call(client, "wait", ids=["held-1"])
        assert after["status"] == {"held-1": "completed"}, "the call that was broken off has ended nobody"

    talk(to, "--progress-seconds", "0.1")
    assert told
    assert str(told[0]).startswith("waiting")


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_its_agents_and_another_one_takes_them_up(task: Task, tmp_path: Path) -> None:
    server = start("mcp", stdin=subprocess.PIPE)
    assert server.stdin is not None
    wanted = {"name": "spawn_agent", "arguments": {"agent_type": "held", "message": "x", "run_in_background": False}}
    for number, (method, params) in enumerate([("initialize", HELLO), ("", {}), ("tools/call", wanted)]):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if not method:
            message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
    task.has("agent.started", "held-1")
    server.stdin.close()
    wait_until(lambda: server.poll() is not None, what="the server to leave")
    assert statuses() == {"held-1": "running"}
    (tmp_path / "gate").touch()

    async def to(client: Client) -> None:
        answer = await call(client, "wait")
        assert answer["results"]["held-1"]["output"] == "at last"

    talk(to)


def greeted(*options: str) -> subprocess.Popen[str]:
    """Start a server, and open a conversation with it."""
    server = start("mcp", *options, stdin=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}) + "\n")
    server.stdin.flush()
    assert "agentctl" in server.stdout.readline()
    return server


@pytest.mark.slow
def test_ctrl_c_ends_a_server_though_its_client_says_nothing(task: Task) -> None:
    server = greeted()
    server.send_signal(signal.SIGINT)
    wait_until(lambda: server.poll() is not None, what="the server to leave")
    assert server.stderr is not None
    assert server.stderr.read() == ""


@pytest.mark.slow
def test_a_client_that_no_longer_reads_is_no_bug_of_ours(task: Task) -> None:
    server = greeted()
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stderr is not None
    server.stdout.close()
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}) + "\n")
    server.stdin.close()
    wait_until(lambda: server.poll() is not None, what="the server to leave")
    assert (server.returncode, server.stderr.read()) == (0, "")


def test_an_unknown_client_is_answered_before_it_gives_up(task: Task, tmp_path: Path) -> None:
    async def to(client: Client) -> None:
        still = await call(client, "create_subtask_held", title="Wait")
        assert (still["still_running"], still["ids"]) == (True, ["wait"])
        (tmp_path / "gate").touch()
        ended = await call(client, "wait", ids=still["ids"])
        while ended.get("still_running"):  # On a busy machine, the end takes longer than a call may.
            ended = await call(client, "wait", ids=still["ids"])
        assert ended["results"]["wait"]["output"] == "at last"

    talk(to, "--call-seconds", "0.2")


@pytest.mark.slow
def test_a_question_is_put_to_the_user_of_a_client_that_shows_forms(task: Task) -> None:
    asked: list[Any] = []

    async def fill(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"answer": "blue"})

    async def to(client: Client) -> None:
        done = await call(client, "task", objective="question")
        assert (done["status"], done["result"]) == ("completed", "blue")
        started = await call(client, "spawn_agent", instruction="question")
        first = await call(client, "wait", ids=[started["id"]])
        assert "being asked" in first["results"][started["id"]]["question"]["asked"]
        second = await call(client, "wait", ids=[started["id"]], cursor=first["cursor"])
        assert second["results"][started["id"]]["output"] == "blue"

    talk(to, elicitation_callback=fill)
    form, _ = asked
    assert "Which colour?" in form.message
    assert form.requested_schema["properties"]["answer"]["enumNames"] == ["red: warm", "blue: cold"]


@pytest.mark.slow
def test_a_newer_client_gets_the_question_as_an_answer_and_comes_back(task: Task) -> None:
    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "red"})

    async def to(client: Client) -> None:
        assert client.protocol_version == "2026-07-28"
        done = await call(client, "task", objective="question")
        assert (done["status"], done["result"]) == ("completed", "red")

    talk(to, mode="auto", elicitation_callback=fill)


@pytest.mark.slow
def test_a_client_of_the_tasks_extension_comes_back_for_the_result(task: Task) -> None:
    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        raise AssertionError("the question comes with the task")

    async def to(client: Client) -> None:
        created = await call(client, "task", objective="question")
        assert (created["status"], created["taskId"].partition(".")[0]) == ("working", task.path.name)
        token = created["taskId"]
        asks = await until(client, token, "input_required")
        ((name, request),) = asks["inputRequests"].items()
        assert "Which colour?" in request["params"]["message"]
        answer = {"action": "accept", "content": {"answer": "blue"}}
        await ask_task(client, "tasks/update", taskId=token, inputResponses={name: answer, "other": answer})
        done = await until(client, token, "completed")
        assert json.loads(done["result"]["content"][0]["text"])["result"] == "blue"
        held = await call(client, "task", objective="x", subagent_type="held")
        await ask_task(client, "tasks/cancel", taskId=held["taskId"])
        await until(client, held["taskId"], "cancelled")
        with pytest.raises(MCPError, match="no such task"):
            await ask_task(client, "tasks/get", taskId=f"{task.path.name}.{'0' * 32}")

    talk(to, mode="auto", extensions=[TasksOfClient()], elicitation_callback=fill)
    assert statuses()["held-1"] == "cancelled"


@pytest.mark.slow
def test_http_is_for_who_has_the_token_and_for_no_web_site(task: Task, tmp_path: Path) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    server = start("mcp", "--http", "18931", "--tools", "all")
    assert server.stderr is not None
    told = server.stderr.readline()
    token = Path(told.rsplit(" ", 1)[1].strip())
    assert token.stat().st_mode & 0o077 == 0

    def post(**headers: str) -> int:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            with urlopen(Request("http://127.0.0.1:18931/mcp", body, {**known, **named})) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code
        except OSError:
            return 0

    bearer = f"Bearer {token.read_text(encoding='ascii').strip()}"
    wait_until(lambda: post(Authorization=bearer), what="the server to serve", accept=lambda code: code == 200)
    assert post() == 401
    assert post(Authorization="Bearer guess") == 401
    assert post(Authorization=bearer, Origin="https://evil.example") == 403
    assert post(Authorization=bearer, Host="evil.example") == 421
    server.terminate()
    wait_until(lambda: not is_alive(server.pid), what="the server to leave")


def test_without_the_library_the_way_to_it_is_told(root: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; from agentctl.interfaces.cli.app import main; sys.exit(main(['mcp']))"
    )
    done = start_argv([sys.executable, "-c", code])
    _, err = done.communicate(timeout=20)
    assert done.returncode == 1
    assert f"hint: {sys.executable} -P -m pip install 'anyio>=" in err
