"""An ACP agent with bad manners, written with the protocol's library: `acp_agent.py MANNER`.

What the library would not do itself is written to stdout past it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from acp import (
    PROTOCOL_VERSION,
    Agent,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
    update_agent_message_text,
)
from acp.helpers import start_tool_call, text_block, tool_content, update_tool_call
from acp.schema import AgentCapabilities, Cost, Usage, UsageUpdate

SESSION = "session-1"
OTHER_SESSION = "session-2"
EIGHT_MB = 8 << 20
OPTIONS = [
    {"optionId": "o-yes", "name": "Do it", "kind": "allow_once"},
    {"optionId": "o-ever", "name": "Always", "kind": "allow_always"},
    {"optionId": "o-strange", "name": "Strange", "kind": "allow_somehow"},
    {"optionId": "o-no", "name": "Do not", "kind": "reject_once"},
]
#: The modes of the manners that have any, and the one that such a session begins in.
MODES = [{"id": one, "name": one} for one in ("ask", "auto")]
BEGINS_IN = {"loose": "auto", "drifts": "ask"}
#: More than any pipe holds.
FLOOD = b"a line of noise on stderr\n" * 100_000


def raw(message: dict[str, Any] | str | bytes) -> None:
    """Write to stdout whatever it is, as a line."""
    data = (
        message
        if isinstance(message, bytes)
        else (message if isinstance(message, str) else json.dumps(message)).encode()
    )
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def update(what: str, session: str = SESSION, **fields: Any) -> None:
    """Write an update past the library."""
    told = {"sessionId": session, "update": {"sessionUpdate": what, **fields}}
    raw({"jsonrpc": "2.0", "method": "session/update", "params": told})


def note(name: str, text: str) -> None:
    """Write a file beside its own for the test to see; it is there only when it is whole."""
    draft = Path(f"{name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.rename(name)


async def exists(name: str) -> None:
    """Wait for a file of the test's."""

    def wait() -> None:
        while not Path(name).exists():
            time.sleep(0.02)

    await asyncio.to_thread(wait)


