"""At stake: before the protocol's library is loaded, the server gives exactly the answers that the library would."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from agentctl.domain.agent.own_tools import OFFER_VARIABLE
from agentctl.interfaces.mcp.early_answers import _Opening
from agentctl.interfaces.mcp.entry import Serving, offer_of
from agentctl.interfaces.mcp.server import AgentctlServer
from agentctl.operations.start.agent_server import server_command
from tests.agent_steps import agent_world
from tests.steps import Task
from tests.support import PROGRAM, alike, environment, wait_until

#: The first lines of Codex 0.169.0 and Claude Code 2.1.330.
CODEX = [
    (
        '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"experimental"'
        ':{"codex/auth-change":{}},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"codex-mcp-client","title":"Codex"'
        ',"version":"0.169.0"}}}'
    ),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    (
        '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"traceparent":'
        '"00-3a15d32a91b5ee1f98b5b59415a35396-c26cac19ad9fa90c-01","progressToken":0}}}'
    ),
]
_ENVELOPE = (
    '"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":'
    '{"name":"claude-code","title":"Claude Code","version":"2.1.330","description":"Anthropic\'s agentic coding tool",'
    '"websiteUrl":"https://claude.com/claude-code"},"io.modelcontextprotocol/clientCapabilities":{"roots":'
    '{"listChanged":true},"elicitation":{"form":{},"url":{}}}}}'
)
CLAUDE = [
    '{"jsonrpc":"2.0","id":"server-discover-probe-1","method":"server/discover",' + _ENVELOPE + "}",
    '{"method":"tools/list","jsonrpc":"2.0","id":0,' + _ENVELOPE + "}",
]
PING = '{"jsonrpc":"2.0","id":"p","method":"ping"}'
WAIT = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait","arguments":{"timeout_ms":0}}}'


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch, cap=3)


def with_version(lines: list[str], version: str) -> list[str]:
    """Return an opening for another revision of the protocol."""
    return [line.replace("2025-06-18", version).replace("2026-07-28", version) for line in lines]


OPENINGS = {
    **{f"codex {version}": [*with_version(CODEX, version), PING] for version in HANDSHAKE_PROTOCOL_VERSIONS},
    **{f"claude {version}": with_version(CLAUDE, version) for version in MODERN_PROTOCOL_VERSIONS},
    "listed twice, without initialized": [CODEX[0], CODEX[2], CODEX[2].replace('"id":1', '"id":2'), PING],
    "listed at once": [CLAUDE[1]],
    "a client that can do nothing": [
        (
            '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
            '"clientInfo":{"name":"c","version":"1"}}}'
        ),
        '{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    ],
}


def by_library(serving: Serving, lines: Iterable[str | bytes]) -> list[Any]:
    """Return the answers of the library's server to these lines."""
    made = AgentctlServer(serving.toolbox(), call_s=serving.call_seconds)
    answers: list[Any] = []

    async def talk() -> None:
        to_server, reading = anyio.create_memory_object_stream[Any](0)
        writing, from_server = anyio.create_memory_object_stream[Any](100)

        async def say() -> None:
            async with to_server:
                for line in lines:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await to_server.send(SessionMessage(message))
                    if isinstance(message, types.JSONRPCRequest):
                        told = (await from_server.receive()).message
                        answers.append(json.loads(told.model_dump_json(by_alias=True, exclude_unset=True)))

        async with anyio.create_task_group() as group, from_server:
            group.start_soon(say)
            await made.server.run(reading, writing, made.server.create_initialization_options())

    anyio.run(talk)
    return answers


def early(serving: Serving, lines: Iterable[str | bytes]) -> list[Any]:
    """Return the answers that need no library; None for a line that is left to the library."""
    toolbox = serving.toolbox()
    opening = _Opening(lambda: offer_of(toolbox))
    answers = (opening.answer(line if isinstance(line, bytes) else line.encode()) for line in lines)
    return [None if answer is None else json.loads(answer) for answer in answers if answer != b""]


@pytest.mark.parametrize("dialect", ["claude", "codex"])
@pytest.mark.parametrize("name", OPENINGS)
def test_an_opening_is_answered_as_the_library_does(task: Task, name: str, dialect: str) -> None:
    serving = Serving(dialect, call_seconds=0.0)
    answers = early(serving, OPENINGS[name])
    assert answers == by_library(serving, OPENINGS[name])
    assert all("result" in answer for answer in answers)


