"""At stake: why a worker failed is the first thing that one sees, wherever its end is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world
from tests.steps import Task, new_task, row, spawn
from tests.support import run

REASON = "GPL in a dependency"
#: Colours, a blank line, and a character that turns the direction of text.
WRITES = (
    f"echo checked 40 packages; printf '\\033[1m3 found\\033[0m\\n\\033[31m%s\\033[0m\\n\\n' '{REASON}' >&2; exit 1"
)


@pytest.fixture
def failed(root: Path) -> Task:
    task = new_task()
    spawn(["sh", "-c", WRITES], name="licences")
    run("wait", "licences", check=False)
    return task


def test_it_stands_in_its_row_and_in_each_line_about_its_end(failed: Task) -> None:
    told = f"licences failed (exit_code 1): {REASON}"

    assert row("licences")["lastLine"] == REASON
    assert run("list").out.split("\t")[4] == REASON
    assert run("wait", "licences", check=False).out == f"{told}\n"
    assert run("wait", "licences", "--json", check=False).json["lastLine"] == REASON
    assert run("wait-any").out == f"{told}\n"
    run("join")
    assert f"\n> {REASON}\n" in (failed.path / "report.md").read_text()


def test_why_and_result_show_the_last_lines_of_both_streams(failed: Task) -> None:
    lines = {"stderr": ["3 found", REASON], "stdout": ["checked 40 packages"]}

    why, result = run("why", "licences"), run("result", "licences", check=False)

    assert why.out.splitlines()[2:8] == [
        "It failed: its program exited with 1.", "    the end of its stderr:", "    │ 3 found", f"    │ {REASON}",
        "    the end of its stdout:", "    │ checked 40 packages",
    ]  # fmt: skip
    assert result.out == "checked 40 packages\n"
    assert result.err.splitlines()[:3] == ["    the end of its stderr:", "    │ 3 found", f"    │ {REASON}"]
    assert run("why", "licences", "--json").json["lastLines"] == lines
    assert run("result", "licences", "--json", check=False).json["lastLines"] == lines


def test_a_way_out_says_what_it_does_as_a_value_too(failed: Task) -> None:
    ways = run("why", "licences", "--json").json["waysOut"]

    assert [way["step"] for way in ways] == [
        {"verb": verb, "taskId": failed.path.name, "workers": ["licences"]} for verb in ("logs", "retry")
    ]


def test_without_stderr_it_is_the_last_line_of_stdout_and_a_success_has_none(root: Path) -> None:
    new_task()
    spawn(
        ["sh", "-c", "echo connecting; exec sleep 60"], "--timeout-seconds", "0.5", "--wait", name="slow", check=False
    )
    spawn(["sh", "-c", "echo fine >&2"], "--wait", name="good")

    assert (row("slow")["message"], row("slow")["lastLine"]) == ("its time limit of 0.5 s passed", "connecting")
    assert row("good")["lastLine"] is None
    assert "lastLines" not in run("why", "good", "--json").json


def test_of_an_agent_its_own_words_count_and_its_protocol_does_not(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent(f"once 529 {tmp_path / 'seen'}")
    run("wait", "a", check=False)

    assert row("a")["message"]
    assert row("a")["lastLine"] is None
    assert "stdout" not in run("why", "a", "--json").json.get("lastLines", {})


def test_an_output_that_is_no_file_any_more_keeps_no_end_back(root: Path) -> None:
    new_task()
    replaced = (
        'cd "$AGENTCTL_AGENT_DIR"; rm -f stderr.log stdout.log; mkfifo stderr.log; ln -s /etc/passwd stdout.log; exit 3'
    )
    spawn(["sh", "-c", replaced], "--wait", name="odd", check=False)

    assert (row("odd")["exitCode"], row("odd")["lastLine"]) == (3, None)
