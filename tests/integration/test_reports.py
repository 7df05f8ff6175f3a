"""At stake: a worker's report is on disk before the command returns, and an ended worker cannot report."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path

import pytest

from agentctl.interfaces.commands.steer.report import percent_in
from tests.life import set_config
from tests.shells import AGENTCTL
from tests.steps import new_task, row, spawn
from tests.support import alike, run, worker


@pytest.mark.parametrize(
    ("word", "percent"),
    [("0/4", 0.0), ("1/4", 25.0), ("4/4", 100.0), ("2.5/5", 50.0), ("80%", 80.0), ("40", 40.0), ("0", 0.0)],
)
def test_how_far_it_is_may_be_a_percentage_or_a_fraction(word: str, percent: float) -> None:
    assert percent_in(word) == percent


@pytest.mark.parametrize("word", ["almost there", "1/x", "/", "1/", "a/b"])
def test_other_words_are_a_text(word: str) -> None:
    assert percent_in(word) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1/0", "x"], "1/0 is not a fraction: the whole is 0"),
        (["step", "0"], "'step' is neither a percentage nor a fraction, and a text of several words needs quotes"),
        (["40", "step", "0"], "after 40 there is more than one text: 'step' '0'"),
    ],
)
def test_what_is_wrong_with_a_progress_is_named(root: Path, words: list[str], message: str) -> None:
    done = run("report", "progress", *words, check=False)
    assert done.code == 2
    assert message in done.err


def test_progress_shows_in_list_while_the_worker_lives(root: Path, tmp_path: Path) -> None:
    task = new_task()
    report = shlex.join(worker("reports", "--progress", "40", "half-way", "--message", "found it"))
    spawn(
        ["sh", "-c", f"{report}; touch {tmp_path / 'said'}; while [ ! -e {tmp_path / 'gate'} ]; do sleep 0.01; done"],
        name="a",
    )
    spawn(["sh", "-c", f"while [ ! -e {tmp_path / 'said'} ]; do sleep 0.01; done"], name="b")
    task.ended("b")
    told = row("a")["progress"]
    assert (told["percent"], told["text"]) == (40, "half-way")
    (tmp_path / "gate").touch()
    task.ended("a")
    assert row("a")["progress"] is None
    rows = [json.loads(line) for line in (task.agent("a") / "activity.jsonl").read_text().splitlines()]
    assert [(one["type"], one["text"]) for one in rows] == [("progress", "half-way"), ("message", "found it")]


def test_a_declared_result_is_told_by_result_show_and_events(root: Path, tmp_path: Path) -> None:
    task = new_task()
    notes = tmp_path / "notes.md"
    notes.write_bytes(b"# three bugs\n\xff\n")
    spawn(worker("reports", "--summary", "three bugs", "--file", notes), name="a")
    run("wait", "a")
    told = run("result", "a", "--json").json
    digest = hashlib.sha256(notes.read_bytes()).hexdigest()
    assert (told["source"], told["summary"], told["status"], told["truncated"]) == (
        "declared",
        "three bugs",
        "completed",
        False,
    )
    recorded = {"path": str(notes), "size": len(notes.read_bytes()), "sha256": digest}
    assert told["files"] == [{**recorded, "now": "not compared"}], "it is in none of the worker's folders"
    plain = run("result", "a")
    assert plain.out == "three bugs\n"
    assert f"file: {notes} (15 bytes)" in plain.err
    assert [event["payload"]["summary"] for event in task.events("result.declared")] == ["three bugs"]
    assert run("show", "a", "--json").json["result"]["summary"] == "three bugs"


@pytest.mark.slow
def test_a_later_result_replaces_the_one_before(root: Path) -> None:
    new_task()
    again = " && ".join(shlex.join(worker("reports", "--summary", text)) for text in ("first", "second"))
    spawn(["sh", "-c", again], name="a")
    run("wait", "a")
    assert run("result", "a").out == "second\n"


def test_what_cannot_be_meant_is_refused(root: Path, tmp_path: Path) -> None:
    task, fifo = new_task(cap=7), tmp_path / "fifo"
    os.mkfifo(fifo)
    options = {
        "a": ["--progress", "140"],
        "b": ["--progress", "nan"],
        "c": ["--summary", "x", "--file", str(tmp_path / "missing")],
        "d": ["--message", "  "],
        "e": ["--summary", "x", "--file", "/dev/zero"],
        "f": ["--summary", "x", "--file", str(fifo)],
        "g": ["--summary", "x", "--file", str(tmp_path)],
    }
    lines = [json.dumps({"name": name, "argv": worker("reports", *given)}) for name, given in options.items()]
    run("spawn", "--batch", "-", stdin="\n".join(lines))
    task.ended(*"abcdefg")
    said = {name: (task.agent(name) / "stderr.log").read_text() for name in "abcdefg"}
    assert "from 0 to 100, not 140" in said["a"]
    assert f"there is no file {tmp_path / 'missing'}" in said["c"]
    assert "the message is empty" in said["d"]
    assert "/dev/zero is not a plain file: it is a device" in said["e"]
    assert f"{fifo} is not a plain file: it is a FIFO" in said["f"]
    assert f"{tmp_path} is not a plain file: it is a folder" in said["g"]
    assert [(task.exit(name) or {})["status"] for name in "acdefg"] == ["failed"] * 6
    assert not (task.agent("c") / "result.json").exists()


def test_reports_are_for_workers_that_live(root: Path) -> None:
    task = new_task()
    outside = run("report", "message", "hello", check=False)
    assert outside.code == 1
    assert "is for workers" in outside.err
    spawn(["true"], name="a")
    task.ended("a")
    inside = {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a"}
    for args in (["progress", "4"], ["message", "x"], ["result", "--summary", "x"]):
        late = run("report", *args, env=inside, check=False)
        assert late.code == 1
        assert "a has ended" in late.err
    assert not (task.agent("a") / "result.json").exists()
    assert not (task.agent("a") / "activity.jsonl").exists()


def test_a_report_of_somebody_elses_task_is_not_taken_for_ours(root: Path) -> None:
    new_task()
    refused = run("report", "message", "x", env={"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "../t1"}, check=False)
    assert refused.code == 2
    assert (
        run("report", "message", "x", env={"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "nobody"}, check=False).code == 1
    )


@pytest.mark.parametrize("report", ["progress 40 reading", *alike("message found", "result --summary done")])
def test_a_report_is_a_sign_of_life(root: Path, tmp_path: Path, report: str) -> None:
    """It is stalled no longer once it reports, although it has never written a byte."""
    task = new_task()
    set_config(task, stallSeconds=0.2, graceSeconds=0.1)
    script = f"until [ -e '{tmp_path / 'gate'}' ]; do sleep 0.02; done; {AGENTCTL} report {report}; exec sleep 60"
    spawn(["sh", "-c", script], name="a")
    task.has("agent.stalled", "a")
    (tmp_path / "gate").touch()
    task.has("agent.unstalled", "a")
    assert (task.agent("a") / "stdout.log").read_bytes() == b""
    run("cancel", "a")
