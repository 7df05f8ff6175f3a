"""At stake: over HTTP each client has a session of its own, and needs the token."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.agent_steps import agent_world, define
from tests.mcp_steps import HELLO, TasksOfClient, call
from tests.steps import Task
from tests.support import PROGRAM, environment, run, start, wait_until

MODERN = "2026-07-28"


class Served(NamedTuple):
    """A server over HTTP."""

    url: str
    token: str
    process: subprocess.Popen[str]
    token_file: Path

    def ask(self, method: str = "POST", body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request; return the status, the headers and the body of the answer."""
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.url, data, {**known, **named}, method=method), timeout=10) as answer:
                told = b"" if method == "GET" else answer.read()
                return int(answer.status), dict(answer.headers), told
        except HTTPError as error:
            return error.code, dict(error.headers), error.read()


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed and an agent that prints its prompt."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "echo", 'echo "said: $1"')
    return made


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def served(task: Task) -> Iterator[Served]:
    """Start a server over HTTP, and end it after the test."""
    port = free_port()
    process = start("mcp", "--http", str(port), "--tools", "all")
    assert process.stderr is not None
    file = Path(process.stderr.readline().rsplit(" ", 1)[1].strip())
    made = Served(f"http://127.0.0.1:{port}/mcp", file.read_text(encoding="ascii").strip(), process, file)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    bearer = f"Bearer {made.token}"

    def is_up() -> bool:
        try:
            return made.ask(body=hello, Authorization=bearer)[0] == 200
        except OSError:
            return False

    wait_until(is_up, what="the server to serve")
    yield made
    process.send_signal(signal.SIGTERM)
    process.wait(10)


@asynccontextmanager
async def connected(served: Served, **client: Any) -> AsyncIterator[Client]:
    """Connect a client to the server."""
    http = httpx2.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {served.token}"})
    async with http, Client(streamable_http_client(served.url, http_client=http), **client) as connection:
        yield connection


@pytest.mark.slow
def test_each_session_stays_in_its_task_and_shows_its_own_forms(served: Served, task: Task) -> None:
    asked: list[str] = []

    def filled_by(name: str) -> Any:
        async def fill(_context: Any, _params: Any) -> types.ElicitResult:
            asked.append(name)
            return types.ElicitResult(action="decline" if name == "first" else "accept", content={"answer": "blue"})

        return fill

    async def both() -> None:
        async with connected(served, mode="legacy", elicitation_callback=filled_by("first")) as first:
            await call(first, "spawn_agent", agent_type="echo", message="one", id="e")
            declined = await call(first, "task", objective="question")
            assert list(declined["questions"]) == ["general-1"]
            await asyncio.to_thread(run, "new", "B")
            async with connected(served, mode="legacy", elicitation_callback=filled_by("second")) as second:
                await call(second, "spawn_agent", agent_type="echo", message="two", id="e")
                told = [(await call(one, "wait", ids=["e"]))["results"]["e"]["output"] for one in (first, second)]
                assert told == ["said: one", "said: two"]
            await asyncio.to_thread(run, "use", task.path.name)
            async with connected(served, mode="legacy", elicitation_callback=filled_by("third")) as third:
                told = await call(third, "wait", ids=["general-1"])
                assert "being asked" in told["results"]["general-1"]["question"]["asked"]
                ended = await call(third, "wait", ids=["general-1"], cursor=told["cursor"])
                assert ended["results"]["general-1"]["output"] == "blue"

    asyncio.run(both())
    assert asked == ["first", "third"]


@pytest.mark.slow
def test_a_request_about_a_task_names_it_in_its_header(served: Served) -> None:
    async def handed_over() -> str:
        async with connected(served, mode="auto", extensions=[TasksOfClient()]) as client:
            return str((await call(client, "task", objective="say x"))["taskId"])

    token = asyncio.run(handed_over())
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": token, "_meta": meta}}
    headers = {"Authorization": f"bearer {served.token}", "MCP_Protocol_Version": MODERN, "Mcp_Method": "tasks/get"}
    for named, code in ((token, None), ("another", types.HEADER_MISMATCH), (None, types.HEADER_MISMATCH)):
        more = {"Mcp_Name": named} if named is not None else {}
        _, _, told = served.ask(body=body, **headers, **more)
        answer = json.loads(told)
        assert answer.get("error", {}).get("code") == code, answer


@pytest.mark.slow
def test_who_is_let_in_and_what_of_a_stream_that_was_broken(served: Served) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    status, headers, _ = served.ask(body=hello)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert served.ask(body=hello, Authorization=f"Basic {served.token}")[0] == 401
    status, headers, _ = served.ask(body=hello, Authorization=f"bearer {served.token}")
    assert status == 200, "the scheme is read in any case"
    of_session = {"Authorization": f"Bearer {served.token}", "Mcp_Session_Id": headers["mcp-session-id"]}
    said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert served.ask(body=said, **of_session)[0] == 202
    assert served.ask("GET", **of_session, Last_Event_ID="7")[0] == 200, "it begins anew"


@pytest.mark.slow
def test_a_second_server_at_a_port_leaves_the_first_one_its_token(served: Served) -> None:
    port = served.url.split(":")[2].partition("/")[0]
    second = subprocess.run(
        [*PROGRAM, "mcp", "--http", port], env=environment(), capture_output=True, text=True,
        timeout=20, check=False,
    )  # fmt: skip
    assert (second.returncode, second.stderr.count("\n")) == (1, 2), second
    assert f"cannot listen on port {port} of 127.0.0.1" in second.stderr
    assert served.token_file.read_text(encoding="ascii").strip() == served.token
