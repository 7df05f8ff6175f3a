"""At stake: a session over MCP stays in one task, whatever is chosen elsewhere, and its answers are bounded."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from tests.agent_steps import agent_world, define
from tests.mcp_steps import TasksOfClient, ask_task, call, call_whole, connected, seen, talk, until
from tests.steps import Task
from tests.support import run


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed, an agent that prints its prompt and one that waits for a file."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done; echo at last")
    define(root, "echo", 'echo "said: $1"')
    return made


@pytest.mark.slow
def test_two_servers_that_begin_at_once_where_there_is_no_task_do_not_mix(root: Path) -> None:
    root.mkdir()
    define(root, "echo", 'echo "said: $1"')

    async def both() -> None:
        async with connected() as one, connected() as other:
            started = [call(client, "spawn_agent", agent_type="echo", message=name) for client, name in
                       ((one, "one"), (other, "other"))]  # fmt: skip
            first, second = await asyncio.gather(*started)
            told = [await call(one, "wait", ids=[first["id"]]), await call(other, "wait", ids=[second["id"]])]
            assert told[0]["results"][first["id"]]["output"] == "said: one"
            assert told[1]["results"][second["id"]]["output"] == "said: other"

    asyncio.run(both())


@pytest.mark.slow
def test_ids_mean_the_same_workers_whatever_is_chosen_elsewhere(task: Task, root: Path, tmp_path: Path) -> None:
    async def to(client: Client) -> None:
        assert (await call(client, "spawn_agent", agent_type="held", message="x", id="w"))["id"] == "w"
        blocking = asyncio.create_task(call(client, "task", objective="x", subagent_type="held"))
        await asyncio.to_thread(task.has, "agent.started", "held-1")
        await asyncio.to_thread(run, "new", "B")
        for name in ("w", "held-1"):
            await asyncio.to_thread(run, "spawn", "--name", name, "--", "sh", "-c", "echo SOMEBODY ELSE; sleep 60")
        assert await call(client, "close_agent", id="w") == {"previous_status": "running", "status": "cancelled"}
        assert [row["status"] for row in await call(client, "list_agents")] == ["running", "cancelled"]
        (tmp_path / "gate").touch()
        assert (await blocking)["result"] == "at last"

    talk(to)
    assert run("list", "--json", "--task", "b").json[0]["status"] == "running"
    run("cancel", "--all", "--task", "b")


@pytest.mark.slow
def test_a_token_is_good_for_its_task_after_a_restart_and_whatever_is_chosen(task: Task, tmp_path: Path) -> None:
    tokens: list[str] = []

    async def begin(client: Client) -> None:
        tokens.append((await call(client, "task", objective="x", subagent_type="held"))["taskId"])
        tokens.append((await call(client, "task", objective="x", subagent_type="held"))["taskId"])

    async def go_on(client: Client) -> None:
        assert (await ask_task(client, "tasks/get", taskId=tokens[0]))["status"] == "working"
        await ask_task(client, "tasks/cancel", taskId=tokens[0])
        (tmp_path / "gate").touch()
        await until(client, tokens[0], "cancelled")
        done = await until(client, tokens[1], "completed")
        assert json.loads(done["result"]["content"][0]["text"])["result"] == "at last"
        assert done["createdAt"] < done["lastUpdatedAt"]
        again = await ask_task(client, "tasks/get", taskId=tokens[1])
        assert again["lastUpdatedAt"] == done["lastUpdatedAt"], "nothing has changed since"

    talk(begin, mode="auto", extensions=[TasksOfClient()])
    run("new", "B")
    talk(go_on, mode="auto", extensions=[TasksOfClient()])


def test_where_there_is_no_task_nobody_is_listed_or_waited_for(root: Path) -> None:
    async def to(client: Client) -> None:
        assert await call_whole(client, "list_agents") == ([], False)
        told, is_error = await call_whole(client, "wait")
        assert (told["status"], told["still_running"], is_error) == ({}, [], False)
        assert "nothing was started" in told["note"]
        named = await call(client, "wait", ids=["a"])
        assert named["status"] == {"a": "not_found"}
        for tool, more in (("send_input", {"message": "x"}), ("close_agent", {}), ("resume_agent", {})):
            said = await call_whole(client, tool, id="a", **more)
            assert said == ({"error": "no worker 'a': nothing was started"}, True), tool

    talk(to)
    assert not root.exists(), "what starts nobody makes no task"


@pytest.mark.slow
def test_a_wait_without_names_is_for_what_the_session_has_started(task: Task, tmp_path: Path) -> None:
    run("spawn", "--name", "by-hand", "--", "true")
    run("wait", "by-hand")

    async def to(client: Client) -> None:
        assert "note" in await call(client, "wait"), "the person's own worker is none of this session's"
        asked = await call(client, "create_subtask_general", title="Third", intent="question")
        assert asked["questions"]["third"]["question"] == "Which colour?"
        told = await call(client, "wait", timeout_ms=1500)
        assert (told["status"], told["still_running"]) == ({"third": "blocked"}, [])
        assert told["results"]["third"]["question"]["question"] == "Which colour?"
        later = await call(client, "wait", timeout_ms=100, cursor=told["cursor"])
        assert (later["still_running"], later["timed_out"]) == (["third"], True)
        assert later["questions"]["third"]["question"] == "Which colour?", "whoever has lost it is told again"
        await call(client, "send_input", id="third", message="blue")
        ended = await call(client, "wait", cursor=told["cursor"])
        assert ended["results"]["third"]["output"] == "blue"
        both = await call(client, "wait", ids=["by-hand"])
        assert both["status"] == {"by-hand": "completed"}

    talk(to)

    async def after_a_restart(client: Client) -> None:
        told = await call(client, "wait")
        assert told["status"] == {"third": "completed"}, "what the sessions before this one have started"
        await call(client, "spawn_agent", message="say more", id="more")
        assert list((await call(client, "wait"))["status"]) == ["more"]

    talk(after_a_restart)


@pytest.mark.slow
@pytest.mark.parametrize(("call_seconds", "asked_ms", "longest_s"), [("0.5", 20_000, 5), ("0", 1_200, 10)])
def test_a_wait_keeps_to_its_own_time_and_to_that_of_a_call(
    task: Task, call_seconds: str, asked_ms: int, longest_s: float
) -> None:
    async def to(client: Client) -> None:
        await call(client, "spawn_agent", agent_type="held", message="x", id="h")
        begun = time.monotonic()
        told = await call(client, "wait", ids=["h"], timeout_ms=asked_ms)
        passed = time.monotonic() - begun
        assert told["timed_out"] is True
        assert min(float(call_seconds) or 9, asked_ms / 1000) <= passed < longest_s
        (wait,) = [tool for tool in (await client.list_tools()).tools if tool.name == "wait"]
        at_most = "as long as you say" if call_seconds == "0" else "0.5 s at most"
        assert at_most in str(wait.description)
        assert "default: 30000" in wait.input_schema["properties"]["timeout_ms"]["description"]
        await call(client, "close_agent", id="h")

    talk(to, "--call-seconds", call_seconds)


@pytest.mark.slow
def test_progress_tells_who_does_what_and_is_bounded(task: Task, tmp_path: Path) -> None:
    define(task.path.parents[1], "busy", "agentctl report progress 40 'reading the docs'; sleep 60")
    told: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(str(message))

    async def to(client: Client) -> None:
        names = [f"held-{number}" for number in range(8)]
        for name in ["b", *names]:
            kind = "busy" if name == "b" else "held"
            await call(client, "spawn_agent", agent_type=kind, message="x" * 500, id=name)
        waiting = asyncio.create_task(
            client.call_tool("wait", {"ids": ["b", *names], "timeout_ms": 20_000}, progress_callback=on_progress)
        )
        await seen(lambda: any("b: 40 % reading the docs" in one for one in told))
        await call(client, "close_agent", id="b")
        await waiting
        for name in names:
            await call(client, "close_agent", id=name)

    talk(to, "--progress-seconds", "0.1")
    assert any("0 of 9 ended" in one and "queued" in one and "and 4 more" in one for one in told)
    assert max(map(len, told)) < 700


@pytest.mark.slow
def test_lists_and_waits_tell_a_part_at_a_time(task: Task, root: Path) -> None:
    lines = [{"argv": ["true"], "name": f"w{number}"} for number in range(60)]
    batch = root / "batch.jsonl"
    batch.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    run("spawn", "--queue", "--batch", batch)
    run("wait-all", timeout=60)

    async def to(client: Client) -> None:
        await call(client, "spawn_agent", agent_type="held", message="x", id="h")
        rows = await call(client, "list_agents")
        assert rows[0]["id"] == "h", "who works comes first"
        assert len(rows) == 51
        assert rows[-1]["more"] == 11
        rest = await call(client, "list_agents", offset=50)
        assert len(rest) == 11
        names = {row["id"] for row in [*rows[:-1], *rest]}
        assert names == {"h", *(line["name"] for line in lines)}
        told: set[str] = set()
        cursor, more = "", 1
        while more:
            part = await call(client, "wait", ids=sorted(names), cursor=cursor, timeout_ms=0)
            assert len(part["status"]) <= 40
            assert told.isdisjoint(part["status"])
            told |= set(part["status"])
            cursor, more = part["cursor"], part.get("more", 0)
        assert told == names - {"h"}
        huge = await client.call_tool("wait", {"ids": ["x" * 1_000_000], "timeout_ms": 0})
        assert len(huge.model_dump_json()) < 10_000
        answered_at_once, at_once_s = await beside_many(client, ids=sorted(names), cursor=cursor, timeout_ms=0)
        await asyncio.gather(*answered_at_once)
        waits, longest_s = await beside_many(client, ids=sorted(names), cursor=cursor)
        assert not any(wait.done() for wait in waits)
        assert longest_s < 3 * at_once_s, "many that wait hold up others no more than many that are answered at once"
        await call(client, "close_agent", id="h")
        for answer in await asyncio.gather(*waits):
            assert answer["status"] == {"h": "cancelled"}

    talk(to)


async def beside_many(client: Client, **asked: Any) -> tuple[list[asyncio.Task[Any]], float]:
    """Call `wait` a hundred times at once; return the calls, and the longest time that another one took meanwhile."""
    calls, longest_s = [asyncio.create_task(call(client, "wait", **asked)) for _ in range(100)], 0.0
    for _ in range(20):
        begun = time.monotonic()
        await client.list_tools()
        longest_s = max(longest_s, time.monotonic() - begun)
    return calls, longest_s


@pytest.mark.slow
def test_a_failed_agent_is_an_error_to_its_client_and_a_cancelled_one_is_none(task: Task, root: Path) -> None:
    define(root, "fails", "echo so far; exit 3")

    async def to(client: Client) -> None:
        failed: list[tuple[str, dict[str, Any]]] = [
            ("task", {"objective": "x", "subagent_type": "fails"}),
            ("task", {"objective": "x", "subagent_type": "nobody"}),
            ("create_subtask_fails", {"title": "x"}),
            ("create_subtask_nobody", {"title": "x"}),
            ("spawn_agent", {"message": "x", "agent_type": "fails", "run_in_background": False}),
        ]
        for tool, given in failed:
            _, is_error = await call_whole(client, tool, **given)
            assert is_error, tool
        several, is_error = await call_whole(
            client, "task_parallel", tasks=[{"objective": "x", "subagent_type": "nobody"}]
        )
        assert not is_error, "each has its own"
        assert several["results"][0]["status"] == "failed"
        assert "explore" in several["results"][0]["error"], "which agents there are"
        blocking = asyncio.create_task(call_whole(client, "create_subtask_held", title="Long"))
        await seen((root / "tasks" / "long" / "agents" / "held-1" / "worker.json").exists)
        await call(client, "close_agent", id="long")
        ended, is_error = await blocking
        assert (ended["subTaskStatus"], is_error) == ("Cancel", False)

    talk(to)
