"""At stake: on a terminal of 80 columns each surface says why a worker failed, and what it waits for, in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.steps import new_task, spawn
from tests.support import PROGRAM, run
from tests.terminal import on_a_terminal

LONG = "a-worker-whose-name-is-longer-than-its-column"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def lines_of(*words: str) -> list[str]:
    """Return what a command shows on a terminal of 80 columns."""
    shown = on_a_terminal([*PROGRAM, *words], width=80)[1].decode()
    return [_COLOURS.sub("", line).rstrip() for line in shown.splitlines()]


@pytest.mark.slow
def test_the_same_words_for_an_end_wherever_it_is_told(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "exit 3; " + "# a long comment " * 20], "--wait", name=f"{LONG}-3", check=False)
    spawn(["sh", "-c", "kill -9 $$"], "--wait", name="killed", check=False)
    for name, words in ((f"{LONG}-3", "exit_code 3"), ("killed", "signal SIGKILL")):
        (listed,) = [line for line in lines_of("list") if line.startswith(name[:4])]
        assert re.search(rf" failed +{words} ", listed), listed
        said = f"failed ({words})"
        for command in (("wait", name), ("wait-all",), ("tree",), ("result", name)):
            assert f"{name} {said}" in " ".join("\n".join(lines_of(*command)).split()), command
        run("join")
        assert f"{said}" in (task.path / "report.md").read_text(encoding="utf-8")
    table = run("list").out.splitlines()
    assert [line.split("\t")[2] for line in table] == ["exit_code", "signal"], "the lines for pipes stay as they are"
    assert run("result", "killed", "--json", check=False).json["signal"] == "SIGKILL"
    assert lines_of("wait-all")[-1].endswith("failed (signal SIGKILL)")


@pytest.mark.slow
def test_a_queued_worker_shows_what_it_waits_for(root: Path) -> None:
    new_task()
    for name in ("a", "b"):
        spawn(["sleep", "60"], name=name)
    spawn(["true"], "--queue", "--after", "a", "--after", "b", name=LONG)
    rows = {row["agentInstance"]: row for row in run("list", "--json").json}
    assert rows[LONG]["after"] == ["a", "b"]
    assert "after" not in rows["a"]
    (listed,) = [line for line in lines_of("list") if " queued " in line]
    assert " after a, b " in listed
    assert f"{LONG}  queued  after a, b" in "\n".join(lines_of("tree"))
    assert run("list").out.splitlines()[2].split("\t")[2] == "-"
    run("cancel", "--all")
    assert "after" not in run("list", "--json").json[2]


@pytest.mark.slow
def test_which_task_is_chosen_and_how_it_stands_is_shown_whatever_the_length_of_ids_and_titles(root: Path) -> None:
    run("new", "T" * 200, "--id", "t" * 64)
    spawn(["false"], "--wait", name="fails", check=False)
    spawn(["sleep", "60"], name="runs")
    line = lines_of("tasks")[2]
    assert line.startswith("*   tttt"), line
    assert re.search(r"…t+   running   1 failed, 1 running ", line), line
    (row,) = run("tasks", "--json").json
    assert (row["state"], row["status"]) == ("working", "running")
    assert run("tasks").out.split("\t")[1] == "working", "the lines for pipes stay as they are"
    run("cancel", "--all")
