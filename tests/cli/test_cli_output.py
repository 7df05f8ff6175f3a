"""What goes to pipes is stable and untouched; what goes to a terminal cannot take it over."""

from __future__ import annotations

import json
import os
import pty
import re
import struct
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.ready import made_once
from tests.support import run, start, worker

#: Sets a colour, the title and a C1 control, rings the bell, goes back in the line; and is not all UTF-8.
HOSTILE = "a\\033[31mred\\033]0;title\\007\\302\\233x\\rb\\377\\n"
HOSTILE_BYTES = b"a\x1b[31mred\x1b]0;title\x07\xc2\x9bx\rb\xff\n"


@pytest.fixture
def hostile(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker, `a1`, whose name is the only harmless thing about it."""
    made_once(tmp_path_factory, make_hostile)
    return root


def make_hostile() -> None:
    run("new", "Title \x1b[31m and \u202e more", "--id", "t1")
    run("spawn", "--wait", "--name", "a1", "--", "/bin/sh", "-c", f"printf '{HOSTILE}'; : \x1b[1m\x9b")


def on_a_terminal(*args: str, width: int = 80, env: dict[str, str | None] | None = None) -> tuple[int, bytes]:
    """Run a command on a terminal of its own; return its exit code and what the terminal was sent."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = start(
        *args,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={"TERM": "xterm", "NO_COLOR": None, **(env or {})},
    )
    os.close(follower)
    sent = b""
    try:
        while chunk := os.read(leader, 65536):
            sent += chunk
    except OSError:
        pass  # how Linux says that the other side is closed
    os.close(leader)
    return process.wait(timeout=20), sent


def test_a_pipe_gets_the_bytes_as_they_are(hostile: Path) -> None:
    process = start("logs", "a1")
    assert process.stdout is not None
    assert process.stdout.buffer.read() == HOSTILE_BYTES  # type: ignore[attr-defined]
    assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    "args",
    [("logs", "a1"), ("result", "a1"), ("show", "a1"), ("events",), ("list", "--json"), ("tasks", "--json"),
     ("result", "a1", "--json"), ("logs", "a1", "--json"), ("events", "--json")],
    ids=" ".join,
)  # fmt: skip
def test_a_terminal_is_sent_no_control_characters(hostile: Path, args: tuple[str, ...]) -> None:
    code, sent = on_a_terminal(*args)

    # The styles of an output are told in sequences of our own, which change no more than how letters look.
    text = re.sub(r"\x1b\[[0-9;]*m", "", sent.decode("utf-8").replace("\r\n", "\n"))
    assert code == 0
    assert [hex(ord(character)) for character in text if not character.isprintable() and character not in "\n\t"] == []
    assert text.strip()


@pytest.mark.parametrize("command", ["list", "tasks", "wait-all"])
def test_a_table_has_no_sequences_but_its_own(hostile: Path, command: str) -> None:
    code, sent = on_a_terminal(command)

    assert code == 0
    assert b"\x1b[31m" not in sent
    assert b"\x1b]" not in sent
    assert b"\x9b" not in sent
    assert "\u202e".encode() not in sent


def test_raw_lets_everything_through(hostile: Path) -> None:
    assert on_a_terminal("logs", "a1", "--raw")[1] == HOSTILE_BYTES.replace(b"\n", b"\r\n")


def test_colours_are_for_terminals_that_want_them(hostile: Path) -> None:
    green = b"\x1b[32mcompleted"

    assert green in on_a_terminal("list")[1]
    assert green not in on_a_terminal("list", env={"NO_COLOR": "1"})[1]
    assert "\x1b" not in run("list").out
    assert "\x1b" not in run("tasks").out


def test_a_narrow_terminal_cuts_the_command_and_nothing_else(root: Path) -> None:
    run("spawn", "--wait", "--name", "a1", "--", *worker("prints", "word " * 50))

    _, sent = on_a_terminal("list", width=60)

    row = sent.decode().replace("\r\n", "\n").splitlines()[2]
    assert row.startswith("a1")
    assert "completed" in row
    assert "…" in row


def test_lines_for_pipes_are_fields_with_tabs_between(hostile: Path) -> None:
    run("spawn", "--name", "b1", "--wait", "--", *worker("exits", 3), check=False)

    rows = [line.split("\t") for line in run("list").out.splitlines()]

    assert [row[:3] for row in rows] == [["a1", "completed", "-"], ["b1", "failed", "exit_code"]]
    assert all(len(row) == 6 and float(row[3]) >= 0 and row[4] == "-" for row in rows)
    assert "\\x1b[1m\\x9b" in rows[0][5]
    fields = run("tasks").out.rstrip("\n").split("\t")
    assert fields[:4] == ["t1", "failed", "2", "*"]
    assert fields[6] == "Title \\x1b[31m and \\u202e more"


