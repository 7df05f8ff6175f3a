"""At stake: the views of a parent show what the workers below it ask, do and have produced."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.shells import AGENTCTL, define_shells, subtask_line
from tests.steps import new_task, spawn
from tests.support import PROGRAM, run, start, wait_until
from tests.terminal import on_a_terminal

ASKS = f"exec {AGENTCTL} interact ask 'Which colour?'"


@pytest.fixture
def boss(root: Path) -> str:
    """Start a worker that waits for its sub-task, which asks; return the sub-task's id."""
    define_shells()
    new_task(cap=3)
    spawn(["sh", "-c", subtask_line("asks", ASKS)], name="boss")
    wait_until(lambda: run("interact", "list", "--json").json)
    return str(run("interact", "list", "--json").json[0]["taskId"])


def asks(task: str, instance: str) -> str:
    """Return the line that says who asks what, and the command that answers it."""
    command = f"agentctl answer {instance} --task {task} --id q1 ANSWER (ANSWER: any text)"
    return f"1 question is open, of {task}/{instance} (Which colour?): {command}\n"


def told(process: subprocess.Popen[str]) -> str:
    """Return the next line of a program's stderr."""
    assert process.stderr is not None
    return process.stderr.readline()


def test_the_views_of_a_parent_tell_that_a_child_asks(boss: str) -> None:
    asked = asks(boss, "shell-1")
    (found,) = run("list", "--json").json
    assert (found["agentInstance"], found["status"], found["askedBelow"]) == ("boss", "running", 1)
    assert run("show", "boss", "--json").json["askedBelow"] == 1
    for command in ("list", "tree"):
        shown = run(command)
        assert "a child asks" in shown.out
        assert shown.err == asked
    waits = [start("wait", "boss"), start("wait-all", "--json"), start("wait-any", "boss")]
    assert [told(one) for one in waits] == [asked] * 3
    found = {one["taskId"]: one for one in run("tasks", "--json").json}
    assert (found["t1"]["childTaskIds"], found["t1"]["state"]) == ([boss], "input-required")
    assert [found[boss][key] for key in ("parentTaskId", "author", "agent")] == ["t1", "boss", "shell"]
    unknown = run("interact", "respond", "nobody", "--id", "q1", "blue", check=False)
    assert (unknown.code, "no worker or sub-task 'nobody'" in unknown.err) == (3, True)
    run("interact", "respond", boss, "--id", "q1", "blue")
    for one in waits:
        out, err = one.communicate(timeout=20)
        assert ("boss" in out, "completed" in out, err) == (True, True, "")
    assert run("list").err == ""
    found = {one["taskId"]: one for one in run("tasks", "--json").json}
    assert (found["t1"]["state"], found[boss]["failureReason"]) == ("completed", None)
    code, sent = on_a_terminal([*PROGRAM, "tasks"])
    assert (code, f"  {boss}" in sent.decode()) == (0, True)


def test_who_waits_for_a_worker_or_a_sub_task_learns_that_it_asks_itself(root: Path) -> None:
    define_shells()
    new_task(cap=3)
    waits = start("spawn", "--wait", "--name", "a", "--", "sh", "-c", ASKS)
    assert told(waits) == asks("t1", "a")
    run("interact", "respond", "a", "--id", "q1", "red")
    assert waits.communicate(timeout=20)[0].endswith("a completed\n")
    waits = start("subtask", "shell", ": ask", "--intent", ASKS, "--json")
    assert told(waits) == asks("ask", "shell-1")
    run("interact", "respond", "ask", "--id", "q1", "blue")
    assert json.loads(waits.communicate(timeout=20)[0])["finalAssistantMessage"] == "blue"


def test_a_sub_task_makes_the_task_above_it_where_none_is_chosen(root: Path) -> None:
    define_shells()
    answer = run("subtask", "shell", ": first", "--intent", "echo done", "--json").json
    assert answer["finalAssistantMessage"] == "done"
    assert {one["parentTaskId"] for one in run("tasks", "--json").json} == {None, "task"}
    refused = run("spawn", "--task", answer["taskId"], "--", "true", check=False)
    assert refused.err.endswith("hint: agentctl spawn --task task: the task on top of the tree takes any worker\n")


def test_a_log_of_nothing_but_newlines_is_told_in_a_few_words(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="a")
    with (task.path / "events.jsonl").open("ab") as log:
        log.write(b"\n" * 20_000)
    for command in ("list", "tree"):
        warned = run(command).err.splitlines()
        assert len(warned) == 21
        assert warned[0].endswith("not JSON: an empty line")
        assert "19980 more of such lines" in warned[-1]
    assert "20000 lines of the log of t1 cannot be read" in run("timeline").err
    named = [one["what"] for one in run("doctor", "--json").json if "skipped" in one["what"]]
    assert len(named) == 101
    assert named[-1].startswith("19900 more lines")


def test_show_prints_the_beginning_of_megabytes_of_arguments_and_its_json_has_all(root: Path) -> None:
    task = new_task()
    given = ["x" * 100_000] * 18
    spawn(["true", *given], name="w")
    task.ended("w")
    shown = run("show", "w")
    assert len(shown.out) < 20_000
    assert "characters; --json has them all" in shown.out
    assert "x" * 1000 in shown.out
    assert given[-1] in run("show", "w", "--json").out
