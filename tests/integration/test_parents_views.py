"""At stake: whoever waits for a parent, or is one, sees that somebody below asks, and which command answers it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.operations.show.tasks import list_tasks
from tests.shells import AGENTCTL, below, define_shells, subtask_line
from tests.steps import Task, new_task, spawn, statuses
from tests.support import PROGRAM, run, start, text_in, wait_until, worker
from tests.terminal import on_a_terminal

ASKS = f"exec {AGENTCTL} interact ask 'Which [/red] colour?'"


@pytest.fixture
def task(root: Path) -> Task:
    """Make a task for agents that run their prompt as a script."""
    define_shells()
    return new_task(cap=4, depth=3)


def line_about(task_id: str, instance: str) -> str:
    """Return what is said of the only open question."""
    command = f"agentctl answer {instance} --task {task_id} --id q1 ANSWER (ANSWER: any text)"
    return f"1 question is open, of {task_id}/{instance} (Which [/red] colour?): {command}"


def type_answer(line: str, answer: str) -> None:
    """Run the command that a line names, with an answer."""
    command = line.rpartition(": agentctl ")[2].strip().removesuffix(" (ANSWER: any text)").removesuffix("ANSWER")
    run(*shlex.split(command), answer)


def are_asked(*instances: str) -> None:
    """Wait until these workers ask, and nobody else."""
    wait_until(
        lambda: sorted(row["agentInstance"] for row in run("interact", "list", "--json").json),
        accept=lambda asking: asking == sorted(instances),
        what="the questions",
    )


def noted(process: subprocess.Popen[str]) -> str:
    """Return the next line of a program's stderr."""
    assert process.stderr is not None
    return process.stderr.readline().removesuffix("\n")


@pytest.mark.slow
@pytest.mark.parametrize(("wait", "notes"), [("wait-all", True), ("wait-any", True), ("wait-any kid", False)])
def test_a_parent_that_waits_for_its_children_learns_that_its_sub_task_asks(
    task: Task, tmp_path: Path, wait: str, notes: bool
) -> None:
    """The sub-task is in another task: it is no target of these waits, which would go on in silence."""
    gate = tmp_path / "gate"
    kid = shlex.join([*PROGRAM, "spawn", "--name", "kid", "--", *worker("waits_for_file", gate)])
    spawn(["sh", "-c", f"{subtask_line('sub', ASKS, '--no-wait')} && {kid} && {AGENTCTL} {wait}"], name="parent")
    are_asked("shell-1")
    log, line = task.agent("parent") / "stderr.log", line_about("sub", "shell-1")
    if notes:
        wait_until(lambda: text_in(log), accept=lambda text: text == f"{line}\n", what=line)
    type_answer(line, "red")
    wait_until(statuses, accept=lambda now: now.get("kid") == "running", what="the child")
    gate.touch()
    task.ended("kid", "parent")
    assert ("question" in log.read_text(encoding="utf-8")) == notes, "of one child's wait, only what is below it counts"


@pytest.mark.slow
def test_a_wait_for_ends_alone_says_who_asks(task: Task) -> None:
    spawn(["sh", "-c", ASKS], name="a")
    are_asked("a")
    waits = [start("wait-any", "--for", "completed", *more) for more in ([], ["--recursive"], ["a"])]
    assert [noted(one) for one in waits] == [line_about("t1", "a")] * 3
    assert run("wait-any", "--json").json["status"] == "blocked", "a wait for blocks too gives it out"
    type_answer(line_about("t1", "a"), "red")
    assert sorted(one.wait(timeout=20) for one in waits) == [0, 6, 6], "one is given the end"


@pytest.mark.slow
def test_the_views_of_a_whole_tree_and_of_one_worker(task: Task) -> None:
    spawn(["sh", "-c", subtask_line("mid", subtask_line("low", ASKS))], name="top")
    spawn(worker("sleeps", 60), name="other")
    are_asked("shell-1")
    line = line_about("low", "shell-1")
    for command in ("list", "list --recursive", "tree", "tree --recursive", "tree top", "tree --json"):
        assert run(*command.split()).err == f"{line}\n", command
    assert run("tree", "other").err == ""
    following = start("tree", "--follow", "top")
    assert following.stdout is not None
    wait_until(following.stdout.readline, accept=lambda shown: shown == f"{line}\n", what="the line")
    code, shown = on_a_terminal([*PROGRAM, "wait", "top", "--timeout-seconds", "1"])
    text = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).split())
    assert (code, "1 question is open, of low/shell-1 (Which [/red] colour?)" in text) == (4, True), text
    type_answer(line, "red")
    task.ended("top")
    run("cancel", "other")
    following.wait(timeout=20)