def test_json_is_one_compact_line_in_any_encoding(hostile: Path) -> None:
    for encoding in ("utf-8", "ascii", "latin-1"):
        out = run("tasks", "--json", env={"PYTHONIOENCODING": encoding}).out
        assert out.count("\n") == 1
        rows = json.loads(out)
        assert rows[0]["title"] == "Title \x1b[31m and \u202e more"
        assert out == json.dumps(rows, ensure_ascii=encoding != "utf-8", separators=(",", ":")) + "\n"


def test_damage_is_warned_of_beside_the_data(hostile: Path) -> None:
    log = hostile / "tasks" / "t1" / "events.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole + b"\x1b[31mgarbage\n")
    number = whole.count(b"\n") + 1

    done = run("list", "--json")

    assert [row["agentInstance"] for row in done.json] == ["a1"]
    assert done.err.startswith("warning: ")
    assert f"events.jsonl:{number}: " in done.err
    assert "\x1b" not in done.err
    lines = run("events", "--json")
    assert lines.json_lines[-1]["seq"] == number
    assert "problem" in lines.json_lines[-1]
    assert f"events.jsonl:{number}: " in lines.err


def test_what_is_cut_says_so_beside_the_data(root: Path) -> None:
    run("spawn", "--wait", "--name", "a1", "--", *worker("prints", "x" * 5000))

    done = run("result", "a1", "--max-bytes", "100")

    path = root / "tasks" / "task" / "agents" / "a1" / "stdout.log"
    assert len(done.out.rstrip("\n")) in (99, 100)
    assert done.err == f"[cut: 100 of {path.stat().st_size} bytes; whole: {path}]\n"
    assert run("result", "a1", "--max-bytes", "100", "--json").json["truncated"] is True


@pytest.mark.slow
def test_one_worker_is_an_object_and_several_are_an_array(root: Path) -> None:
    one = run("spawn", "--json", "--name", "a1", "--", *worker("exits", 0)).json
    many = run("spawn", "--json", "--batch", "-", stdin=json.dumps({"name": "a2", "argv": worker("exits", 0)})).json

    assert set(one) >= {"agentInstance", "status", "pid", "taskId"}
    assert [each["agentInstance"] for each in many] == ["a2"]
    assert run("wait", "a1", "--json").json["status"] == "completed"
    assert [each["status"] for each in run("wait", "a1", "a2", "--json").json] == ["completed"] * 2
    assert [each["agentInstance"] for each in run("wait-all", "--json").json] == ["a1", "a2"]
    cancelled = run("cancel", "a1", "--json").json
    assert (cancelled["cancelled"], cancelled["status"], cancelled["survivors"]) == (False, "completed", [])
    assert [each["status"] for each in run("cancel", "a1", "a2", "--json").json] == ["completed"] * 2
    assert run("cancel", "--all", "--json").json == []
    assert run("cancel", "a1").out == "a1 had completed before; nothing changed\n"


@pytest.mark.slow
def test_a_worker_reads_the_answer_alone_and_its_reports_print_nothing(root: Path) -> None:
    ask = worker("asks", "--option", "api=Back\x1bend, the", "--option", "web=Frontend", "Which\x1b[1m part?")
    run("spawn", "--name", "asker", "--", *ask)
    reports = worker("reports", "--progress", 40, "half-way", "--message", "found", "--summary", "three bugs")
    run("spawn", "--wait", "--name", "teller", "--", *reports)
    run("wait-any", "asker", "--for", "blocked")

    row = run("interact", "list").out.rstrip("\n").split("\t")
    assert row[1:5] == ["asker", "q1", "select", "Which\\x1b[1m part?"]
    assert row[5:] == ["api=Back\\x1bend, the", "web=Frontend"]
    assert b"\x1b" not in on_a_terminal("interact", "list")[1]
    answered = run("interact", "respond", "asker", "--id", "q1", "Frontend", "--json").json
    assert (answered["id"], answered["answer"]) == ("q1", "web")

    assert run("wait", "asker").out == "asker completed\n"
    assert run("logs", "asker").out == "answer: web\n"
    assert run("logs", "teller").out == ""
    assert run("result", "teller").out == "three bugs\n"
