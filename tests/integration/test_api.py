"""At stake: a Python program can delegate like a terminal: each result in its place, no worker lost or left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NotRequired

import pytest
from typing_extensions import get_type_hints

import agentctl
from agentctl import Question, TaskExecutor, TaskResult
from agentctl.adapters.locks import locked
from agentctl.adapters.treedir import tree_at
from agentctl.operations.stop.cancelling import cancel_workers
from tests.agent_steps import agent_world
from tests.life import kill_shims, leader_of
from tests.steps import Task, held, kill, most_at_once, new_task, row, spawn, statuses
from tests.support import alike, run, wait_for_text, wait_until, worker

ECHO = """---
name: echo
description: Answers with its prompt.
driver: command
argv: ["/bin/sh", "-c", "printf '%s' \\"$1\\"", "sh"]
---
"""
#: For a file in the folder of the test, where nobody makes it.
FOREVER = worker("waits_for_file", "never")


@pytest.fixture
def task(root: Path, tmp_path: Path) -> Task:
    """Make a task, with an agent that needs no model."""
    agents = tmp_path / "home" / ".config" / "agentctl" / "agents"
    agents.mkdir(parents=True)
    (agents / "echo.md").write_text(ECHO, encoding="utf-8")
    return new_task(cap=4)


def shell(line: str, **more: Any) -> dict[str, Any]:
    """Return a task that runs a line of shell."""
    return {"objective": line, "argv": ["/bin/sh", "-c", line], **more}


def execute(items: list[dict[str, Any]], **how: Any) -> list[TaskResult]:
    """Run tasks to their ends in a new event loop."""

    async def main() -> list[TaskResult]:
        async with TaskExecutor(**how) as executor:
            return await executor.execute_parallel(items)

    return asyncio.run(main())


async def until(predicate: Callable[[], object], what: str) -> None:
    """Wait in a coroutine until a condition is true."""
    await asyncio.to_thread(wait_until, predicate, what=what)


# -- results -----------------------------------------------------------------------------------------------------------


def different(number: int) -> tuple[dict[str, Any], tuple[str, str, str]]:
    """Return a task, and what to expect: the status, and a part of the result and of the error."""
    match number % 5:
        case 0:
            return shell(f"echo {number}"), ("completed", str(number), "")
        case 1:
            return shell(f"echo {number}; echo out of cheese >&2; exit 3"), ("failed", str(number), "code 3: out of ch")
        case 2:
            return {"objective": f"task {number}", "subagent_type": "nobody"}, (
                "failed",
                "",
                "Unknown agent type: nobo",
            )
        case 3:
            return shell("exec sleep 60", timeout_seconds=0.1), ("timeout", "", "its time limit of 0.1 s passed")
        case _:
            return {"objective": "", "n": number}, ("failed", "", f"tasks[{number}]: objective is missing")


@pytest.mark.parametrize("count", [3, *alike(5, 10, 100)])
def test_results_keep_their_order_and_name_who_failed_how(task: Task, count: int) -> None:
    items, expected = zip(*map(different, range(count)), strict=True)
    results = execute(list(items))
    for item, (status, text, error), result in zip(items, expected, results, strict=True):
        assert (result.objective, result.status) == (item.get("objective", ""), status)
        assert (result.result or "") == text
        assert error in (result.error or "")
        assert bool(result.error) == (status != "completed")
        assert (result.task_id is None) == (result.started_at is None)
    names = [result.task_id for result in results if result.task_id]
    assert sorted(names) == sorted(statuses())


def test_an_agent_is_told_the_objective_with_its_context(task: Task) -> None:
    told, plain = execute(
        [
            {"objective": "look", "subagent_type": "echo", "context": {"folder": "src"}},
            {"objective": "look", "subagent_type": "echo"},
        ]
    )
    assert told.result == 'look\n\nContext:\n{\n  "folder": "src"\n}'
    assert (plain.result, plain.agent_type, plain.error) == ("look", "echo", None)
    assert plain.to_json() | {"result": "look"} == plain.to_json()
    assert plain.duration > 0


def test_one_task_may_be_worded_as_in_a_batch_or_be_a_command_alone(task: Task) -> None:
    agent, command = execute([{"prompt": "look", "agent": "echo"}, {"argv": ["/bin/echo", "a b"]}])
    assert (agent.objective, agent.agent_type, agent.result) == ("look", "echo", "look")
    assert (command.objective, command.result) == ("/bin/echo 'a b'", "a b")

    async def main() -> TaskResult:
        async with TaskExecutor() as executor:
            return await executor.execute_task(argv=["/bin/echo", "1"])

    assert asyncio.run(main()).result == "1"


def test_the_errors_of_one_task_alone_do_not_say_which_one(task: Task) -> None:
    (unknown,) = execute([{"objective": "x", "subagent_type": "nobody"}])
    assert str(unknown.error).startswith("Unknown agent type: nobody (known: ")
    (wrong,) = execute([{"objective": "x", "subagent_typ": "plan"}])
    assert str(wrong.error).startswith("unknown key 'subagent_typ' (did you mean 'subagent_type'?)")
    with pytest.raises(agentctl.NotFound, match=r"^Unknown agent type: nobody"):
        agentctl.Task.find().spawn("x", agent="nobody")
    with pytest.raises(agentctl.NotFound, match=r"^items\[1\]: Unknown agent type: nobody"):
        agentctl.Task.find().spawn_many([{"argv": ["true"]}, {"prompt": "x", "agent": "nobody"}])
    assert statuses() == {}


def test_errors_speak_of_arguments_and_calls(task: Task) -> None:
    """Of the results of an executor, and of what a task raises."""
    chosen = agentctl.Task.find()
    chosen.spawn(argv=["true"], name="a")
    for raised, hint in (
        ({"name": "a"}, "choose another name="),
        ({"name": "b", "cwd": "/nowhere"}, "choose another cwd="),
    ):
        with pytest.raises(agentctl.AgentctlError) as refused:
            chosen.spawn(argv=["true"], **raised)  # type: ignore[arg-type]
        assert refused.value.hint == hint
        (failed,) = execute([{"argv": ["true"], **raised}])
        assert str(failed.error).endswith(f"({hint})")
    with pytest.raises(agentctl.NotFound) as missing:
        agentctl.Task.find(root="nowhere")
    assert missing.value.hint == 'Task.create("TITLE") starts a task here; or choose another root='
    (failed,) = execute([{"argv": ["true"], "key": "k", "reuse": True}])
    assert str(failed.error).startswith("reuse and a key exclude each other")

    async def main() -> None:
        async with TaskExecutor() as executor:
            with pytest.raises(agentctl.NotFound) as unknown:
                await executor.wait_task("nobody")
            assert unknown.value.__notes__ == ["hint: known: a"]

    asyncio.run(main())


def test_overflow_waits_in_the_queue(task: Task, tmp_path: Path) -> None:
    task.set_cap(2)
    argv = worker("overlaps", tmp_path / "at-work")
    results = execute([{"objective": "x", "argv": argv} for _ in range(6)])
    assert {result.status for result in results} == {"completed"}
    assert most_at_once(tmp_path / "at-work") <= 2


def test_one_that_cannot_be_executed_takes_nothing_from_the_others(task: Task, tmp_path: Path) -> None:
    """Its interpreter does not exist, which only the start can find out."""
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path}/missing\n", encoding="utf-8")
    script.chmod(0o700)
    bad = {"objective": "bad", "argv": [str(script)]}
    results = execute([shell("echo 1"), bad, shell("echo 3")])
    assert [result.status for result in results] == ["completed", "failed", "completed"]
    assert (results[0].result, results[2].result) == ("1", "3")
    assert "not_started" in (results[1].error or "")
    assert len(task.events("agent.queued")) == 3, "nobody was started twice"


def test_one_worker_for_two_tasks_with_the_same_key_answers_both(task: Task) -> None:
    async def main() -> list[TaskResult]:
        async with TaskExecutor() as executor:
            first = asyncio.ensure_future(executor.execute_task("one", argv=["/bin/echo", "1"], key="k"))
            other = asyncio.ensure_future(executor.execute_task("other", argv=["/bin/echo", "1"], key="k"))
            return [await first, await other, await executor.execute_task("late", argv=["/bin/echo", "1"], key="k")]

    results = asyncio.run(main())
    assert [(one.objective, one.result) for one in results] == [("one", "1"), ("other", "1"), ("late", "1")]
    assert len(statuses()) == 1


def test_a_long_answer_is_cut_and_says_so(task: Task) -> None:
    async def main() -> TaskResult:
        async with TaskExecutor() as executor:
            executor.max_result_bytes = 100
            return await executor.execute_task("x", argv=["/bin/sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x"])

    result = asyncio.run(main())
    assert (result.result, result.truncated, result.size) == ("x" * 100, True, 5000)
    assert result.path == str(task.agent(str(result.task_id)) / "stdout.log")
    assert result.to_json()["truncated"] is True


def test_results_are_streamed_as_they_end(task: Task, tmp_path: Path) -> None:
    async def main() -> list[str | None]:
        found = []
        items = [held(tmp_path / name, name) | {"objective": name} for name in ("a", "b", "c")]
        async with TaskExecutor() as executor:
            (tmp_path / "b").touch()
            async for result in executor.stream(items):
                found.append(result.task_id)
                (tmp_path / {"b": "c", "c": "a"}.get(str(result.task_id), "none")).touch()
        return found

    assert asyncio.run(main()) == ["b", "c", "a"]


def test_no_thread_is_spent_on_a_worker(task: Task, tmp_path: Path) -> None:
    async def main() -> int:
        async with TaskExecutor() as executor:
            gate = tmp_path / "gate"
            items = [held(gate, f"a{number}") | {"objective": "x"} for number in range(4)]
            running = asyncio.ensure_future(executor.execute_parallel(items))
            await until(lambda: len(task.events("agent.started")) == 4, "all to run")
            before = threading.active_count()
            assert executor.get_active_task_count() == 4
            gate.touch()
            await running
            assert executor.get_active_task_count() == 0
            return before

    # The main thread, the executor's, and one that `until` waited in.
    assert asyncio.run(main()) <= threading.active_count() + 3


# -- cancelling and leaving --------------------------------------------------------------------------------------------


def test_cancelling_the_coroutine_cancels_its_workers(task: Task) -> None:
    async def main() -> None:
        async with TaskExecutor() as executor:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await executor.execute_parallel([{"objective": "x", "argv": FOREVER}] * 6)
            assert executor.get_active_task_count() == 0

    asyncio.run(main())
    run("wait-all", check=False)
    assert set(statuses().values()) == {"cancelled"}
    assert len(statuses()) == 6


def test_a_coroutine_can_leave_its_worker_and_come_back(task: Task, tmp_path: Path) -> None:
    async def main() -> TaskResult:
        async with TaskExecutor(on_cancel="leave") as executor:
            item = held(tmp_path / "gate", "a")
            waiting = asyncio.ensure_future(executor.execute_parallel([item | {"objective": "x"}]))
            await until(lambda: statuses() == {"a": "running"}, "a to run")
            waiting.cancel()
            await asyncio.wait([waiting])
            with pytest.raises(agentctl.WaitTimedOut, match="a is still at work"):
                await executor.wait_task("a", timeout_seconds=0.05)
            assert row("a")["status"] == "running"
            (tmp_path / "gate").touch()
            return await executor.wait_task("a")

    assert asyncio.run(main()).status == "completed"


@pytest.mark.slow
def test_the_end_of_the_executor_leaves_or_cancels_too(task: Task, tmp_path: Path) -> None:
    async def main(how: Literal["cancel", "leave"], name: str) -> None:
        async with TaskExecutor(on_cancel=how) as executor:
            item = held(tmp_path / "gate", name) | {"objective": "x"}
            waiting = asyncio.ensure_future(executor.execute_parallel([item]))
            await until(lambda: name in statuses(), f"{name} to be there")
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        with pytest.raises(agentctl.Refused, match="closed"):
            await executor.execute_task("x", argv=["true"])

    asyncio.run(main("leave", "left"))
    asyncio.run(main("cancel", "cancelled"))
    (tmp_path / "gate").touch()
    run("wait-all", check=False)
    assert statuses() == {"left": "completed", "cancelled": "cancelled"}


def test_who_waits_is_let_go_before_a_closing_executor_cancels(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the end of the cancelled worker would be returned as a result."""
    executor, under_way = TaskExecutor(), []

    def cancel(*args: Any, **how: Any) -> Any:
        under_way.append(executor.get_active_task_count())
        return cancel_workers(*args, **how)

    async def main() -> None:
        async with executor:
            waiting = asyncio.ensure_future(executor.execute_task("x", argv=FOREVER, name="a"))
            await asyncio.sleep(0)  # The start has been requested, and nobody knows yet whether it runs.
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        with pytest.raises(agentctl.Refused, match="closed"):
            await executor.execute_task("x", argv=["true"])

    monkeypatch.setattr("agentctl.interfaces.python.executor.cancel_workers", cancel)
    asyncio.run(main())
    assert under_way == [0]
    run("wait", "a", check=False)
    assert statuses() == {"a": "cancelled"}


