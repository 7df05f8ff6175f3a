"""At stake: a parent gets what its child says, and not the protocol of a program with all that its tools have read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.operations.show.results import text_fields
from tests.agent_steps import agent, agent_world, blocked, ends, plays
from tests.steps import Task
from tests.support import run

ASKS = "me.ask('Bash', {'command': 'ls'}, 'permission')"
SPEAKS = f"me.assistant({{'type': 'text', 'text': 'I look around.'}}); {ASKS}"


@pytest.mark.slow
@pytest.mark.parametrize(("script", "source", "text"), [(SPEAKS, "activity", "I look around."), (ASKS, "none", "")])
def test_an_agent_that_has_not_ended_has_its_last_words_and_no_protocol(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, source: str, text: str
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, script))
    blocked()
    assert b"control_request" in (task.agent("a") / "stdout.log").read_bytes()
    told = run("result", "a", "--json", check=False).json
    assert (told["source"], told["text"], told["files"]) == (source, text, [])
    (part,) = run("join", "--json").json["workers"]
    assert (part["source"], part["text"]) == (source, text)
    run("interact", "respond", "a", "--id", "q1", "deny")
    ends()


def row(text: str, **more: object) -> str:
    said = {"at": "2026-01-01T00:00:00.000Z", "type": "message", "id": "m", "phase": "end", "text": text, **more}
    return json.dumps({key: value for key, value in said.items() if value is not None}) + "\n"


@pytest.fixture
def told(root: Path) -> Task:
    """Make the folder of an agent by hand."""
    task = Task(root / "tasks" / "t1")
    task.agent("a").mkdir(parents=True)
    (task.agent("a") / "spec.json").write_text(json.dumps({"order": {"driver": "claude"}}))
    (task.agent("a") / "stdout.log").write_text("protocol\n")
    return task


def words(task: Task) -> tuple[str, str]:
    found = text_fields(Root(task.path.parent.parent).task("t1").worker("a"))
    return found["source"], found["text"]


def test_only_its_own_words_count(told: Task) -> None:
    file = told.agent("a") / "activity.jsonl"
    others = [
        row("to it", name="user"), row("below it", parent="toolu_1"), row("reported", id="report-1"),
        row("half", phase="progress"), row("", id="n"), row("a thought", type="thought"), "no row\n", "[1]\n",
        '{"type": "message", "text"', "\n",
    ]  # fmt: skip
    file.write_text("".join(others))
    assert words(told) == ("none", "")
    file.write_text(row("first") + row("last") + "".join(others) + row("torn").rstrip("\n"))
    assert words(told) == ("activity", "last")


def test_no_more_is_read_than_the_end(told: Task) -> None:
    file = told.agent("a") / "activity.jsonl"
    file.write_text(row("long ago") + row("x" * 1000, type="thought") * 5000)
    assert words(told) == ("none", "")
    with file.open("a") as end:
        end.write(row("now"))
        end.write("[" * 100_000 + "\n")
    assert words(told) == ("activity", "now")
    file.write_text("")
    os.truncate(file, 1 << 40)
    assert words(told) == ("none", "")


def test_what_is_no_file_is_not_read(told: Task, tmp_path: Path) -> None:
    file = told.agent("a") / "activity.jsonl"
    assert words(told) == ("none", "")
    os.mkfifo(file)
    assert words(told) == ("none", "")
    file.unlink()
    (tmp_path / "elsewhere").write_text(row("a secret"))
    file.symlink_to(tmp_path / "elsewhere")
    assert words(told) == ("none", "")


def test_a_command_has_its_output_as_ever(told: Task) -> None:
    for spec in ({"order": {"driver": "command"}}, {"order": None}, {}):
        (told.agent("a") / "spec.json").write_text(json.dumps(spec))
        assert words(told) == ("stdout", "protocol\n")
