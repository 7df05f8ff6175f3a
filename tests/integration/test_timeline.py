"""At stake: a timeline shows what real workers did, also while they run, and writes only the file that was named."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.shells import AGENTCTL, define_shells, subtask_line
from tests.steps import Task, held, new_task, spawn, spawn_batch
from tests.support import PROGRAM, Completed, run, worker
from tests.terminal import on_a_terminal


def timeline(*args: str) -> dict[str, Any]:
    told: dict[str, Any] = run("timeline", "--json", *args).json
    return told


def rows_of(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["agentInstance"]: row for row in told["workers"]}


def shades(row: dict[str, Any]) -> list[tuple[str, int]]:
    return [(piece["shade"], piece["attempt"]) for piece in row["pieces"]]


def assert_contiguous(told: dict[str, Any]) -> None:
    path = told["criticalPath"]
    assert path[-1]["to"] == told["to"]
    assert all(one["to"] == after["from"] for one, after in pairwise(path))


@pytest.mark.slow
def test_a_task_with_everything_in_it(root: Path, tmp_path: Path) -> None:
    """Dependencies, a question, a retry, a child, a failure: each is where it belongs."""
    new_task(cap=3)
    gate = tmp_path / "gate"
    first = " ".join(worker("waits_for_file", gate))
    child = f"{first} && {AGENTCTL} spawn --queue --name child -- true && {AGENTCTL} wait child"
    spawn(worker("counts", tmp_path / "runs", 2), "--retries", "2", "--retry-delay-seconds", "0.01", name="again")
    spawn(["sh", "-c", child], name="parent")
    spawn(worker("asks", "--option", "a=A", "Which?"), "--queue", "--after", "again", "--after", "parent", name="asks")
    spawn(["false"], "--queue", "--after", "asks", name="fails")
    spawn(["true"], "--queue", "--after", "fails", name="never")
    gate.touch()  # Before it `asks` cannot start, whatever time these commands take.

    run("wait-any", "--for", "blocked", "asks")
    told = timeline()
    rows = rows_of(told)
    assert (told["open"], rows["asks"]["open"], rows["asks"]["pieces"][-1]["shade"]) == (True, True, "blocked")
    assert rows["asks"]["to"] == told["to"] == rows["asks"]["pieces"][-1]["to"]
    assert_contiguous(told)

    run("interact", "respond", "asks", "--id", "q1", "a")
    run("wait-all", check=False)
    told = timeline()
    rows = rows_of(told)
    assert list(rows) == ["again", "parent", "child", "asks", "fails", "never"]
    assert shades(rows["again"]) == [("queued", 1), ("running", 1), ("running", 2)]
    assert (rows["again"]["attempts"], rows["child"]["depth"]) == (2, 1)
    assert rows["child"]["parent"] == {"taskId": "t1", "agentInstance": "parent"}
    assert shades(rows["asks"]) == [("queued", 1), ("running", 1), ("blocked", 1), ("running", 1)]
    assert [one["agentInstance"] for one in rows["asks"]["after"]] == ["again", "parent"]
    assert (rows["fails"]["status"], rows["never"]["reason"], rows["never"]["startedAt"]) == (
        "failed", "dependency", None,
    )  # fmt: skip
    assert_contiguous(told)
    path = [one["agentInstance"] for one in told["criticalPath"]]
    assert path[-3:] == ["asks", "fails", "never"]
    assert [one["because"] for one in told["criticalPath"]][-3:] == ["dependency"] * 3
    assert set(path) == {name for name, row in rows.items() if row["critical"]}


def test_a_worker_that_waited_for_a_slot_follows_the_one_that_had_it(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", name) for name in ("first", "second")])
    (tmp_path / "gate").touch()
    run("wait-all")
    path = [(one["agentInstance"], one["because"]) for one in timeline()["criticalPath"]]
    assert path == [("first", "start"), ("second", "slot")]


def test_subtasks_are_below_the_worker_that_asked_for_them_with_what_they_used(root: Path) -> None:
    define_shells()
    task = new_task()
    spawn(["sh", "-c", subtask_line("below", "true")], name="top")
    spawn(["true"], name="beside")
    task.ended("top", "beside")
    spent = {"input": 1200, "output": 34, "cached": 5, "costUsd": 0.25}
    folder = task.path.parent / "below" / "agents" / "shell-1"
    (folder / "spent.json").write_text(json.dumps(spent), encoding="utf-8")
    told = timeline()
    assert [(row["taskId"], row["agentInstance"], row["depth"]) for row in told["workers"]] == [
        ("t1", "top", 0), ("below", "shell-1", 1), ("t1", "beside", 0),
    ]  # fmt: skip
    assert told["workers"][1] | spent == told["workers"][1]
    assert told["total"] == {**spent, "tokens": 1234, "workers": 3}
    assert run("timeline").out.splitlines()[1].split("\t")[0] == "below/shell-1"
    assert [row["agentInstance"] for row in timeline("below")["workers"]] == ["shell-1"]


@pytest.fixture
def ended(root: Path) -> Task:
    """A task with one ended worker."""
    task = new_task()
    spawn(["true"], name="a")
    task.ended("a")
    return task


def test_a_picture_is_written_whole_and_only_over_a_plain_file(ended: Task, tmp_path: Path) -> None:
    svg, page = tmp_path / "t.svg", tmp_path / "t.html"
    assert run("timeline", "--svg", svg).out == f"{svg}\n"
    first = svg.read_text(encoding="utf-8")
    ET.fromstring(first)
    assert run("timeline", "t1", "--svg", "-").out == first
    page.write_text("old", encoding="utf-8")
    assert run("timeline", "--html", page, "--json").json == {"taskId": "t1", "path": str(page), "workers": 1}
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix in {".svg", ".html", ".tmp"}) == [
        "t.html", "t.svg",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["link", "folder", "fifo", "nowhere"])
def test_nothing_is_written_where_there_is_no_plain_file(ended: Task, tmp_path: Path, kind: str) -> None:
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_text("mine", encoding="utf-8")
    if kind == "link":
        target.symlink_to(victim)
    elif kind == "folder":
        target.mkdir()
    elif kind == "fifo":
        os.mkfifo(target)
    else:
        target = tmp_path / "nowhere" / "target"
    before = sorted(tmp_path.iterdir())
    refused = run("timeline", "--svg", target, check=False)
    assert (refused.code, refused.out) == (2, "")
    assert str(target.parent) in refused.err
    assert sorted(tmp_path.iterdir()) == before
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "args", [("--svg", "a", "--html", "b"), ("--svg", "-", "--json"), ("t1", "--task", "t2"), ("--svg",)], ids=" ".join
)
def test_a_line_that_means_two_things_is_refused(ended: Task, args: tuple[str, ...]) -> None:
    refused: Completed = run("timeline", *args, check=False)
    assert (refused.code, refused.out) == (2, "")


def test_a_task_without_workers_has_a_timeline_too(root: Path) -> None:
    new_task()
    told = timeline()
    assert (told["workers"], told["criticalPath"], told["open"]) == ([], [], False)
    assert run("timeline").out == ""
    ET.fromstring(run("timeline", "--svg", "-").out)
    assert on_a_terminal([*PROGRAM, "timeline"])[0] == 0


@pytest.mark.parametrize(
    ("env", "glyph", "colours"),
    [({}, "█", True), ({"NO_COLOR": "1"}, "█", False), ({"PYTHONIOENCODING": "ascii"}, "#", True)],
    ids=["blocks", "no-color", "ascii"],
)
def test_a_terminal_gets_a_picture_in_the_characters_that_it_has(
    ended: Task, env: dict[str, str], glyph: str, colours: bool
) -> None:
    code, sent = on_a_terminal([*PROGRAM, "timeline"], width=90, env=env)
    drawn = sent.decode()
    assert code == 0
    assert glyph * 2 in drawn
    assert ("\x1b[36m" in drawn) == colours
    if env.get("PYTHONIOENCODING"):
        assert drawn.isascii()