def test_a_closed_executor_still_reads_its_session_and_refuses_all_else_in_one_way(task: Task) -> None:
    async def main() -> list[TaskResult]:
        async with TaskExecutor() as executor:
            await executor.execute_task("one", argv=["/bin/echo", "1"], name="a")
        for call in (
            executor.execute_task("x", argv=["true"]),
            executor.execute_parallel([]),
            anext(executor.stream([])),
            executor.wait_task("a"),
            executor.cancel_all_tasks(),
            executor.__aenter__(),
        ):
            with pytest.raises(agentctl.Refused, match=r"^this executor is closed$") as refused:
                await call
            assert refused.value.hint == "make another TaskExecutor; get_session_tasks reads what this one delegated"
        await executor.aclose()
        assert executor.get_active_task_count() == 0
        return await executor.get_session_tasks()

    assert [(one.task_id, one.result) for one in asyncio.run(main())] == [("a", "1")]
    assert list(statuses()) == ["a"]


def test_a_call_that_is_aborted_before_it_starts_creates_nobody(task: Task) -> None:
    async def main() -> None:
        async with TaskExecutor() as executor:
            gate = threading.Event()
            executor._thread.submit(gate.wait)
            waiting = asyncio.ensure_future(executor.execute_task("x", argv=["true"]))
            await asyncio.sleep(0)
            assert executor.get_active_task_count() == 1
            waiting.cancel()
            await asyncio.sleep(0)
            gate.set()
            await asyncio.wait([waiting])

    asyncio.run(main())
    assert statuses() == {}


