"""At stake: `spawn --each` starts a worker for each line, all or none, and no line is read by a shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.advice import follow
from tests.shells import AGENTCTL, define_shells
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import run, worker
from tests.terminal import on_a_terminal

#: As strangers name their files.
ODD = ["a b", "$(touch hacked)", "; touch hacked", "-n", "'\"", "{}", "#1", " x", "a\rb"]


def outputs(task: Task) -> list[str]:
    folders = sorted((task.path / "agents").iterdir(), key=lambda one: int(one.name.rpartition("-")[2]))
    return [os.fsdecode((folder / "stdout.log").read_bytes()) for folder in folders]


def test_each_line_is_one_argument_whatever_stands_in_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = new_task()
    (tmp_path / "odd").write_bytes(os.fsencode("\n".join([*ODD, "", "\udcff"])))
    told = run("spawn", "--queue", "--each", "odd", "--wait", "--json", "--", "printf", "<%s>", "{}:{}")
    assert [one["status"] for one in told.json] == ["completed"] * (len(ODD) + 1)
    assert outputs(task) == [f"<{line}:{line}>" for line in [*ODD, "\udcff"]]
    assert not (tmp_path / "hacked").exists()


def test_lines_of_stdin_become_workers_with_the_options_of_all(root: Path) -> None:
    task = new_task(cap=2)
    lines = "one\r\n\r\ntwo\r\n"  # As on DOS, and of two lines that are not blank the second is the third.
    options = ("--each", "-", "--name", "port", "--env", "X=y", "--wait")
    run("spawn", *options, "--", "sh", "-c", 'echo "$X$0"', stdin=lines)
    assert statuses() == {"port-1": "completed", "port-3": "completed"}
    assert outputs(task) == ["yone\n", "ytwo\n"]


def test_an_agent_gets_each_line_in_its_prompt(root: Path) -> None:
    define_shells()
    task = new_task()
    run("spawn", "--each", "-", "--agent", "shell", "--wait", "echo It is {}", stdin="one\ntwo\n")
    assert [text.splitlines()[-1] for text in outputs(task)] == ["It is one", "It is two"]


@pytest.mark.follows("interfaces/commands/start/spawn._naming_the_line: agentctl spawn --queue")
def test_more_lines_than_slots_start_nothing_and_the_line_that_works_is_told(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    file = tmp_path / "a file"
    file.write_text("1\n2\n3\n", encoding="utf-8")
    refused = run("spawn", "--each", file, "--name", "n", "--env", "A=b c", "--", "echo", "{}", check=False)
    assert refused.code == 5
    assert "3 workers need a slot each, and there are 2" in refused.err
    assert statuses() == {}
    assert not task.tickets()

    follow(refused, f"agentctl spawn --queue '--each={file}' --name=n '--env=A=b c' -- echo '{{}}'")

    run("wait-all")
    assert statuses() == dict.fromkeys(("n-1", "n-2", "n-3"), "completed")


def test_lines_for_a_held_queue_are_told_who_holds_it(root: Path, tmp_path: Path) -> None:
    new_task()
    run("pause")
    (tmp_path / "lines").write_text("1\n", encoding="utf-8")
    refused = run("spawn", "--each", tmp_path / "lines", "--", "true", check=False)
    assert refused.code == 5
    assert f"agentctl spawn --queue --each={tmp_path / 'lines'} -- true; agentctl unpause" in refused.err


@pytest.mark.slow
def test_fewer_lines_than_slots_start_nothing_while_others_have_them(root: Path, tmp_path: Path) -> None:
    new_task(cap=2)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a")
    refused = run("spawn", "--each", "-", "--", "true", stdin="1\n2\n", check=False)
    assert refused.code == 5
    assert "2 workers need a slot each, and 1 of 2 are free" in refused.err
    assert statuses() == {"a": "running"}
    run("spawn", "--each", "-", "--", "true", stdin="1\n")
    (tmp_path / "gate").touch()
    run("wait-all")


def test_one_line_that_cannot_start_refuses_all(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="n-2")
    refused = run("spawn", "--each", "-", "--name", "n", "--", "echo", stdin="1\n2\n3\n", check=False)
    assert refused.code == 1
    assert refused.err.startswith("error: stdin:2: the instance 'n-2' exists already")
    assert [one["agentInstance"] for one in task.events("agent.queued")] == ["n-2"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--each", "no such file", "--", "echo"], "cannot read no such file"),
        (["--each", "/dev/null", "--", "echo"], "/dev/null holds no line"),
        (["--each", "x"], "--each goes with a command or a prompt"),
        (["--each", "x", "--shell", "echo {}"], "--each goes with a command or a prompt"),
        (["--each", "x", "--batch", "y"], "--each goes with a command or a prompt"),
        (["--each", "-", "--agent", "shell", "-"], "stdin cannot be both"),
    ],
)
def test_what_does_not_go_together_is_told(root: Path, args: list[str], said: str) -> None:
    new_task()
    refused = run("spawn", *args, check=False, stdin="")
    assert refused.code == 2
    assert said in refused.err


@pytest.mark.follows("operations/start/batch._PLAIN: agentctl spawn --each")
def test_a_batch_of_plain_lines_is_told_what_takes_them(root: Path, tmp_path: Path) -> None:
    new_task()
    (tmp_path / "lines").write_text("one\ntwo\n", encoding="utf-8")
    refused = run("spawn", "--batch", tmp_path / "lines", check=False)
    assert refused.code == 2
    assert f"{tmp_path / 'lines'}:1: not JSON" in refused.err

    follow(refused, "agentctl spawn --each FILE -- CMD {}", put={"FILE": str(tmp_path / "lines"), "CMD": "echo"})

    run("wait-all")
    assert statuses() == dict.fromkeys(("echo-1", "echo-2"), "completed")


def test_the_first_worker_of_a_task_says_at_a_terminal_how_to_look(root: Path, tmp_path: Path) -> None:
    new_task()
    gate = tmp_path / "gate"
    argv = [sys.executable, "-m", "agentctl", "spawn"]
    job = worker("exits", 0, "--after-file", gate)

    _, sent = on_a_terminal([*argv, "--name", "a", "--", *job])
    told = sent.decode()
    assert "hint: agentctl watch shows what it does; agentctl logs a -f follows its output" in told
    gate.touch()
    follow(told.replace("\r", ""), "agentctl logs a -f")
    assert row("a")["status"] == "completed", "it was followed to its end"

    _, sent = on_a_terminal([*argv, "--", "true"])
    assert b"hint" not in sent, "who has begun knows it"


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--json"], ["--wait"]])
def test_who_does_not_look_is_told_nothing(root: Path, options: list[str]) -> None:
    new_task()
    _, sent = on_a_terminal([sys.executable, "-m", "agentctl", "spawn", *options, "--", "true"])
    assert b"hint" not in sent
    run("wait-all")


def test_many_first_workers_are_shown_by_one_line(root: Path) -> None:
    new_task()
    code, sent = on_a_terminal(["sh", "-c", f"seq 2 | {AGENTCTL} spawn --each - -- echo"])
    assert code == 0
    assert b"hint: agentctl watch shows what they do\r\n" in sent
    assert sent.count(b"hint") == 1
    run("wait-all")
