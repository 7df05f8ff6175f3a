"""At stake: whatever a client sends, `agentctl acp` answers it or ignores it, and goes on serving; no work is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acp_steps import Wire, seen, wired
from tests.agent_steps import agent_world, define, plays
from tests.steps import Task
from tests.support import run

HELLO = {"protocolVersion": 1, "clientCapabilities": {}}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


async def opened(wire: Wire) -> str:
    await wire.reply(1, "initialize", **HELLO)
    reply = await wire.reply(2, "session/new", cwd=str(Path.cwd()), mcpServers=[])
    session: str = reply["result"]["sessionId"]
    return session


def prompt(session: str, text: str, name: Any = 9) -> dict[str, Any]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"id": name, "method": "session/prompt", "params": params}


def test_junk_is_answered_and_harms_nothing(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            for junk, code in (
                (b"no JSON at all\n", -32700),
                (b"\xff\xfe\n", -32700),
                (b"[1, 2]\n", -32600),
                (b'"text"\n', -32600),
                (b"[" * 100_000 + b"\n", -32700),
                (b'{"a":' * 400 + b"1" + b"}" * 400 + b"\n", -32600),
                (b'{"jsonrpc": "2.0", "id": {}, "method": "initialize"}\n', -32600),
                (b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n', -32600),
            ):
                await wire.line(junk)
                assert (await wire.got())["error"]["code"] == code, junk[:40]
            for ignored in (
                b"\n   \n",
                b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}\n',
                b'{"jsonrpc": "2.0", "id": [], "result": 1}\n',
                b'{"jsonrpc": "2.0", "id": 77, "result": {}}\n',
                b'{"jsonrpc": "2.0", "id": 77, "error": "x"}\n',
                b'{"jsonrpc": "2.0", "method": "no/such/notification", "params": [1]}\n',
                b'{"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "nobody"}}\n',
                b'{"jsonrpc": "2.0", "method": "session/cancel"}\n',
                b'{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": [1]}}\n',
                b'{"jsonrpc": "2.0", "method": "$/cancel_request", "params": 5}\n',
                b'{"jsonrpc": "2.0"}\n',
            ):
                await wire.line(ignored)
            assert "result" in await wire.reply("a", "initialize", **HELLO)
            assert (await wire.reply(3, "no/such/method"))["error"]["code"] == -32601
            assert (await wire.reply(4, "session/fork", sessionId="x"))["error"]["code"] == -32601

    asyncio.run(run_it())


def test_wrong_parameters_are_named_and_not_repeated(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            early = await wire.reply(1, "session/new", cwd="/", mcpServers=[])
            assert "initialize comes first" in early["error"]["message"]
            assert "protocolVersion" in (await wire.reply(2, "initialize"))["error"]["message"]
            assert (await wire.reply(3, "initialize", protocolVersion=-1))["error"]["code"] == -32602
            session = await opened(wire)
            large = "x" * 100_000
            for method, params in (
                ("session/new", {"cwd": 5, "mcpServers": []}),
                ("session/new", {"cwd": str(Path.cwd()), "mcpServers": [], "_meta": {"cwd": 5, "self": 1}}),
                ("session/prompt", {"sessionId": session, "prompt": large}),
                ("session/prompt", {"sessionId": large, "prompt": []}),
                ("session/prompt", {"sessionId": session, "prompt": []}),
                ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": " \n"}]}),
                ("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "y" * 1_000_001}]}),
                ("session/prompt", {"sessionId": session, "prompt": [{"type": "image", "data": "", "mimeType": "a"}]}),
                ("session/set_mode", {"sessionId": session, "modeId": large}),
                ("session/list", {"cwd": "relative"}),
                ("session/load", {"cwd": "/", "sessionId": "../../../etc/passwd", "mcpServers": []}),
            ):
                reply = await wire.reply(5, method, **params)
                if method == "session/new" and "_meta" in params:
                    assert "result" in reply, reply
                else:
                    assert reply["error"]["code"] in (-32602, -32603, -32002), reply
                    assert len(json.dumps(reply)) < 5000, method
            assert run("list", "--json").json == []

    asyncio.run(run_it())


def test_a_second_prompt_is_refused_and_one_that_is_taken_back_is_cancelled(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            await wire.send(**prompt(session, "hang", 10))
            while "working" not in json.dumps(await wire.got()):
                pass
            second = await wire.reply(11, "session/prompt", **prompt(session, "say two")["params"])
            assert "is under way" in second["error"]["message"]
            await wire.send(method="$/cancel_request", params={"requestId": 11})
            await wire.send(method="$/cancel_request", params={"requestId": 10})
            while (message := await wire.got()).get("id") != 10:
                pass
            assert message["result"]["stopReason"] == "cancelled"

    asyncio.run(run_it())


def test_a_cancel_right_behind_its_prompt_counts(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            await wire.send(**prompt(session, "hang", 10))
            await wire.send(method="session/cancel", params={"sessionId": session})
            while (message := await wire.got()).get("id") != 10:
                pass
            assert message["result"]["stopReason"] == "cancelled"

    asyncio.run(run_it())


def lines(*messages: dict[str, Any]) -> bytes:
    """Return messages as one piece of input."""
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages)


def taken_back(name: Any) -> dict[str, Any]:
    return {"method": "$/cancel_request", "params": {"requestId": name}}


def test_a_prompt_that_is_taken_back_before_it_is_begun_starts_nothing(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            await wire.line(lines(prompt(session, "hang", 10), taken_back(10)))
            assert (await wire.got()) == {"jsonrpc": "2.0", "id": 10, "result": {"stopReason": "cancelled"}}
            await wire.send(**prompt(session, "say two", 11))
            while (message := await wire.got()).get("id") != 11:
                pass
            assert message["result"]["stopReason"] == "end_turn"

    asyncio.run(run_it())
    assert [row["command"] for row in run("list", "--json").json] == ["say two"]


def test_only_the_prompt_that_is_taken_back_is_cancelled(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"""
import os, time
me.assistant({{"type": "text", "text": "working"}})
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
me.answer("done")
"""

    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            meta = {"params": {**prompt(session, plays(tmp_path, script))["params"], "_meta": {"request": 11}}}
            await wire.send(**prompt(session, "", 10) | meta)
            while "working" not in json.dumps(await wire.got()):
                pass
            await wire.line(lines(prompt(session, "say two", 11), taken_back(11), taken_back(12)))
            while (message := await wire.got()).get("id") != 11:
                pass
            assert "is under way" in message["error"]["message"]
            gate.touch()
            while (message := await wire.got()).get("id") != 10:
                pass
            assert message["result"]["stopReason"] == "end_turn"

    asyncio.run(run_it())


def test_a_prompt_that_comes_while_its_session_is_loaded_can_be_cancelled(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            assert "result" in await wire.reply(3, "session/prompt", **prompt(session, "say one")["params"])
            load = {"cwd": str(Path.cwd()), "sessionId": session, "mcpServers": []}
            await wire.line(lines({"id": 4, "method": "session/load", "params": load}, prompt(session, "hang", 5)))
            while (message := await wire.got()).get("id") != 4:
                pass
            assert "is under way" in message["error"]["message"]
            await wire.send(method="session/cancel", params={"sessionId": session})
            while (message := await wire.got()).get("id") != 5:
                pass
            assert message["result"]["stopReason"] == "cancelled"

    asyncio.run(run_it())


def test_a_client_that_does_not_read_holds_up_nothing_but_itself(task: Task, tmp_path: Path) -> None:
    script = """