def test_a_call_that_is_aborted_while_it_starts_is_cancelled(task: Task) -> None:
    """Another process holds the queue's lock meanwhile, so the start has taken its name and goes no further."""

    async def main() -> None:
        async with TaskExecutor() as executor:
            with locked(tree_at(str(task.path)).queue_lock):
                waiting = asyncio.ensure_future(executor.execute_task("x", argv=FOREVER, name="a"))
                await until((task.agent("a") / "spec.json").exists, "its specification")
                waiting.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([waiting])

    asyncio.run(main())
    run("wait", "a", check=False)
    assert statuses() == {"a": "cancelled"}


def test_all_tasks_are_cancelled_and_their_results_say_so(task: Task) -> None:
    async def main() -> list[TaskResult]:
        async with TaskExecutor() as executor:
            items = [{"objective": f"x{number}", "argv": FOREVER} for number in range(6)]
            running = asyncio.ensure_future(executor.execute_parallel(items))
            await asyncio.sleep(0)
            done = await executor.cancel_all_tasks(grace_seconds=0.1)
            assert [one.cancelled for one in done] == [True] * 6
            assert executor.get_active_task_count() == 0
            return await running

    results = asyncio.run(main())
    assert [(result.objective, result.status) for result in results] == [(f"x{n}", "cancelled") for n in range(6)]
    assert {result.error for result in results} == {"cancelled by user"}


