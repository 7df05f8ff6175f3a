"""At stake: `logs -f` shows every byte that is written, also after a truncation, and ends with the worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyte
import pytest

from tests.steps import held, new_task, spawn, spawn_batch
from tests.support import PROGRAM, run, start, wait_until
from tests.terminal import Terminal, on_a_terminal


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def waits_for(gate: Path) -> str:
    """Return a shell command that waits until a file exists."""
    return f"while [ ! -e {gate} ]; do sleep 0.01; done"


def test_follow_gives_what_comes_and_ends_with_the_worker(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(
        ["sh", "-c", f"echo one; {waits_for(tmp_path / 'g1')}; echo two; {waits_for(tmp_path / 'g2')}; printf three"],
        name="a",
    )
    follower = start("logs", "-f", "a")
    assert line_of(follower) == "one\n"
    (tmp_path / "g1").touch()
    assert line_of(follower) == "two\n"
    assert follower.poll() is None
    (tmp_path / "g2").touch()
    assert follower.communicate(timeout=30)[0] == "three"
    assert follower.returncode == 0


def test_follow_survives_a_truncation(root: Path, tmp_path: Path) -> None:
    """A worker's own `> /dev/stderr` truncates a stderr that is a file."""
    new_task()
    gate = tmp_path / "gate"
    script = f"echo a long first line >&2; {waits_for(gate)}; echo again > /dev/stderr; {waits_for(tmp_path / 'end')}"
    spawn(["sh", "-c", script], name="a")
    follower = start("logs", "-f", "a", "--stderr")
    assert line_of(follower) == "a long first line\n"
    gate.touch()
    assert line_of(follower) == "again\n"
    (tmp_path / "end").touch()
    assert follower.communicate(timeout=30)[0] == ""


def test_follow_of_a_queued_worker_waits_for_its_first_word(root: Path, tmp_path: Path) -> None:
    new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["echo", "at last"]}])
    follower = start("logs", "-f", "b")
    (tmp_path / "gate").touch()
    assert follower.communicate(timeout=30)[0] == "at last\n"


@pytest.mark.slow
def test_tail_gives_the_last_lines_of_each_stream(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "seq 1 30000; seq 5 >&2; printf unended >&2"], name="a")
    task.ended("a")
    assert run("logs", "a", "--stdout", "--tail", "2").out == "29999\n30000\n"
    assert run("logs", "a", "--stderr", "--tail", "2").out == "5\nunended"
    assert run("logs", "a", "--tail", "0").out == ""
    assert run("logs", "a", "--stdout").out == "".join(f"{number}\n" for number in range(1, 30001))
    assert run("logs", "a", "--stdout", "--tail", "99999").out.startswith("1\n2\n")