for number in range(400):
    me.turns = number
    me.assistant({"type": "text", "text": str(number) + " " + "x" * 20_000})
me.answer("the end")
"""

    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            await wire.send(**prompt(session, plays(tmp_path, script), 10))
            await asyncio.to_thread(task.has, "agent.started", session)
            await asyncio.to_thread(run, "wait-any", session, "--for", "blocked")
            seen_text = ""
            while (message := await wire.got()).get("id") != 10:
                seen_text += message["params"]["update"]["content"]["text"]
            assert message["result"]["stopReason"] == "end_turn"
            assert seen_text.endswith("the end")
            assert len(seen_text) > 400 * 20_000

    asyncio.run(run_it())


def test_what_an_agent_writes_cannot_break_the_protocol(task: Task, tmp_path: Path) -> None:
    define(
        task.path.parent.parent, "shell",
        """printf 'a\\n{"jsonrpc":"2.0","method":"session/update"}\\n\\033[2J\\377' """,
    )  # fmt: skip
    script = """
me.assistant({"type": "text", "text": "half \\ud83d of it\\n{\\"jsonrpc\\": 1}"})
import sys
sys.stdout.write('{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m","model":"n","content":[{"type":"tool_use",'
    '"id":"t\\\\u0000\\\\ud800","name":"B\\\\u001b[0m","input":{"n":NaN,"i":Infinity,"big":' + "9" * 400 + ',"d":'
    + '[' * 60 + ']' * 60 + '}}]}}\\n')
sys.stdout.flush()
me.answer("done")
"""

    async def run_it() -> None:
        async with wired() as wire:
            session = await opened(wire)
            for agent, text in ((None, plays(tmp_path, script)), ("shell", "x")):
                if agent:
                    session = (await wire.reply(3, "session/new", cwd=str(Path.cwd()), mcpServers=[]))["result"][
                        "sessionId"
                    ]
                    await wire.reply(4, "session/set_mode", sessionId=session, modeId=agent)
                await wire.send(**prompt(session, text, 10))
                while True:
                    line = await asyncio.wait_for(wire._out.readline(), 20)
                    message = json.loads(line, parse_constant=pytest.fail)
                    line.decode("utf-8")
                    assert message["jsonrpc"] == "2.0"
                    if message.get("id") == 10:
                        break
                    assert message["method"] == "session/update"
                    assert set(message["params"]) == {"sessionId", "update"}
                assert message["result"]["stopReason"] == "end_turn"

    asyncio.run(run_it())


def test_two_editors_share_a_session_without_harm(task: Task) -> None:
    async def run_it() -> None:
        async with wired() as one, wired() as other:
            session = await opened(one)
            await one.send(**prompt(session, "hang", 10))
            while "working" not in json.dumps(await one.got()):
                pass
            await other.reply(1, "initialize", **HELLO)
            loaded = await other.reply(2, "session/load", cwd=str(Path.cwd()), sessionId=session, mcpServers=[])
            assert "result" in loaded
            await other.send(**prompt(session, "say hello", 3))
            await seen(lambda: run("show", session, "--json").json["status"] != "queued")
            await other.send(method="session/cancel", params={"sessionId": session})
            for wire, name in ((one, 10), (other, 3)):
                while (message := await wire.got()).get("id") != name:
                    pass
                assert message["result"]["stopReason"] in ("cancelled", "end_turn"), message

    asyncio.run(run_it())