def test_leaving_a_stream_early_cancels_the_others(task: Task) -> None:
    async def main() -> None:
        async with TaskExecutor() as executor:
            items = [shell("true"), {"objective": "x", "argv": FOREVER, "name": "a"}]
            async with contextlib.aclosing(executor.stream(items)) as stream:
                async for result in stream:
                    assert result.status == "completed"
                    break

    asyncio.run(main())
    run("wait", "a", check=False)
    assert row("a")["status"] == "cancelled"


# -- ends that nobody told of, and questions ---------------------------------------------------------------------------


def test_a_child_that_ended_before_anybody_waited_is_told_at_once(task: Task) -> None:
    spawn(["/bin/sh", "-c", "echo early"], "--wait", name="a")

    async def main() -> TaskResult:
        async with TaskExecutor() as executor:
            with pytest.raises(agentctl.NotFound):
                await executor.wait_task("nobody")
            return await executor.wait_task("a", timeout_seconds=20)

    result = asyncio.run(main())
    assert (result.status, result.result) == ("completed", "early")


def test_a_worker_whose_shim_and_self_are_killed_is_a_failure(task: Task) -> None:
    async def main() -> TaskResult:
        async with TaskExecutor() as executor:
            waiting = asyncio.ensure_future(executor.execute_task("x", argv=FOREVER, name="a"))
            await until(lambda: task.events("agent.started"), "a to run")
            leader = leader_of(task, "a")
            kill_shims(task, "a")
            await asyncio.to_thread(kill, leader.pid)
            return await waiting

    result = asyncio.run(main())
    assert result.status == "failed"
    assert (result.error or "").split(":")[0] in ("lost", "signal")