ODD = [
    "", "[]", "{}", "null", "{", '"x"', PING, WAIT, CODEX[2],
    CODEX[1],
    CODEX[0].replace("2025-06-18", "2027-01-01"),
    CODEX[0].replace('"id":0', '"id":0.5'), CODEX[0].replace('"id":0', '"id":true'),
    CODEX[0].replace('"id":0', '"id":null'), CODEX[0].replace('"id":0,', ""),
    CODEX[0].replace('"id":0', '"id":"\\ud83d"'),
    CODEX[0].replace('"name":"codex-mcp-client"', '"name":5'),
    CODEX[0].replace('{"form":{},"url":{}}', "5"), CODEX[0].replace('"url":{}', '"url":NaN'),
    CODEX[0].replace('{"codex/auth-change":{}}', '{"listChanged":true}'),
    CODEX[0].replace('"capabilities":', '"capable":'), CODEX[0].replace("initialize", "initialise"),
    CODEX[0].replace('"2.0"', '"1.0"'), CODEX[0].replace('"title":"Codex"', '"title":"' + "x" * 70_000 + '"'),
    CLAUDE[0].replace("2026-07-28", "2026-07-29"), CLAUDE[0].replace("clientCapabilities", "capabilities"),
    CLAUDE[0].replace("server/discover", "ping"), CLAUDE[0].replace("server/discover", "tools/call"),
    CLAUDE[0].replace('"roots":{"listChanged":true}', '"roots":{"listChanged":"yes"}'),
]  # fmt: skip


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_a_first_line_that_is_odd_is_left_to_the_library(line: str) -> None:
    assert _Opening(lambda: pytest.fail("asked")).answer(line.encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        CODEX[0], WAIT, CLAUDE[1], "5",
        CODEX[2].replace("progressToken", "token"), CODEX[2].replace('"_meta"', '"cursor":"x","_meta"'),
        CODEX[2].replace('"traceparent":"', '"traceparent":0,"tracestate":"'),
        CODEX[1].replace("initialized", "cancelled"), '{"jsonrpc":"2.0","id":3,"method":"resources/list"}',
    ],
)  # fmt: skip
def test_what_is_no_opening_any_more_is_left_to_the_library(task: Task, line: str) -> None:
    assert early(Serving(), [*CODEX, line])[-1] is None


def test_an_error_is_told_in_the_librarys_words(task: Task) -> None:
    def fails() -> Any:
        raise OSError

    assert _Opening(fails).answer(CODEX[0].encode()) is None


_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, -1, 0.5, True, None, "", "x", [], {}, {"form": {}}, {"listChanged": True}, [1], "2.0"]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, one in value.items() if isinstance(value, dict) else ():
        yield from _places(one, (*path, key))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_answered_early_the_library_answers_so(task: Task, data: st.DataObject) -> None:
    """One value of an opening is changed, removed or added."""
    lines = [json.loads(line) for line in data.draw(st.sampled_from([CODEX, CLAUDE]))]
    line = data.draw(st.sampled_from(lines))
    *path, last = data.draw(st.sampled_from([path for path in _places(line) if path]))
    for key in path:
        line = line[key]
    match data.draw(st.sampled_from(["change", "remove", "add"])):
        case "change":
            line[last] = data.draw(_VALUES)
        case "remove":
            del line[last]
        case _:
            line["more"] = data.draw(_VALUES)
    said = [json.dumps(line) for line in lines]
    answers = early(Serving(), said)
    certain = next((number for number, answer in enumerate(answers) if answer is None), None)
    if certain is None:
        assert answers == by_library(Serving(), said)


# -- as processes ------------------------------------------------------------------------------------------------------