@pytest.mark.slow
def test_of_several_questions_the_list_is_named(task: Task) -> None:
    spawn(["sh", "-c", f"{subtask_line('one', ASKS)} & {subtask_line('two', ASKS)}; wait"], name="top")
    are_asked("shell-1", "shell-1")
    assert run("list").err == "2 questions are open, of one/shell-1, two/shell-1: agentctl interact list\n"
    for name in ("one", "two"):
        run("interact", "respond", name, "--id", "q1", "red")
    task.ended("top")


# -- tasks -------------------------------------------------------------------------------------------------------------


def rows() -> dict[str, dict[str, Any]]:
    """Return the row of each task, in the order of `tasks`."""
    return {row["taskId"]: row for row in run("tasks", "--json").json}


@pytest.mark.slow
def test_tasks_shows_sub_tasks_below_their_parents_and_what_these_wait_for(task: Task, tmp_path: Path) -> None:
    run("new", "Another", "--id", "aaa")
    run("use", "t1")
    gate = tmp_path / "gate"
    held = f"until [ -e {gate} ]; do sleep 0.05; done"
    spawn(["sh", "-c", subtask_line("zz mid", f"{subtask_line('low', ASKS)}; {held}")], name="top")
    are_asked("shell-1")
    found = rows()
    assert [(name, row["level"]) for name, row in found.items()] == [("aaa", 0), ("t1", 0), ("zz-mid", 1), ("low", 2)]
    assert {name: row["state"] for name, row in found.items()} == {
        "aaa": "created", "t1": "input-required", "zz-mid": "input-required", "low": "input-required",
    }  # fmt: skip
    assert [row["status"] for row in found.values()] == ["created", "blocked", "blocked", "blocked"]
    assert [row["blockedBelow"] for row in found.values()] == [0, 1, 1, 0]
    lines = [line.split("\t") for line in run("tasks").out.splitlines()]
    assert [(line[0], line[1], line[7]) for line in lines] == [
        ("aaa", "created", "-"), ("t1", "input-required", "a child asks"), ("zz-mid", "input-required", "a child asks"),
        ("low", "input-required", "-"),
    ]  # fmt: skip
    run("interact", "respond", "low", "--id", "q1", "red")
    below(task, "low").ended("shell-1")
    found = rows()
    assert [(row["state"], row["awaitsChildren"]) for row in found.values()] == [
        ("created", False), ("working", True), ("working", False), ("completed", False),
    ]  # fmt: skip
    _, shown = on_a_terminal([*PROGRAM, "tasks"])
    assert "running (awaits children)" in shown.decode()
    assert re.search(r"\n  +    low ", shown.decode()), "it is indented twice"
    gate.touch()
    task.ended("top")
    assert not any(row["awaitsChildren"] for row in rows().values())


def test_a_worker_that_awaits_its_children_makes_its_task_a_waiting_one(task: Task) -> None:
    child = shlex.join([*PROGRAM, "spawn", "--name", "child", "--", *worker("sleeps", 60)])
    spawn(["sh", "-c", f"{child} >/dev/null"], name="top")
    task.has("agent.awaiting_children", "top")
    assert (rows()["t1"]["state"], rows()["t1"]["awaitsChildren"]) == ("working", True)
    run("cancel", "--all")


def forge_parents(root: Path, parents: dict[str, str | None]) -> None:
    """Make tasks whose files say that they are each other's sub-tasks."""
    source = root / "tasks" / "t1"
    for name, parent in parents.items():
        folder = root / "tasks" / name
        if name != "t1":
            shutil.copytree(source, folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**config, "parentTaskId": parent}), encoding="utf-8")
        children = [child for child, above in parents.items() if above == name]
        events = [{"type": "subtask.created", "taskId": name, "payload": {"taskId": child}} for child in children]
        (folder / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events), encoding="utf-8")


@pytest.mark.slow
def test_forged_cycles_and_endless_chains_of_parents_are_cut(task: Task, root: Path) -> None:
    forge_parents(root, {"t1": "c", "a": "t1", "b": "a", "c": "b", "d": "d", "e": "a"})
    names = [row["taskId"] for row in run("tasks", "--json").json]
    assert sorted(names) == ["a", "b", "c", "d", "e", "t1"], "each once"
    assert run("tasks").code == 0
    chain = [f"n{number:04}" for number in range(1050)]
    forge_parents(root, dict(zip(chain, [None, *chain], strict=False)))
    found = list_tasks(Root(str(root))).rows
    assert max(row["level"] for row in found) == len(chain) - 1
    assert len({row["taskId"] for row in found}) == len(found) == len(chain) + 6
    code, shown = on_a_terminal([*PROGRAM, "tasks"])
    assert (code, b"n1049" in shown) == (0, True)