def test_a_parent_answers_its_childrens_questions(task: Task) -> None:
    asked: list[Question] = []

    async def answer(question: Question) -> str | None:
        asked.append(question)
        return "yes" if question.agent_instance == "a" else None

    async def main() -> list[TaskResult]:
        async with TaskExecutor(on_question=answer) as executor:
            argv = worker("asks", "--kind", "confirm", "Go on?")
            items = [{"objective": "x", "argv": argv, "name": name} for name in ("a", "b")]
            running = asyncio.ensure_future(executor.execute_parallel(items))
            await until(lambda: len(asked) == 2, "both questions")
            run("interact", "respond", "b", "--id", "q1", "no")
            return await running

    first, second = asyncio.run(main())
    assert first.result == "answer: yes"
    assert second.result == "answer: no"
    assert {(one.text, one.kind) for one in asked} == {("Go on?", "confirm")}


def test_an_answer_that_is_none_fails_the_call_and_ends_its_worker(task: Task) -> None:
    async def main() -> None:
        async with TaskExecutor(on_question=lambda _: "perhaps") as executor:
            with pytest.raises(agentctl.UsageError):
                await executor.execute_task("x", argv=worker("asks", "--kind", "confirm", "Go on?"), name="a")

    asyncio.run(main())
    run("wait", "a", check=False)
    assert statuses() == {"a": "cancelled"}


