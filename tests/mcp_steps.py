"""Steps that tests of the MCP server share: connect a client, call a tool, use the Tasks extension."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import mcp_types as types
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters, stdio_client
from pydantic import ConfigDict, Field

from tests.answers import check_tool_answer
from tests.support import POLL_S, PROGRAM

#: The parameters with which a client without any capability opens a conversation.
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}

Talk = Callable[[Client], Awaitable[None]]


def talk(to: Talk, *options: str, mode: str = "legacy", **client: Any) -> None:
    """Start a server, connect a client to it, and run `to` with that client."""

    async def talked() -> None:
        async with connected(*options, mode=mode, **client) as connection:
            await asyncio.wait_for(to(connection), 45)

    asyncio.run(talked())


@asynccontextmanager
async def connected(*options: str, mode: str = "legacy", **client: Any) -> AsyncIterator[Client]:
    """Start a server, and connect a client to it."""
    command = [*PROGRAM, "mcp", "--tools", "all", *options]
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(stdio_client(server), mode=mode, **client) as connection:
        yield connection


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool; return its answer."""
    return (await call_whole(client, tool, **arguments))[0]


async def call_whole(client: Client, tool: str, **arguments: Any) -> tuple[Any, bool]:
    """Call a tool; return its answer, and whether it is an error."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    answer = json.loads(content.text)
    if "resultType" not in answer:
        check_tool_answer(tool, answer)
    return answer, bool(result.is_error)


class CreatedTask(types.Result):
    """The answer to a call that was turned into a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = Field(default="task", alias="resultType")


class TaskRequest(types.Request[Any, Literal["tasks/get", "tasks/update", "tasks/cancel"]]):
    """A request of the extension."""

    method: Literal["tasks/get", "tasks/update", "tasks/cancel"]
    params: dict[str, Any]


class Told(types.Result):
    """Anything that the server reports about a task."""

    model_config = ConfigDict(extra="allow")


class TasksOfClient(ClientExtension):
    """The extension on the client's side: it returns the created task and leaves all further requests to the test."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> list[ResultClaim[CreatedTask]]:
        """Claim the answer to a call that was turned into a task."""
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.resolve)]

    async def resolve(self, created: CreatedTask, _context: ClaimContext) -> types.CallToolResult:
        """Return the created task as if it were the tool's own answer."""
        text = json.dumps(created.model_dump(by_alias=True))
        # As an error, so that it is not taken for what the tool has declared to answer.
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def ask_task(client: Client, method: Any, **params: Any) -> dict[str, Any]:
    """Send a request of the extension."""
    told = await client.session.send_request(TaskRequest(method=method, params=params), Told)
    return told.model_dump(by_alias=True)


async def until(client: Client, token: str, status: str) -> dict[str, Any]:
    """Request a task until it has this status; return the last answer."""
    while True:
        told = await ask_task(client, "tasks/get", taskId=token)
        if told["status"] == status:
            return told
        await asyncio.sleep(POLL_S)


async def seen(what: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    while not what():  # noqa: ASYNC110 - it depends on another process
        await asyncio.sleep(POLL_S)
