"""At stake: what was said in any task can be found again, in bounded time and memory, whatever the files contain."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.domain.text.textquery import TextQuery
from agentctl.operations.show.searching import MOST_COUNTED, Search
from tests.agent_steps import agent, agent_world, blocked
from tests.snapshots import snapshot
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, REPOSITORY, run, wait_until
from tests.terminal import on_a_terminal

#: Searches a root: prints the sources of the hits, the processor time, and by how many KiB the process has grown.
MEASURED = """
import sys, time
from pathlib import Path
from agentctl.adapters.taskdir import Root
from agentctl.domain.text.textquery import TextQuery
from agentctl.operations.show.searching import Search
def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
before, began = peak(), time.process_time()
hits = list(Search(Root(sys.argv[1]), TextQuery(["the needle"])).hits())
used = time.process_time() - began
print([hit.source for hit in hits], used, peak() - before)
"""


def found(*words: str) -> list[tuple[str | None, str | None, str | None]]:
    """Return worker, source and excerpt of each hit."""
    rows: list[dict[str, Any]] = run("search", "--json", *words).json
    for row in rows:
        assert row["more"] or row["excerpt"][row["begin"] : row["end"]].lower() in " ".join(words).lower()
    return [(row["agentInstance"], row["source"], row["excerpt"]) for row in rows]


def line(**row: Any) -> bytes:
    """Return a line of an activity as drivers write it."""
    value = {"at": "2026-11-21T23:06:19.122Z", "id": "m1", "phase": "end", **row}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def with_activity(task: Task, data: bytes, name: str = "a") -> Path:
    """Give an ended worker an activity."""
    spawn(["true"], "--wait", name=name)
    file = task.agent(name) / "activity.jsonl"
    file.write_bytes(data)
    return file


def test_each_place_in_which_something_can_be_said(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    run("new", "The Herring plan", "--id", "fish")
    agent("say herring was here", name="speaker")
    run("wait", "speaker")
    agent("permit grep herring.txt", name="asker")
    question = blocked("asker")
    assert "herring" in json.dumps(question)
    run("interact", "respond", "asker", "--id", "q1", "deny", "--reason", "no herring today")
    run("wait", "asker")
    spawn(["sh", "-c", "echo an unseen sturgeon; exit 3"], "--wait", name="herring-2", check=False)
    sources = {(instance, source) for instance, source, _ in found("HERRING", "--most", "50")}
    assert (None, "title") in sources
    assert {("speaker", "prompt"), ("speaker", "said"), ("speaker", "result"), ("speaker", "received")} <= sources
    assert {("asker", "called"), ("asker", "question"), ("asker", "answer")} <= sources
    assert ("herring-2", "name") in sources
    assert [(one[0], one[1]) for one in found("sturgeon")] == [("herring-2", "command")]
    assert ("herring-2", "stdout", "an unseen sturgeon") in found("sturgeon", "--logs")
    assert found("general")[0][:2] == ("speaker", "agent")


def test_all_words_in_one_text_a_phrase_case_and_a_pattern(root: Path) -> None:
    task = new_task()
    rows = [("The lock is never\n  released here", "m1"), ("released by the Lock", "m2"), ('ÄRGER mit "Zitat"', "m3")]
    with_activity(task, b"".join(line(type="message", id=name, text=text) for text, name in rows))
    assert len(found("lock", "released")) == 2
    assert [one[2] for one in found("never released")] == ["The lock is never released here"]
    assert [one[2] for one in found("Lock", "--case-sensitive")] == ["released by the Lock"]
    assert [one[2] for one in found("ärger")] == ['ÄRGER mit "Zitat"']
    assert [one[2] for one in found('"zitat"')] == ['ÄRGER mit "Zitat"']
    assert len(run("search", "--regex", "l.ck", "--json").json) == 2
    assert run("search", "--regex", "(", check=False).code == 2
    assert run("search", " ", check=False).code == 2
    nothing = run("search", "lock", "zitat", "--json", check=False)
    assert (nothing.code, nothing.json) == (3, [])
    assert "nothing was found" in nothing.err


@pytest.mark.slow
def test_lines_for_a_pipe_and_for_a_terminal_and_no_flood(root: Path) -> None:
    task = new_task()
    said = [line(type="message", id=f"m{n}", text=f"{'x' * 300} \x1b[2Jneedle {n} {'y' * 300}") for n in range(12)]
    with_activity(task, b"".join(said))
    with_activity(task, said[0], name="b")
    done = run("search", "needle")
    rows = [text.split("\t") for text in done.out.splitlines()]
    assert [row[:3] for row in rows] == [["t1/a", "said", "2026-11-21T23:06:19.122Z"]] * 5 + [
        ["t1/b", "said", "2026-11-21T23:06:19.122Z"]
    ]
    assert done.err == "t1/a: 7 more lines (--most 12 prints them)\n"
    for row in rows:
        assert "\x1b" not in row[3]
        assert 80 < len(row[3]) < 130
        assert abs(row[3].index("needle") - len(row[3]) / 2) < 15, "it is in the middle"
    assert run("search", "needle", "--most", "20").err == ""
    assert [row["more"] for row in run("search", "needle", "--json").json] == [0] * 5 + [7, 0]
    _, shown = on_a_terminal([*PROGRAM, "search", "needle"])
    assert b"t1/b  said  " in shown
    assert b"\x1b[2J" not in shown


@pytest.mark.slow
def test_the_newest_task_comes_first_and_one_can_be_named(root: Path) -> None:
    run("new", "About eels", "--id", "older")
    run("new", "More eels", "--id", "newer")
    assert [row["taskId"] for row in run("search", "eels", "--json").json] == ["newer", "older"]
    assert [row["taskId"] for row in run("search", "eels", "--json", "--task", "older").json] == ["older"]
    assert [row["taskId"] for row in run("search", "newer", "--json").json] == ["newer"]


def test_somebody_elses_task_and_odd_files_are_only_read(root: Path, tmp_path: Path) -> None:
    task = new_task()
    with_activity(task, line(type="message", text="the needle") + b'\xff needle\n{needle\n[1,"needle"]\n')
    spawn(["true"], "--wait", name="b")
    spawn(["true"], "--wait", name="c")
    os.mkfifo(task.agent("b") / "activity.jsonl")
    (tmp_path / "secret").write_bytes(line(type="message", text="the secret needle"))
    (task.agent("c") / "activity.jsonl").symlink_to(tmp_path / "secret")
    shutil.rmtree(Path(os.environ["HOME"]) / ".config" / "agentctl" / "own")
    ended = dict.fromkeys("abc", "completed")
    wait_until(task.roster, accept=lambda rows: rows == ended, what="the roster to follow")
    before = snapshot(task.path)
    done = run("search", "needle", "--json")
    assert [(row["agentInstance"], row["excerpt"]) for row in done.json] == [("a", "the needle")]
    assert done.err.count("is not a plain file") == 2
    assert snapshot(task.path) == before


def test_a_hundred_megabytes_take_little_time_and_memory(root: Path) -> None:
    """The bytes are searched before any line is decoded. Decoding all of it would take several seconds."""
    task = new_task()
    filler = line(type="tool", id="t1", name="Bash", text="lorem ipsum dolor sit amet " * 20)
    block = filler * (1_000_000 // len(filler))
    file = with_activity(task, b"")
    with file.open("wb") as out:
        for number in range(100):
            out.write(block)
            if number == 50:
                out.write(line(type="message", text="here is the Needle"))
    assert file.stat().st_size > 99_000_000
    argv = [sys.executable, "-c", MEASURED, str(root)]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=REPOSITORY).stdout
    sources, seconds, kilobytes = printed.rsplit(" ", 2)
    assert sources == "['said']"
    assert float(seconds) < 1.0, printed
    assert int(kilobytes) < 30_000, printed


def test_it_stops_when_it_is_told_to_and_counts_no_further_than_it_has_to(root: Path) -> None:
    task = new_task()
    with_activity(task, line(type="message", text="needle") * (3 * MOST_COUNTED))
    hits = list(Search(Root(str(root)), TextQuery(["needle"]), most=2).hits())
    assert [hit.more for hit in hits] == [0, 0, MOST_COUNTED]
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    assert list(Search(Root(str(root)), TextQuery(["nowhere"]), stopped=stopped).hits()) == []
    assert asked <= 4
    assert list(Search(Root(str(root)), TextQuery(["needle"]), stopped=lambda: True).hits()) == []


@pytest.mark.slow
def test_a_reader_that_goes_ends_the_search(root: Path) -> None:
    """`search | head -1` prints its first hit at once, and ends without a traceback."""
    task = new_task()
    for name in "abc":
        with_activity(task, line(type="message", text="needle") * 50, name=name)
    line_of = f"{shlex.join([*PROGRAM, 'search', 'needle', '--most', '50'])} | head -1"
    done = subprocess.run(["sh", "-c", line_of], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.startswith("t1/a\tsaid")
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