def test_a_session_is_read_from_the_files(task: Task) -> None:
    async def main() -> list[TaskResult]:
        async with TaskExecutor(session_id="mine") as executor:
            await executor.execute_parallel([shell("echo 1"), shell("exit 2")])
            await executor.execute_task("other", argv=["true"], session_id="another")
            waiting = asyncio.ensure_future(executor.execute_task("x", argv=FOREVER))
            await until(lambda: len(task.events("agent.started")) == 4, "all four")
            found = await executor.get_session_tasks()
            await executor.cancel_all_tasks()
            await waiting
            return found

    found = asyncio.run(main())
    assert [(one.objective, one.status, one.is_ended) for one in found] == [
        ("echo 1", "completed", True), ("exit 2", "failed", True), ("x", "running", False),
    ]  # fmt: skip


# -- within a worker ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_parent_in_python_lends_its_slot(task: Task) -> None:
    task.set_cap(1)
    spawn(worker("delegates", "--", "/bin/echo", "from below"), "--wait", name="parent")
    result = json.loads(run("result", "parent").out.splitlines()[-1])
    assert (result["status"], result["result"], result["task_id"]) == ("completed", "from below", "child")
    assert row("child")["parent"] == "parent"


def test_beyond_the_depth_a_child_is_a_result_that_says_so(root: Path) -> None:
    new_task(depth=0)
    spawn(worker("delegates", "--", "true"), "--wait", name="parent")
    result = json.loads(run("result", "parent").out.splitlines()[-1])
    assert (result["status"], result["task_id"]) == ("failed", None)
    assert "Maximum subagent depth exceeded" in result["error"]


@pytest.mark.slow
def test_a_parent_that_is_cancelled_waits_no_longer_and_its_child_goes_with_it(task: Task) -> None:
    spawn(worker("delegates", "--", *FOREVER), name="parent")
    task.has("agent.started", "child")
    run("cancel", "parent")
    assert statuses() == {"parent": "cancelled", "child": "cancelled"}
    assert b"stopped: cancelled" in (task.agent("parent") / "stdout.log").read_bytes()


@pytest.mark.slow
def test_a_parent_that_was_paused_leaves_its_child_at_work(task: Task) -> None:
    spawn(worker("delegates", "--", *FOREVER), name="parent")
    task.has("agent.started", "child")
    run("pause", "parent")
    run("unpause", "parent")
    wait_for_text(task.agent("parent") / "stdout.log", "stopped: paused")
    assert row("child")["status"] == "running"
    run("cancel", "--all")


# -- the verbs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_verbs_do_what_the_commands_do(task: Task) -> None:
    spawned = agentctl.spawn(argv=["/bin/sh", "-c", "exit 4"], name="a", env={"A": "1"})
    assert (spawned.agent_instance, spawned.task_id) == ("a", "t1")
    end = agentctl.wait_any("a", timeout_seconds=20)
    assert (end.status, end.reason, end.exit_code) == ("failed", "exit_code", 4)
    assert run("wait-any", check=False).code == 6, "it was given to this consumer"
    agentctl.spawn(argv=worker("asks", "Which?"), name="b")
    assert agentctl.wait_any(timeout_seconds=20, kinds=["blocked"]).status == "blocked"
    (asked,) = agentctl.Task.find().questions()
    with pytest.raises(agentctl.UsageError, match="which question"):
        agentctl.respond("this", instance="b")
    agentctl.respond("this", question=asked)
    assert agentctl.wait_any(timeout_seconds=20).status == "completed"
    agentctl.spawn(argv=FOREVER, name="c")
    with pytest.raises(agentctl.WaitTimedOut):
        agentctl.wait_any(timeout_seconds=0.05)
    (cancelled,) = agentctl.cancel("c", grace_seconds=0.1)
    assert cancelled.cancelled
    assert statuses() == {"a": "failed", "b": "completed", "c": "cancelled"}


