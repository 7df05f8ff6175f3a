"""What a person sees of workers and their sub-agents: tree, transcript, rows."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, run, start, worker
from tests.terminal import on_a_terminal


def row(ago: float, kind: str, id_: str, phase: str = "end", **more: Any) -> dict[str, Any]:
    """A row as a driver writes it, seen so many seconds ago."""
    at = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"at": at, "type": kind, "id": id_, "phase": phase, **more}


def rows() -> list[dict[str, Any]]:
    """A worker whose sub-agent has a sub-agent that reads a file right now."""
    return [
        row(90, "message", "m1", text="I will look\nat \x1b[31mall of it"),
        row(80, "agent", "A1", "start", agentType="general-purpose", name="find the bug"),
        row(79, "tool", "t1", "start", parent="A1", name="Bash", detail={"command": "ls -la"}),
        row(78, "tool", "t1", parent="A1", name="Bash", status="completed", text="x.py\n\x1b]0;title\x07"),
        row(75, "usage", "u1", parent="A1", detail={"input": 9000, "output": 97, "cached": 0}),
        row(70, "agent", "A2", "start", parent="A1", agentType="explore", name="read"),
        row(65, "tool", "t2", "start", parent="A2", name="Read", detail={"file_path": "/src/x.py"}),
        row(60, "agent", "A3", "start", agentType="plan", name="only named"),
    ]


def write(task: Task, instance: str, given: Iterable[dict[str, Any]]) -> None:
    """Append rows to a worker's activity, as its driver would."""
    with (task.agent(instance) / "activity.jsonl").open("ab") as file:
        file.write(b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in given))


def make_agent(task: Task, instance: str) -> None:
    """Let a worker pass for one that a driver runs."""
    spec = task.agent(instance) / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_bytes()), "order": {"driver": "claude"}}), encoding="utf-8")


@pytest.fixture
def task(root: Path, tmp_path: Path) -> Task:
    """A task with one worker, `a1`, that has sub-agents and runs until `gate` is there."""
    made = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a1")
    write(made, "a1", rows())
    return made


