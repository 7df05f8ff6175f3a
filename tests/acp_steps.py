"""Steps that tests of `agentctl acp` share: an editor that starts it, by the client of the protocol's own library."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from acp import connect_to_agent, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CancelElicitationResponse,
    ClientCapabilities,
    CreateElicitationResponse,
    DeniedOutcome,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallUpdate,
)

from tests.support import POLL_S, PROGRAM

#: Chooses one of the options of a dialog, by its kind; `cancelled` chooses none.
Chooses = Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[str]]
#: Fills in a form: returns its content, or None to dismiss it.
Fills = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]
FORMS = ClientCapabilities.model_validate({"elicitation": {"form": {}}})


async def allows(_call: ToolCallUpdate, _options: list[PermissionOption]) -> str:
    return "allow_once"


async def denies(_call: ToolCallUpdate, _options: list[PermissionOption]) -> str:
    return "reject_once"


async def hesitates(_call: ToolCallUpdate, _options: list[PermissionOption]) -> str:
    """Show a dialog that nobody answers."""
    await asyncio.Event().wait()
    return ""


class Editor:
    """What the editor's user sees and does."""

    def __init__(self, chooses: Chooses = allows, fills: Fills | None = None) -> None:
        self.chooses, self.fills = chooses, fills
        #: Every update as it came over the wire, checked by the library.
        self.updates: list[dict[str, Any]] = []
        self.dialogs: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.forms: list[tuple[str, dict[str, Any]]] = []
        #: The ids of the requests that the agent has taken back.
        self.withdrawn: list[Any] = []
        self.conn: ClientSideConnection
        self.process: asyncio.subprocess.Process

    # -- what the agent calls ------------------------------------------------------------------------------------

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take an update, which `observed` has recorded."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Show a dialog."""
        assert session_id
        self.dialogs.append((tool_call, options))
        kind = await self.chooses(tool_call, options)
        found = next((one for one in options if kind in (one.kind, one.option_id)), None)
        if found is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=found.option_id))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> CreateElicitationResponse:
        """Show a form."""
        schema = mode.requested_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.forms.append((message, schema))
        assert self.fills is not None, "this client has not said that it shows forms"
        content = await self.fills(message, schema)
        if content is None:
            return CancelElicitationResponse(action="cancel")
        return AcceptElicitationResponse(action="accept", content=content)

    def observed(self, event: StreamEvent) -> None:
        """Record what comes over the wire."""
        if event.direction is not StreamDirection.INCOMING:
            return
        method, params = event.message.get("method"), event.message.get("params")
        if method == "session/update":
            SessionNotification.model_validate(params)
            self.updates.append(cast("dict[str, Any]", params)["update"])
        elif method == "$/cancel_request":
            self.withdrawn.append(cast("dict[str, Any]", params)["requestId"])

    # -- what the user does --------------------------------------------------------------------------------------

    async def opened(self, cwd: str | Path | None = None, servers: Sequence[McpServerStdio] = ()) -> str:
        """Open a session, with the user's MCP servers; return its id."""
        made = await self.conn.new_session(cwd=str(cwd or Path.cwd()), mcp_servers=[*servers])
        return made.session_id

    async def says(self, session: str, text: str) -> PromptResponse:
        """Send a prompt, and return the response to it."""
        return await self.conn.prompt(session_id=session, prompt=[text_block(text)])

    # -- what the user sees --------------------------------------------------------------------------------------

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return all text of a kind."""
        return "".join(one["content"]["text"] for one in self.updates if one["sessionUpdate"] == kind)

    def calls(self) -> dict[str, dict[str, Any]]:
        """Return the tool calls as they look now; an update of an unknown one fails."""
        return calls_of(self.updates)


def calls_of(updates: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return id -> tool call, as a client has them after these updates."""
    found: dict[str, dict[str, Any]] = {}
    for update in updates:
        if update["sessionUpdate"] == "tool_call":
            found[update["toolCallId"]] = {**found.get(update["toolCallId"], {}), **update}
        elif update["sessionUpdate"] == "tool_call_update":
            found[update["toolCallId"]] |= {**update, "sessionUpdate": "tool_call"}
    return found


def content_of(call: dict[str, Any]) -> str:
    """Return the text in a tool call's content."""
    return "".join(one["content"]["text"] for one in call.get("content", ()) if one["type"] == "content")


@asynccontextmanager
async def edited(
    *options: str, editor: Editor | None = None, capabilities: ClientCapabilities | None = None
) -> AsyncIterator[Editor]:
    """Start `agentctl acp`, and open the conversation; at the end the editor goes away."""
    editor = editor or Editor()
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "acp", *options, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26
    )
    assert process.stdin is not None
    assert process.stdout is not None
    editor.process = process
    editor.conn = connect_to_agent(
        cast("Client", editor), process.stdin, process.stdout, observers=[editor.observed], use_unstable_protocol=True
    )
    try:
        await editor.conn.initialize(protocol_version=1, client_capabilities=capabilities)
        yield editor
    finally:
        if process.returncode is None:
            process.stdin.close()
            await asyncio.wait_for(process.wait(), 20)
        await editor.conn.close()


def edit(
    to: Callable[[Editor], Awaitable[None]],
    *options: str,
    editor: Editor | None = None,
    capabilities: ClientCapabilities | None = None,
) -> Editor:
    """Run `to` with an editor that has started `agentctl acp`; return the editor."""
    editor = editor or Editor()

    async def run() -> None:
        async with edited(*options, editor=editor, capabilities=capabilities):
            await asyncio.wait_for(to(editor), 45)

    asyncio.run(run())
    return editor


async def seen(what: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    while not what():  # noqa: ASYNC110 - it depends on another process
        await asyncio.sleep(POLL_S)


class Wire:
    """`agentctl acp` without a library: for lines that no library would send."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout

    async def line(self, data: bytes) -> None:
        """Send bytes."""
        self._in.write(data)
        await self._in.drain()

    async def send(self, **message: Any) -> None:
        """Send a message."""
        await self.line(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def got(self) -> dict[str, Any]:
        """Return the next message."""
        line = await asyncio.wait_for(self._out.readline(), 20)
        assert line, "it has closed its output"
        found: dict[str, Any] = json.loads(line)
        return found

    async def reply(self, name: Any, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return its reply."""
        await self.send(id=name, method=method, params=params)
        while (message := await self.got()).get("id") != name or "method" in message:
            pass
        return message


@asynccontextmanager
async def wired(*options: str) -> AsyncIterator[Wire]:
    """Start `agentctl acp` without a library."""
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, "acp", *options, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, limit=1 << 26, env=dict(os.environ),
    )  # fmt: skip
    try:
        yield Wire(process)
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait_for(process.wait(), 20)