def test_logs_of_a_worker_without_output_are_empty(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    assert run("logs", "b").out == ""
    assert run("logs", "nobody", check=False).code == 3
    (tmp_path / "gate").touch()
    task.ended("a", "b")
    assert run("logs", "b").out == ""


def test_events_are_followed_as_they_are_written(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a"), {"name": "b", "argv": ["true"]}])
    task.ended("b")
    follower = start("events", "-f", "--json", "a")
    assert [json.loads(line_of(follower))["type"] for _ in range(2)] == ["agent.queued", "agent.started"]
    (tmp_path / "gate").touch()
    last = json.loads(line_of(follower))
    assert (last["type"], last["agentInstance"]) == ("agent.completed", "a")
    lines = (task.path / "events.jsonl").read_text().splitlines()
    assert json.loads(lines[last["seq"] - 1])["type"] == "agent.completed", "seq is the line's number"
    follower.terminate()
    follower.wait(timeout=30)


def test_a_follower_sees_no_half_line(root: Path, tmp_path: Path) -> None:
    task = new_task()
    follower = start("events", "-f", "--json")
    assert json.loads(line_of(follower))["type"] == "task.created"
    event = json.dumps({"ts": "x", "type": "note.left", "taskId": "t1", "by": "user", "payload": {}}).encode()
    fd = os.open(task.path / "events.jsonl", os.O_WRONLY | os.O_APPEND)
    os.write(fd, event[:20])
    assert run("events", "--json").json_lines[-1]["type"] == "task.created"
    os.write(fd, event[20:] + b"\n")
    os.close(fd)
    assert json.loads(line_of(follower))["type"] == "note.left"
    follower.terminate()
    follower.wait(timeout=30)


def test_a_reader_that_goes_away_ends_the_follower_quietly(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", f"echo one; {waits_for(tmp_path / 'gate')}; seq 100000"], name="a")
    follower = start("logs", "-f", "a")
    assert line_of(follower) == "one\n"
    assert follower.stdout is not None
    follower.stdout.close()
    (tmp_path / "gate").touch()
    assert follower.stderr is not None
    assert follower.stderr.read() == ""
    follower.wait(timeout=30)
    task.ended("a")
    wait_until(lambda: run("logs", "a", "--tail", "1").out, accept=lambda last: last == "100000\n")


COLOURED = r"printf 'src\033[K:\033[01;31m\033[Kold\033[m\n\033]0;title\007'; printf '1 %%\r50 %%\r99 %%'; echo bad >&2"


def seen(*words: str, **environ: str) -> str:
    """Return what a terminal gets from a command, with the ends of its lines as they were printed."""
    _, sent = on_a_terminal([*PROGRAM, *words], env=environ)
    return sent.decode().replace("\r\n", "\n")


def test_a_terminal_shows_the_output_as_it_was_meant(root: Path) -> None:
    new_task()
    spawn(["sh", "-c", COLOURED], "--wait", name="a")
    assert seen("logs", "a") == "src:\x1b[1;31mold\x1b[0m\n99 %\nbad\n"
    assert seen("logs", "a", NO_COLOR="1") == "src:old\n99 %\nbad\n"
    assert seen("logs", "a", TERM="dumb") == "src:old\n99 %\nbad\n"
    assert "\x1b]0;title" in seen("logs", "a", "--raw")
    assert "\x1b]0;title" in run("logs", "a").out
    assert seen("logs", "a", "--stderr") == "bad\n"


def test_a_follower_at_a_terminal_sees_the_present_state_of_a_progress_bar(root: Path, tmp_path: Path) -> None:
    new_task()
    script = f"printf '\\r1 %%'; {waits_for(tmp_path / 'gate')}; printf '\\r\\033[2K99 %%'"
    spawn(["sh", "-c", script], name="a")
    follower = Terminal([*PROGRAM, "logs", "-f", "a"])
    follower.until("1 %")
    (tmp_path / "gate").touch()
    follower.end()
    assert follower.sent == b"1 %\r\x1b[K99 %\r\n"


def test_a_bar_is_drawn_over_by_the_size_that_the_terminal_has(root: Path, tmp_path: Path) -> None:
    new_task()
    script = f"printf '\\r%060d' 1; {waits_for(tmp_path / 'gate')}; printf '\\r\\033[2K99 %%'"
    spawn(["sh", "-c", script], name="a")
    follower = Terminal([*PROGRAM, "logs", "-f", "a"], width=40, env={"COLUMNS": "200", "LINES": "50"})
    follower.until("01")
    (tmp_path / "gate").touch()
    follower.end()
    assert lines_on_a_screen(follower.sent, 40, 24) == ["99 %"]


#: A display of three bars as docker draws it: the cursor goes up to each row, and back.
BARS = r"""
import pathlib, sys, time
def put(number, text):
    print(f"\033[{3 - number}A\r\033[2Klayer{number} {text}\r\033[{3 - number}B", end="", flush=True)
def shown(text):
    for number in range(3):
        put(number, text)
        time.sleep(0.01)
print("pull")
for number in range(3):
    print(f"layer{number} waiting", flush=True)
for frame in range(30):
    shown(f"{frame} %")
print("slow", file=sys.stderr, flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    shown("half")
shown("done")
print("pulled")
"""


def shows(follower: Terminal, *texts: str) -> None:
    """Wait until all of these were printed: several may come in one read."""
    for text in texts:
        if text.encode() not in follower.sent:
            follower.until(text)


def lines_on_a_screen(sent: bytes, columns: int, lines: int) -> list[str]:
    """Return what a terminal shows, with what has left it above."""
    screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=0.5)
    pyte.ByteStream(screen).feed(sent)
    above = ["".join(line[x].data for x in range(columns)) for line in screen.history.top]
    return [line for one in (*above, *screen.display) if (line := one.rstrip())]


@pytest.mark.parametrize("verb", ["logs -f", "watch"])
@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (40, 10)])
def test_a_display_of_several_bars_is_drawn_over_and_over_and_there_once(
    root: Path, tmp_path: Path, verb: str, columns: int, lines: int
) -> None:
    new_task()
    spawn([sys.executable, "-c", BARS, str(tmp_path / "gate")], name="a")
    follower = Terminal([*PROGRAM, *verb.split(), "a"], width=columns, height=lines)
    shows(follower, "slow", "half")
    (tmp_path / "gate").touch()
    follower.end()
    shown = [line for line in lines_on_a_screen(follower.sent, columns, lines) if not line.startswith("a ")]
    assert shown == ["pull", "slow", "layer0 done", "layer1 done", "layer2 done", "pulled"]
    assert sorted(shown) == sorted(seen("logs", "a").splitlines())


def test_who_stops_following_keeps_what_was_held_back(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn([sys.executable, "-c", BARS, str(tmp_path / "gate")], name="a")
    follower = Terminal([*PROGRAM, "logs", "-f", "a"], env={"TERM": "dumb"})
    shows(follower, "pull", "slow")
    follower.interrupt()
    assert follower.end() == 130
    shown = follower.sent.decode().split("\r\n")
    assert {line.partition(" ")[0] for line in shown} >= {"pull", "slow", "layer0", "layer1", "layer2"}
    assert len(shown) < 15
    (tmp_path / "gate").touch()


def test_a_worker_that_is_killed_within_a_frame_leaves_the_frame(root: Path, tmp_path: Path) -> None:
    new_task()
    script = f"printf 'a 1\\nb 1\\n\\033[2Aa 2'; {waits_for(tmp_path / 'gate')}; kill -9 $$"
    spawn(["sh", "-c", script], name="a")
    follower = Terminal([*PROGRAM, "logs", "-f", "a"])
    follower.until("a 2")
    (tmp_path / "gate").touch()
    follower.end()
    assert lines_on_a_screen(follower.sent, 120, 24) == ["a 2", "b 1"]
