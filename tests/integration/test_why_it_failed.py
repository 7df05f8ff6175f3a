"""At stake: why a worker failed is the first thing that one sees, wherever its end is told."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent, agent_world
from tests.life import forge, set_config
from tests.shells import AGENTCTL, define_shells, subtask_line
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import run, worker

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
    assert re.search(rf"^  licences  failed \(exit_code 1\)  \S+  {REASON}  sh -c ", run("tree").out, re.MULTILINE)
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


# -- because another one has failed ------------------------------------------------------------------------------------

FAILS_BELOW = subtask_line("look", f"echo {REASON} >&2; exit 3")


def told_of_others(instance: str) -> list[tuple[str, Any, Any]]:
    """Return what `why` says of the failures of other workers: the sentence, which worker, its last lines."""
    statements = run("why", instance, "--json").json["statements"]
    return [
        (one["text"], f"{one['taskId']}/{one['agentInstance']}", one.get("lastLines"))
        for one in statements if "agentInstance" in one
    ]  # fmt: skip


def test_a_failure_that_began_in_another_task_is_told_with_the_last_lines_from_there(root: Path) -> None:
    define_shells()
    new_task(depth=2)
    spawn(["sh", "-c", f"{FAILS_BELOW} >/dev/null"], name="top")
    for name, before in (("then", "top"), ("last", "then")):  # What they wait for may have failed by now.
        spawn(["true"], "--after", before, name=name, check=False)
    run("wait-all", check=False)

    in_words = "failed (exit_code 3): it exited with code 3."
    in_look = ("look/shell-1", {"stderr": [REASON]})
    assert told_of_others("top") == [(f"It started look/shell-1, which {in_words}", *in_look)]
    assert told_of_others("last") == [
        ("It waited for then, which failed (dependency): a dependency was not met: top failed.", "t1/then", None),
        ("then waited for top, which failed (exit_code 7).", "t1/top", None),
        (f"top started look/shell-1, which {in_words}", *in_look),
    ]
    shown = run("why", "last").out
    assert f"top started look/shell-1, which {in_words}\n    the end of its stderr:\n    │ {REASON}\n" in shown
    way = next(line for line in shown.splitlines() if "all that look/shell-1 wrote" in line)
    assert run(*shlex.split(way.partition(": agentctl ")[2]), "--stderr").out == f"{REASON}\n"


def test_a_failure_that_its_own_next_try_has_made_good_is_no_reason(root: Path, tmp_path: Path) -> None:
    new_task(depth=2)
    mends = f"test -e {tmp_path}/mended && exit 0; touch {tmp_path}/mended; exit 1"
    first = f"{AGENTCTL} spawn --wait --name c -- sh -c {shlex.quote(mends)}"
    tries = f"{first}; {AGENTCTL} retry c; {AGENTCTL} wait c-2; exit 5"
    spawn(["sh", "-c", tries], "--wait", name="top", check=False)

    assert statuses() == {"top": "failed", "c": "failed", "c-2": "completed"}
    assert told_of_others("top") == []


def test_while_it_waits_for_those_that_it_started_the_one_that_failed_is_told(root: Path, tmp_path: Path) -> None:
    define_shells()
    task = new_task(depth=2)
    lives = f"{AGENTCTL} spawn --name lives -- {shlex.join(worker('sleeps', 60))}"
    spawn(["sh", "-c", f"{FAILS_BELOW}; {lives}"], name="top")
    task.has("agent.awaiting_children", "top")

    assert [one[1:] for one in told_of_others("top")] == [("look/shell-1", {"stderr": [REASON]})]
    run("cancel", "lives")


def test_a_worker_below_one_that_has_failed_tells_why_that_one_did(root: Path) -> None:
    task = new_task(depth=2)
    set_config(task, maxDepth=2, childrenAtEnd="leave")
    lives = f"{AGENTCTL} spawn --name lives -- {shlex.join(worker('sleeps', 60))} >/dev/null"
    spawn(["sh", "-c", f"{lives}; echo {REASON} >&2; exit 4"], "--wait", name="top", check=False)

    assert told_of_others("lives") == [
        ("top, which is above it, failed (exit_code 4).", "t1/top", {"stderr": [REASON]})
    ]
    run("cancel", "lives")
    assert [one[1] for one in told_of_others("lives")] == ["t1/top"]


def test_nothing_is_believed_of_a_failure_in_somebody_elses_task(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "echo trust me >&2; exit 1"], "--wait", name="evil", check=False)
    spawn(worker("sleeps", 60), name="mine")
    clone = root.parent / "clone" / ".agentctl"
    shutil.copytree(root, clone, ignore=shutil.ignore_patterns("control", "*.tmp"))
    forge(task.agent("mine") / "spec.json", parent="evil", parentTask=str(clone / "tasks" / "t1"))

    assert told_of_others("mine") == []
    forge(task.agent("mine") / "spec.json", parentTask=None)
    assert [one[1] for one in told_of_others("mine")] == ["t1/evil"]
    run("cancel", "mine")


# -- what counts -------------------------------------------------------------------------------------------------------


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