def test_a_task_object_has_what_belongs_to_it(root: Path, tmp_path: Path) -> None:
    made = agentctl.Task.create("Another one", root=str(tmp_path / "elsewhere"), max_concurrent_agents=1)
    assert made.path == tmp_path / "elsewhere" / "tasks" / "another-one"
    with pytest.raises(agentctl.UsageError, match="max_workrs"):
        agentctl.Task.create("x", max_workrs=1)
    made.spawn(argv=FOREVER, name="a")
    with pytest.raises(agentctl.NoFreeSlot):
        made.spawn(argv=["true"])
    found = agentctl.Task.find("another-one", root=str(tmp_path / "elsewhere"))
    assert found.spawn(argv=["true"], name="b", after=["a"], after_any=True).status == "queued"
    assert [(one["agentInstance"], one["status"]) for one in found.workers()] == [("a", "running"), ("b", "queued")]
    found.cancel("a", grace_seconds=0.1)
    assert [end.status for end in found.wait("b", "a", timeout_seconds=20)] == ["completed", "cancelled"]
    assert found.result("b")["source"] == "none"


def test_a_named_task_that_is_not_there_is_made_with_its_root(tmp_path: Path, root: Path) -> None:
    place = str(tmp_path / "new" / "place")
    made = agentctl.Task.find_or_create("nightly", root=place)
    assert (made.id, made.path) == ("nightly", tmp_path / "new" / "place" / "tasks" / "nightly")
    assert agentctl.Task.find_or_create("nightly", root=place).path == made.path
    assert agentctl.Task.find(root=place).id == "nightly", "where none was chosen, the new one is"
    assert TaskExecutor(task="weekly", root=place).task.path == made.path.parent / "weekly"
    assert agentctl.Task.find(root=place).id == "nightly", "the choice of before is left alone"
    assert agentctl.Task.find_or_create(root=place).id == "nightly"
    with pytest.raises(agentctl.UsageError, match="the task"):
        agentctl.Task.find_or_create("no/name", root=place)
    with pytest.raises(agentctl.NotFound):
        agentctl.spawn(argv=["true"], task="another", root=place)


def test_of_several_that_make_a_task_at_once_each_gets_it_whole(root: Path) -> None:
    code = "import sys, agentctl; sys.stdin.read(); print(agentctl.spawn(argv=['true'], queue=True,"
    code += " task=agentctl.Task.find_or_create('shared')).task_id)"
    several = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for one in several:
        assert one.stdin is not None
        one.stdin.close()
        one.stdin = None
    assert [one.communicate(timeout=60)[0].strip() for one in several] == ["shared"] * 4
    run("wait-all", "--task", "shared")