def end(task: Task, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    task.ended("a1")


def lines_of(text: str) -> list[str]:
    """The lines without times."""
    return [re.sub(r"  \d[\dm.]*s(?=  |$)", "  TIME", line) for line in text.splitlines()]


def test_a_tree_shows_groups_and_what_runs(task: Task, tmp_path: Path) -> None:
    spawn(worker("exits", 3), "--wait", name="bad", check=False)
    lines = lines_of(run("tree").out)
    assert lines[0] == "t1"
    assert lines[1].startswith("  a1  running  TIME  2 calls  9.1k tokens  ")
    assert lines[2:5] == [
        "    + [general-purpose]  find the bug  running  TIME  2 calls  9.1k tokens",
        "      + [explore]  read  running  TIME  1 call",
        "        Read /src/x.py  running  TIME",
    ]
    assert lines[5] == "    [plan]  only named  running  TIME"
    assert lines[6].startswith("  bad  failed (exit_code 3)  TIME  ")
    assert len(lines) == 7
    end(task, tmp_path)


def test_an_expanded_tree_shows_everything_and_no_control_character(task: Task, tmp_path: Path) -> None:
    for args in (["--expand", "all"], ["--expand", "a1"], ["a1", "--expand", "a1"]):
        shown = run("tree", *args).out
        assert lines_of(shown)[2:] == [
            "    I will look at \\x1b[31mall of it",
            "    - [general-purpose]  find the bug  running  TIME  2 calls  9.1k tokens",
            "      Bash ls -la  completed  TIME",
            "      - [explore]  read  running  TIME  1 call",
            "        Read /src/x.py  running  TIME",
            "    [plan]  only named  running  TIME",
        ]
        assert "\x1b" not in shown
    end(task, tmp_path)


@pytest.mark.slow
def test_what_a_cancelled_worker_left_open_is_interrupted(task: Task) -> None:
    run("cancel", "a1")
    (found,) = run("tree", "--json").json["workers"]
    assert found["status"] == "cancelled"
    assert [(item["id"], item["depth"], item["status"]) for item in found["items"]] == [
        ("A1", 1, "interrupted"), ("A2", 2, "interrupted"), ("A3", 1, "interrupted"),
    ]  # fmt: skip
    assert (found["calls"], found["tokens"]) == (2, {"input": 9000, "output": 97, "cached": 0})
    assert {item["endedAt"] for item in found["items"]} == {found["endedAt"]}
    (found,) = run("tree", "--expand", "all", "--json").json["workers"]
    left = [item for item in found["items"] if item["status"] == "interrupted"]
    assert {item["endedAt"] for item in left} == {found["endedAt"]}, "calls too"
    assert any(item["type"] == "tool" for item in left)
    assert "  interrupted" in run("tree").out


@pytest.mark.slow
def test_workers_stand_below_the_one_that_started_them(root: Path) -> None:
    new_task(depth=2)
    child = " ".join((*PROGRAM, "spawn", "--wait", "--name", "child", "--", "true"))
    spawn(["sh", "-c", child], "--wait", name="parent")
    spawn(["true"], "--wait", name="other")
    shown = [line.split()[0] for line in run("tree").out.splitlines()]
    assert shown == ["t1", "parent", "child", "other"]
    assert run("tree", "parent").out.splitlines()[2].startswith("    child  ")
    assert [one["treeDepth"] for one in run("tree", "--json").json["workers"]] == [0, 1, 0]
    assert len(run("tree", "child").out.splitlines()) == 2
    assert run("tree", "nobody", check=False).code == 3
    assert run("tree", "--expand", "nobody", check=False).code == 3


def test_damage_is_told_and_harms_nothing(task: Task, tmp_path: Path) -> None:
    with (task.agent("a1") / "activity.jsonl").open("ab") as file:
        file.write(b'garbage\n{"type": "hologram", "id": "h"}\ntorn')
    shown = run("tree").out
    assert "(1 line of its activity cannot be read)" in shown
    assert "hologram 1" in shown
    assert "Read /src/x.py" in shown
    warned = run("activity", "a1")
    assert "activity.jsonl:9: not a row" in warned.err
    assert [one["line"] for one in run("activity", "a1", "--json").json_lines] == list(range(1, 11))
    end(task, tmp_path)


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """The lines that a program prints up to one that holds `wanted`."""
    assert process.stdout is not None
    found = []
    for line in process.stdout:
        found.append(line)
        if wanted in line:
            return found
    raise AssertionError(f"{wanted!r} is in none of {found}")


def test_following_a_tree_prints_what_changes_and_ends_with_the_last_worker(task: Task, tmp_path: Path) -> None:
    follower = start("tree", "--follow")
    read_until(follower, "Read /src/x.py")
    write(task, "a1", [row(0, "tool", "t3", "start", parent="A1", name="Grep", detail={"pattern": "bug"})])
    changed = read_until(follower, "Grep bug")
    assert not any("Read" in line for line in changed)
    end(task, tmp_path)
    out, _ = follower.communicate(timeout=20)
    assert "a1  completed" in out
    assert out.count("interrupted") == 3
    assert follower.returncode == 0


def test_a_terminal_is_drawn_again(task: Task, tmp_path: Path) -> None:
    end(task, tmp_path)
    code, sent = on_a_terminal([*PROGRAM, "tree", "--follow", "--expand", "all"])
    assert code == 0
    assert b"find the bug" in sent
    assert b"\\x1b[31mall of it" in sent
    assert b"\x1b[31m" not in sent


# -- the transcript and the rows ---------------------------------------------------------------------------------


def test_logs_of_an_agent_are_a_transcript(task: Task, tmp_path: Path) -> None:
    make_agent(task, "a1")
    shown = run("logs", "a1").out
    assert [line[10:] for line in shown.splitlines()] == [
        "I will look",
        "at \\x1b[31mall of it",
        "[general-purpose] find the bug",
        "  [general-purpose] Bash ls -la",
        "  [general-purpose] Bash -> completed",
        "    x.py",
        "    \\x1b]0;title\\x07",
        "  [general-purpose] [explore] read",
        "    [explore] Read /src/x.py",
        "[plan] only named",
    ]
    assert run("logs", "a1", "--tail", "1").out[10:] == "[plan] only named\n"
    assert [one["stream"] for one in run("logs", "a1", "--tail", "2", "--json").json_lines] == ["transcript"] * 2
    raw = (task.agent("a1") / "stdout.log").read_text()
    assert run("logs", "a1", "--raw").out == run("logs", "a1", "--stdout").out == raw
    end(task, tmp_path)


def test_logs_follow_a_transcript_to_the_end_of_the_worker(task: Task, tmp_path: Path) -> None:
    make_agent(task, "a1")
    follower = start("logs", "-f", "a1")
    read_until(follower, "only named")
    write(task, "a1", [row(0, "message", "m2", text="found it")])
    read_until(follower, "found it")
    assert follower.poll() is None
    end(task, tmp_path)
    assert follower.communicate(timeout=20)[0] == ""


def test_logs_of_a_command_stay_what_it_printed(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "echo hello"], "--wait", name="a1")
    write(task, "a1", rows())
    assert run("logs", "a1").out == "hello\n"


def test_the_rows_of_an_activity_are_printed_and_followed(task: Task, tmp_path: Path) -> None:
    fields = [line.split("\t") for line in run("activity", "a1").out.splitlines()]
    assert {len(line) for line in fields} == {7}
    assert fields[3][1:] == ["tool", "end", "t1", "A1", "completed", "Bash"]
    told = run("activity", "a1", "--json").json_lines
    assert [{key: value for key, value in one.items() if key != "line"} for one in told][1][
        "agentType"
    ] == "general-purpose"
    follower = start("activity", "-f", "--json", "a1")
    read_until(follower, "only named")
    write(task, "a1", [row(0, "message", "m2", text="found it")])
    assert json.loads(read_until(follower, "found it")[-1])["line"] == 9
    end(task, tmp_path)
    assert follower.wait(timeout=20) == 0


def test_an_activity_is_not_made_again_while_its_worker_runs(task: Task, tmp_path: Path) -> None:
    make_agent(task, "a1")
    before = (task.agent("a1") / "activity.jsonl").read_bytes()
    refused = run("activity", "a1", "--rebuild", check=False)
    assert refused.code == 1
    assert "a1" in refused.err
    assert (task.agent("a1") / "activity.jsonl").read_bytes() == before
    assert run("activity", "a1", "--rebuild", "-f", check=False).code == 2
    assert run("tree", "--json", "--follow", check=False).code == 2
    end(task, tmp_path)


@pytest.mark.slow
def test_a_worker_without_activity_is_one_line(root: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="a1")
    assert lines_of(run("tree").out)[1:] == ["  a1  completed  TIME  true"]
    assert run("activity", "a1").out == ""
    assert lines_of(run("tree", "--follow").out)[1:] == ["  a1  completed  TIME  true"]