def fork(*, is_detached: bool) -> None:
    """Start a process that lasts, and note its pid."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=is_detached, stdout=subprocess.DEVNULL)
    note("forked", str(child.pid))


class BadManners:
    """An agent that does one thing wrong."""

    def __init__(self, manner: str) -> None:
        self.manner = manner
        self.prompts = 0
        self.cancelled = asyncio.Event()
        self.answers: dict[str, Any] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def on_connect(self, conn: Any) -> None:
        """Keep the way to the client."""
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Greet, unless that is what it does not do."""
        if self.manner == "mute":
            await asyncio.Event().wait()
        if self.manner == "twice":
            raw({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}})
            raw({"jsonrpc": "2.0", "id": 77, "result": {}})
        version = 2 if self.manner == "v2" else PROTOCOL_VERSION
        can_load = self.manner != "forgets"
        return InitializeResponse(protocol_version=version, agent_capabilities=AgentCapabilities(load_session=can_load))

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Open a session."""
        if self.manner == "locked":
            raise RequestError.auth_required({"message": "log in first"})
        return NewSessionResponse.model_validate({"sessionId": SESSION, **self.modes()})

    def modes(self) -> dict[str, Any]:
        """Return the modes of a session, as the reply that opens it has them."""
        current = os.environ.get("OURS", BEGINS_IN.get(self.manner))
        modes = [*MODES, {"id": current, "name": "ours"}]
        return {"modes": {"currentModeId": current, "availableModes": modes}} if current else {}

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> Any:
        """Tell the history again; a session may have another id from now on."""
        update("user_message_chunk", session_id, content={"type": "text", "text": "the old prompt"})
        update("tool_call", session_id, toolCallId="old", title="old work", kind="execute", status="completed")
        update("agent_message_chunk", session_id, content={"type": "text", "text": "the old answer"})
        if self.manner == "renames":
            return {"sessionId": OTHER_SESSION}
        return LoadSessionResponse.model_validate(self.modes())

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Misbehave."""
        self.prompts += 1
        self.session, self.text = session_id, "\n".join(block.text for block in prompt)
        play: Callable[[], Awaitable[PromptResponse | None]] = getattr(self, f"_{self.manner}", self._polite)
        return await play() or PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the turn, unless it is deaf."""
        self.cancelled.set()

    async def say(self, text: str) -> None:
        """Send a piece of a message."""
        await self.client.session_update(self.session, update_agent_message_text(text))

    async def ask(self, request_id: Any, call: dict[str, Any], options: Any = OPTIONS) -> None:
        """Ask for a permission under an id of its own choice; the answer is nobody's business but the test's."""
        params = {"sessionId": self.session, "toolCall": call, "options": options}
        raw({"jsonrpc": "2.0", "id": request_id, "method": "session/request_permission", "params": params})

    # -- manners -----------------------------------------------------------------------------------------------

    async def _polite(self) -> None:
        await self.say("Done: ")
        await self.say(self.text)

    async def _drifts(self) -> None:
        """At the second prompt, take another mode, and go on in it."""
        if "again" in self.text:
            update("current_mode_update", currentModeId="auto")
            await asyncio.Event().wait()
        await self._polite()

    async def _floods(self) -> None:
        sys.stderr.buffer.write(FLOOD)
        sys.stderr.buffer.flush()
        await self.say("flooded")

    async def _forks(self) -> None:
        fork(is_detached=True)
        await self.say("forked")

    async def _deaf(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        fork(is_detached=False)
        await self.say("I hear nothing")
        update("tool_call", toolCallId="long", title="long work", kind="execute", status="in_progress")
        await asyncio.Event().wait()

    async def _unknown(self) -> None:
        update("of_next_year", text="what is this?")
        update("tool_call", toolCallId=7, title="an id that is a number")
        update("agent_message_chunk", content={"type": "hologram"})
        raw({"jsonrpc": "2.0", "method": "_vendor/news", "params": {"x": 1}})
        raw({"jsonrpc": "2.0", "id": "q", "method": "_vendor/question", "params": {}})
        raw({"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}})
        raw({"jsonrpc": "2.0", "id": 1, "method": "terminal/create", "params": {"command": "id"}})
        await self.say("known")

    async def _huge(self) -> None:
        text = "x" * EIGHT_MB
        update("tool_call", toolCallId="big", title="big", kind="read", status="in_progress")
        # Through the library: it has made the pipe non-blocking, and waits until there is room.
        block = tool_content(text_block(text))
        await self.client.session_update(self.session, update_tool_call("big", status="completed", content=[block]))
        await self.say("small")

    async def _chatty(self) -> None:
        raw("INFO starting up")
        raw(b"\xff\xfe not even text")
        raw("[1, 2, 3]")
        raw("")
        raw('{"jsonrpc": "2.0", "method": "session/upd')
        await self.say("quiet")

    async def _unannounced(self) -> None:
        await self.ask("p", {"toolCallId": "c", "title": "rm -rf build", "kind": "execute"})
        await self.until_answered("p")

    async def _ids(self) -> None:
        for request_id in (0, "0", -5, 2**53, "é", ""):
            call = {"toolCallId": f"c-{request_id!r}", "title": f"call {request_id!r}", "kind": "execute"}
            await self.ask(request_id, call)
        for request_id in (0, "0", -5, 2**53, "é", ""):
            await self.until_answered(request_id)

    async def _twice(self) -> None:
        await self.say("once")
        raw({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}})
        raw({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}})

    async def _takes_back(self) -> None:
        await self.ask("p", {"toolCallId": "c", "title": "touch a", "kind": "execute"})
        await exists("asked")
        raw({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "p"}})
        await self.until_answered("p")

    async def _quits(self) -> None:
        await self.say("half an ans")
        os._exit(0)

    async def _dies(self) -> None:
        await self.say("half an ans")
        os.kill(os.getpid(), signal.SIGKILL)

    async def _gives_up(self) -> PromptResponse:
        await self.say("half an ans")
        return PromptResponse(stop_reason="cancelled")

    async def _declines(self) -> PromptResponse:
        return PromptResponse(stop_reason="refusal")

    async def _overflows(self) -> PromptResponse:
        await self.say("half an ans")
        return PromptResponse(stop_reason="max_tokens")

    async def _goes_round(self) -> PromptResponse:
        return PromptResponse(stop_reason="max_turn_requests")

    async def _broke(self) -> None:
        raise RequestError(-32603, "Internal error", {"details": "429 insufficient_quota: no money"})

    async def _works(self) -> PromptResponse:
        """Call a tool again and again, until it is cancelled."""
        number = 0
        while not self.cancelled.is_set():
            number += 1
            name = f"call-{number}"
            await self.client.session_update(self.session, start_tool_call(name, f"step {number}", kind="execute"))
            await self.client.session_update(self.session, update_tool_call(name, status="completed"))
            await asyncio.sleep(0.01)
        return PromptResponse(stop_reason="cancelled")

    async def _spends(self) -> PromptResponse:
        cost = Cost(amount=0.25 * self.prompts, currency="USD")
        spent = UsageUpdate(session_update="usage_update", used=1000, size=200_000, cost=cost)
        await self.client.session_update(self.session, spent)
        usage = Usage(total_tokens=160, input_tokens=100, output_tokens=50, cached_read_tokens=10)
        return PromptResponse(stop_reason="end_turn", usage=usage)

    async def _rises(self) -> None:
        """End the turn, then begin another one that nobody asked for."""
        await self.say("the answer")
        self.tasks.append(asyncio.create_task(self._by_itself()))

    async def _by_itself(self) -> None:
        await exists("rise")
        await self.say("one more thing")
        await self.cancelled.wait()
        note("risen", "cancelled")

    async def _nests(self) -> None:
        raw_input = {"description": "look", "prompt": "look around", "subagent_type": "explorer"}
        update("tool_call", toolCallId="a", title="look", kind="think", status="pending", rawInput=raw_input)
        meta = {"claudeCode": {"toolName": "Bash", "parentToolUseId": "a"}}
        update("tool_call", toolCallId="b", title="ls", kind="execute", status="completed", _meta=meta)
        update("agent_message_chunk", "child-1", content={"type": "text", "text": "from a session of its own"})
        update("tool_call_update", toolCallId="a", status="completed", rawOutput={"output": "found it"})
        await self.say("nested")

    async def until_answered(self, request_id: Any) -> None:
        """Wait for the answer to a request that was written past the library."""
        await seen.wait_for(json.dumps(request_id))
        await self.say(f"{request_id!r}: {json.dumps(seen.answers[json.dumps(request_id)])}\n")


class Seen:
    """What the client answered, as it came in: requests past the library have answers past it, too."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.news = asyncio.Condition()

    async def wait_for(self, key: str) -> None:
        """Wait until there is an answer of this id."""
        async with self.news:
            await self.news.wait_for(lambda: key in self.answers)

    async def observe(self, event: Any) -> None:
        """Keep each response."""
        message = event.message
        if "id" in message and "method" not in message:
            async with self.news:
                self.answers[json.dumps(message["id"])] = message.get("result", message.get("error"))
                self.news.notify_all()


seen = Seen()


async def main() -> None:
    """Serve one client."""
    logging.disable(logging.CRITICAL)
    if sys.argv[1] == "nonsense":
        print("usage: it has no such argument")
        print("x" * 300, "1 %\r\x1b[31mout of luck\x1b[m", sep="\n", end="", file=sys.stderr)
        sys.exit(3)
    await run_agent(cast(Agent, BadManners(sys.argv[1])), observers=[seen.observe])


if __name__ == "__main__":
    if "--version" in sys.argv:
        print("1.2.3")
        sys.exit()
    if sys.argv[1] == "locks" and (tries := int(Path("locked").read_text())):
        note("locked", str(tries - 1))
        sys.exit("SQLiteError: database is locked\n" + "    at some function\n" * 20)
    asyncio.run(main())