def test_the_keys_of_a_result_are_those_of_its_type(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an agent, of a command that declared something, and of one whose output is cut."""
    agent_world(tmp_path, monkeypatch)
    chosen = agentctl.Task.find()
    chosen.spawn("argv", name="agent", queue=True)
    chosen.spawn(argv=worker("reports", "--message", "x"), name="declares", queue=True)
    chosen.spawn(argv=["/bin/sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x"], name="cut", queue=True)
    chosen.wait(timeout_seconds=30)
    for name in ("agent", "declares", "cut"):
        found = chosen.result(name, max_bytes=100)
        assert agentctl.WorkerResult.__required_keys__ <= set(found)
        assert set(found) <= set(agentctl.WorkerResult.__annotations__)
        assert type(found["status"]) is agentctl.Status
    assert chosen.result("cut", max_bytes=100)["truncated"]


def test_the_keys_of_what_is_shown_are_those_of_its_type(task: Task) -> None:
    chosen = agentctl.Task.find()
    chosen.spawn(argv=["true"], name="a")
    found = chosen.show("a")
    hints = get_type_hints(agentctl.WorkerRow, include_extras=True)
    of_some = {key for key, kind in hints.items() if getattr(kind, "__origin__", None) is NotRequired}
    assert set(agentctl.ShownWorker.__annotations__) - of_some <= set(found)
    assert set(found) <= set(agentctl.ShownWorker.__annotations__)
    assert (found["taskId"], found["agentInstance"], found["spec"]["argv"]) == (task.path.name, "a", ["true"])
    chosen.wait("a", timeout_seconds=30)


def test_a_status_is_one_of_an_enumeration_everywhere(task: Task) -> None:
    """So a type checker can tell whether a program handles each."""
    chosen = agentctl.Task.find()
    found: list[tuple[StrEnum, type[StrEnum], str]] = [
        (chosen.spawn(argv=["true"], name="a").status, agentctl.Status, "running"),
        (agentctl.wait_any("a", timeout_seconds=20).status, agentctl.EndStatus, "completed"),
        (chosen.wait("a")[0].status, agentctl.EndStatus, "completed"),
        (chosen.workers()[0]["status"], agentctl.Status, "completed"),
        (chosen.cancel("a")[0].status, agentctl.Status, "completed"),
    ]
    chosen.spawn(argv=worker("asks", "Which?"), name="b")
    found.append((agentctl.wait_any("b", timeout_seconds=20).status, agentctl.EndStatus, "blocked"))
    found.append((chosen.cancel("b", grace_seconds=0.1)[0].status, agentctl.Status, "cancelled"))
    ends = execute(
        [shell("true"), {"objective": "x", "subagent_type": "nobody"}, shell("sleep 9", timeout_seconds=0.1)]
    )
    told = zip(ends, ("completed", "failed", "timeout"), strict=True)
    found += [(one.status, agentctl.TaskStatus, status) for one, status in told]
    for status, kind, text in found:
        assert type(status) is kind
        assert status == text
        assert json.dumps(status) == f'"{text}"'


def test_a_sub_task_answers_with_its_end(task: Task) -> None:
    end = agentctl.Task.find().subtask("echo", "A title", intent="say this")
    told = dict(end.to_json())
    assert told["subTaskStatus"] == "Success"
    assert "say this" in str(told["finalAssistantMessage"])


def test_importing_the_package_loads_nothing_and_offers_all() -> None:
    code = (
        "import sys; before = set(sys.modules); import agentctl; print(sorted(set(sys.modules) - before));"
        "print(all(getattr(agentctl, name) for name in agentctl._OFFERED), 'TaskExecutor' in dir(agentctl))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['__future__', 'agentctl']", "True True"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        agentctl.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_longer_name_offers_the_same() -> None:
    from agentctl import api

    offered = vars(agentctl)["_OFFERED"]
    assert {name: getattr(api, name) for name in api.__all__} == {name: getattr(agentctl, name) for name in offered}


def test_ctrl_c_cancels_the_workers_of_a_script(task: Task, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, agentctl\n"
        "async def main():\n"
        "    async with agentctl.TaskExecutor() as executor:\n"
        f"        await executor.execute_task('x', argv={FOREVER!r}, name='a')\n"
        "asyncio.run(main())\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, start_new_session=True)
    task.has("agent.started", "a")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in err
    run("wait", "a", check=False)
    assert statuses() == {"a": "cancelled"}


def test_it_is_made_as_other_executors_are(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    (tmp_path / "src").mkdir()

    async def to() -> list[TaskResult]:
        found = []
        folder = str(tmp_path / "src")
        for executor in (TaskExecutor("m", folder), TaskExecutor(model_id="m", working_dir=folder)):
            async with executor:
                found.append(await executor.execute_task("argv"))
                found.append(await executor.execute_task("nothing", "nobody"))
        async with TaskExecutor(agentctl.Task.find("t1")) as executor:
            found.append(await executor.execute_task("where", argv=["pwd"]))
        return found

    done, refused, again, _, last = asyncio.run(to())
    for one in (done, again):
        assert "--model=m" in str(one.result)
        assert run("show", str(one.task_id), "--json").json["spec"]["cwd"] == str(tmp_path / "src")
    assert done.to_dict() == done.to_json() == json.loads(json.dumps(done.to_dict()))
    assert (refused.task_id, refused.status) == (None, "failed")
    assert last.result == str(Path.cwd())