@contextmanager
def server(*command: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, by default that of an agent."""
    argv = command or tuple(server_command("claude", call_s=0))
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=environment(environ), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[bytes], *lines: str) -> None:
    """Send lines in a single write."""
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    """Return the next answer."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def has_library(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the protocol's library is loaded in a server."""
    return "pydantic_core" in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")


FORMS = [
    pytest.param([], id="agent"),
    pytest.param([*PROGRAM, "mcp", "--tools", "claude"], id="person", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("command", FORMS)
def test_the_library_is_loaded_for_the_first_call_and_each_request_is_answered_once(
    task: Task, command: list[str]
) -> None:
    with server(*command) as process:
        say(process, *CODEX)
        assert [hear(process)["id"], hear(process)["id"]] == [0, 1]
        assert not has_library(process)
        say(process, WAIT, PING)
        assert {hear(process)["id"], hear(process)["id"]} == {7, "p"}
        assert has_library(process)
        assert process.communicate() == (b"", b"")
        assert process.returncode == 0


@pytest.mark.slow
def test_all_at_once_in_pieces_and_without_a_last_line_end(task: Task) -> None:
    with server() as process:
        assert process.stdin is not None
        data = "\n".join([*CLAUDE, WAIT.replace('{"name"', _ENVELOPE[9:-1] + ',"name"')]).encode()
        for start in (0, 100, 900):
            process.stdin.write(data[start : {0: 100, 100: 900, 900: len(data)}[start]])
            process.stdin.flush()
        assert [hear(process)["id"], hear(process)["id"]] == ["server-discover-probe-1", 0]
        say(process, "")
        assert hear(process)["result"]["structuredContent"]["status"] == {}


@pytest.mark.slow
def test_a_broken_first_line_is_answered_as_ever(task: Task) -> None:
    with server() as process:
        say(process, '{"jsonrpc":"2.0","id":3,"method":"initialize","params":{]')
        told = hear(process)
        assert (told["id"], told["error"]["code"]) == (3, types.PARSE_ERROR)
        say(process, *CODEX)
        assert [hear(process)["id"], hear(process)["id"]] == [0, 1]


@pytest.mark.parametrize("said", [[], CODEX])
def test_it_leaves_as_the_library_does(task: Task, said: list[str]) -> None:
    with server() as process:
        say(process, *said)
        out, err = process.communicate()
        assert (process.returncode, err, len(out.splitlines())) == (0, b"", 2 if said else 0)
    with server() as process:
        say(process, *CODEX[:1])
        hear(process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
    with server() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        say(process, *CODEX)
        assert (process.wait(), process.stderr.read()) == (0, b"")


def test_answers_that_were_got_ready_are_waited_for_and_used_once(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "offer.json"
    with file.open("w") as offer:
        fcntl.flock(offer, fcntl.LOCK_EX)
        with server(**{OFFER_VARIABLE: str(file)}) as process:
            say(process, *CODEX)
            wait_until(lambda: not file.exists(), what="the server to take the file")
            json.dump({"instructions": "do so", "tools": [{"name": "ready"}]}, offer)
            offer.flush()
            fcntl.flock(offer, fcntl.LOCK_UN)
            assert hear(process)["result"]["instructions"] == "do so"
            assert hear(process)["result"]["tools"] == [{"name": "ready"}]
            say(process, CODEX[2])
            assert "task" in [tool["name"] for tool in hear(process)["result"]["tools"]]


@pytest.mark.parametrize("left", [None, '{"instructions": "do so", "to', *alike("", "[]", '{"tools": []}')])
def test_without_answers_that_are_whole_it_finds_out_by_itself(task: Task, tmp_path: Path, left: str | None) -> None:
    file = tmp_path / "offer.json"
    if left is not None:
        file.write_text(left, encoding="utf-8")
    with server(**{OFFER_VARIABLE: str(file)}) as process:
        say(process, *CLAUDE)
        assert "sub-agents" in hear(process)["result"]["instructions"]
        assert "task" in [tool["name"] for tool in hear(process)["result"]["tools"]]
    assert not file.exists()


def test_a_server_prints_the_answers_that_it_would_give(task: Task) -> None:
    done = subprocess.run([*server_command("codex", call_s=0), "--offer"], capture_output=True, check=True)
    assert json.loads(done.stdout) == offer_of(Serving("codex", call_seconds=0.0).toolbox())


def test_an_agents_server_answers_with_the_standard_library_alone_and_little_of_it(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "offer.json"
    file.write_text('{"instructions": "", "tools": []}', encoding="utf-8")
    command = server_command("claude", call_s=0)
    with server(command[0], "-X", "importtime", *command[1:], **{OFFER_VARIABLE: str(file)}) as process:
        _, err = process.communicate("\n".join(CODEX).encode())
    loaded = {line.rpartition("|")[2].strip() for line in err.decode().splitlines()[1:]}
    assert "agentctl.interfaces.mcp.early_answers" in loaded
    assert {name.partition(".")[0] for name in loaded} <= sys.stdlib_module_names | {"agentctl", "org"}
    assert not loaded & {"typing", "subprocess", "dataclasses", "inspect", "socket", "threading", "pathlib", "site"}
    assert {name for name in loaded if name.startswith("agentctl.")} <= {
        "agentctl.adapters", "agentctl.adapters.descriptors", "agentctl.adapters.lines", "agentctl.domain",
        "agentctl.domain.agent", "agentctl.domain.agent.own_tools", "agentctl.encoding", "agentctl.errors",
        "agentctl.interfaces", "agentctl.interfaces.mcp", "agentctl.interfaces.mcp.early_answers",
        "agentctl.interfaces.mcp.entry", "agentctl.lean", "agentctl.tools", "agentctl.tools.prepared_offer",
    }  # fmt: skip
    assert os.listdir(tmp_path).count("offer.json") == 0
