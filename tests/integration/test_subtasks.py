"""At stake: a sub-task always belongs to one agent, its answer keeps the contract, and a refused one leaves nothing."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.life import leader_of, set_config, sleeps_in_wait, stands
from tests.shells import AGENTCTL, answers_of, below, define_shells, subtask_line
from tests.steps import Task, new_task, spawn, statuses
from tests.support import run, start, start_argv, wait_for_json, wait_until, worker


@pytest.fixture
def task(root: Path) -> Task:
    """Make a task, and define agents whose prompt is a script."""
    define_shells("shell", "other")
    return new_task(cap=2, grace=0.2)


def head(task: Task) -> dict[str, object]:
    """Return the content of task.yaml."""
    told: dict[str, object] = yaml.safe_load((task.path / "task.yaml").read_bytes())
    return told


# -- the answer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "status", "more"),
    [
        ("echo found it", 0, "Success", {"finalAssistantMessage": "found it"}),
        (
            "echo oops; exit 3", 7, "Error",
            {"failureReason": "exit_code 3: oops: it exited with code 3", "finalAssistantMessage": "oops"},
        ),
        (
            f"{AGENTCTL} report result --summary short; echo long", 0, "Success",
            {"summary": "short", "finalAssistantMessage": "long"},
        ),
    ],
)  # fmt: skip
def test_the_answer_is_the_contracts(task: Task, script: str, code: int, status: str, more: dict[str, str]) -> None:
    told = run("subtask", "shell", ": look", "--intent", script, "--json", check=False)
    assert (told.code, told.json) == (
        code,
        {"taskId": "look", "agentId": "shell-1", "subTaskStatus": status, **more},
    )


def test_a_subtask_is_a_task_of_its_own_that_names_those_above(task: Task) -> None:
    spawn(["sh", "-c", subtask_line("child", "true")], name="top")
    task.ended("top")
    child = below(task, "child")
    told = head(child)
    assert {key: told[key] for key in ("parentTaskId", "parentInstance", "rootTaskId", "author", "agent")} == {
        "parentTaskId": "t1", "parentInstance": "top", "rootTaskId": "t1", "author": "top", "agent": "shell",
    }  # fmt: skip
    assert head(task)["childTaskIds"] == ["child"]
    assert [event["payload"]["taskId"] for event in task.events("subtask.created")] == ["child"]
    assert child.events("agent.queued")[0]["payload"] | {"command": ""} == {
        "agentInstance": "shell-1", "agent": "shell", "command": "", "agentId": "shell-1", "driver": "command",
        "parentInstance": "top", "parentTaskId": "t1", "depth": 1,
    }  # fmt: skip
    assert (Path(os.environ["AGENTCTL_ROOT"]) / "current").read_text() == "t1\n", "it is not chosen"


def test_a_persons_subtask_has_the_person_as_its_author(task: Task) -> None:
    run("subtask", "shell", ": child", "--no-wait", "--id", "mine")
    told = head(below(task, "mine"))
    assert (told["author"], told.get("parentInstance")) == ("user", None)
    below(task, "mine").ended("shell-1")


@pytest.mark.slow
def test_it_is_bound_for_life_to_one_agent(task: Task) -> None:
    run("subtask", "shell", ": child")
    refused = run("spawn", "--task", "child", "--agent", "other", "true", check=False)
    assert refused.code == 1
    assert "the sub-task child is bound to the agent shell: other cannot be started in it" in refused.err
    assert run("spawn", "--task", "child", "--", "true", check=False).code == 1
    assert run("spawn", "--task", "child", "--agent", "shell", "true", "--wait").code == 0


def test_it_waits_through_a_question(task: Task) -> None:
    ask = shlex.join(worker("asks", "--kind", "confirm", "Go on?"))
    asked = start("subtask", "shell", ": asks", "--intent", ask, "--json")
    child = below(task, "asks")
    wait_until(lambda: child.path.joinpath("events.jsonl").exists())
    child.has("agent.blocked", "shell-1")
    run("interact", "respond", "shell-1", "--task", "asks", "--id", "q1", "yes")
    out, _ = asked.communicate(timeout=30)
    assert json.loads(out)["subTaskStatus"] == "Success"
    assert json.loads(out)["finalAssistantMessage"] == "answer: yes"


def test_a_call_that_gives_up_leaves_the_subtask_at_work(task: Task, tmp_path: Path) -> None:
    script = shlex.join(worker("exits", 0, "--after-file", tmp_path / "gate"))
    told = run("subtask", "shell", ": slow", "--intent", script, "--wait-seconds", "0.2", "--json", check=False)
    assert (told.code, told.json) == (
        4, {"taskId": "slow", "agentId": "shell-1", "status": "still_running", "stopped": "timeout"},
    )  # fmt: skip
    (tmp_path / "gate").touch()
    below(task, "slow").ended("shell-1")


def test_a_long_answer_is_cut_and_says_where_the_whole_is(task: Task) -> None:
    told = run("subtask", "shell", ": long", "--intent", "printf 'x%.0s' $(seq 9000)", "--json").json
    assert (told["truncated"], told["size"], len(told["finalAssistantMessage"])) == (True, 9000, 4000)
    assert Path(told["path"]).read_bytes() == b"x" * 9000


# -- what it is given --------------------------------------------------------------------------------------------------


def test_artifacts_are_in_the_prompt_and_in_the_spec(task: Task, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    spawn(["sh", "-c", f"echo out; {AGENTCTL} report result --file {tmp_path / 'notes.md'}"], name="first")
    task.ended("first")
    references = [str(tmp_path / "notes.md"), "t1/first/stdout.log", "t1/first/notes.md"]
    options = [part for reference in references for part in ("--artifact", reference)]
    run("subtask", "shell", ": works", "--intent", "exit 0", *options)
    spec = json.loads((below(task, "works").agent("shell-1") / "spec.json").read_bytes())
    expected = [str(tmp_path / "notes.md"), str(task.agent("first") / "stdout.log"), str(tmp_path / "notes.md")]
    assert spec["artifacts"] == expected
    assert spec["order"]["prompt"].split("\n\n") == [
        ": works", "exit 0", "Files to work with:\n" + "\n".join(f"- {path}" for path in expected),
    ]  # fmt: skip


@pytest.mark.parametrize("reference", ["nowhere.md", "t1/nobody/stdout.log", "t1/first/../../task.yaml", ""])
def test_an_artifact_that_is_not_there_makes_no_subtask(task: Task, reference: str) -> None:
    spawn(["true"], name="first")
    task.ended("first")
    refused = run("subtask", "shell", ": works", "--artifact", reference, "--json", check=False)
    assert refused.code == 2
    assert refused.json == {
        "taskId": None, "agentId": None, "subTaskStatus": "Error",
        "failureReason": f"there is no artifact {reference!r}",
    }  # fmt: skip
    assert not below(task, "works").path.exists()


def test_what_the_task_says_of_its_workers_holds_for_its_subtasks(task: Task) -> None:
    file = task.path / "task.yaml"
    text = file.read_text()
    config = "config: {maxConcurrentAgents: 2, graceSeconds: 0.1, timeoutSeconds: 77, childrenAtEnd: leave}"
    file.write_text("\n".join(config if line.startswith("config:") else line for line in text.splitlines()) + "\n")
    run("subtask", "shell", ": child")
    child = below(task, "child")
    assert head(child)["config"] == {
        "timeoutSeconds": 77, "graceSeconds": 0.1, "childrenAtEnd": "leave",
    }  # fmt: skip
    assert json.loads((child.agent("shell-1") / "spec.json").read_bytes())["timeoutSeconds"] == 77


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (["nobody", ": x"], 3, "Unknown agent type: nobody"),
        (["shell", "  "], 2, "the title is empty"),
        (["shell", ": x", "--id", "t1"], 2, "task 't1' exists already"),
        (["shell", ": x", "--id", "../x"], 2, "'../x' is not a name"),
    ],
)
def test_what_cannot_be_meant_makes_nothing(task: Task, args: list[str], code: int, problem: str) -> None:
    refused = run("subtask", *args, check=False)
    assert (refused.code, problem in refused.err) == (code, True), refused
    assert [path.name for path in task.path.parent.iterdir()] == ["t1"]


def test_beyond_the_depth_it_is_refused_in_the_contracts_words(task: Task) -> None:
    inner = subtask_line("deeper", "true")
    spawn(["sh", "-c", subtask_line("child", inner)], name="top")
    task.ended("top")
    (answer,) = answers_of(task, "top")
    assert answer["subTaskStatus"] == "Error"
    refusal = json.loads(answer["finalAssistantMessage"])
    assert refusal["failureReason"] == "Maximum subtask nesting depth (1) exceeded. Current depth: 1."
    assert sorted(path.name for path in task.path.parent.iterdir()) == ["child", "t1"]


def test_a_call_that_is_aborted_before_it_starts_makes_no_child(task: Task) -> None:
    lock = task.path / "queue.lock"
    holder = start_holder(lock)
    asked = start("subtask", "shell", ": child", group=0)
    wait_until(lambda: below(task, "child").agent("shell-1").joinpath("spec.json").exists(), what="its worker's spec")
    asked.send_signal(signal.SIGINT)
    assert asked.wait(timeout=20) == 130
    holder.kill()
    assert not below(task, "child").path.exists()
    assert [event["type"] for event in task.events("subtask.created", "subtask.removed")] == [
        "subtask.created", "subtask.removed",
    ]  # fmt: skip
    assert run("list", "--recursive", "--json").json == []
    assert "childTaskIds" not in head(task)


def test_ctrl_c_leaves_the_subtask_running(task: Task) -> None:
    asked = start("subtask", "shell", ": child", "--intent", "sleep 60", group=0)
    child = below(task, "child")
    wait_until((child.agent("shell-1") / "worker.json").exists)
    sleeps_in_wait(asked.pid)
    asked.send_signal(signal.SIGINT)
    _, err = asked.communicate(timeout=20)
    assert (asked.returncode, "interrupted: child left running\n" in err) == (130, True)
    assert run("cancel", "shell-1", "--task", "child", "--json").json["cancelled"] is True


HOLDER = """
import fcntl, sys, time
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
open(sys.argv[2], "w").close()
time.sleep(60)
"""


def start_holder(lock: Path) -> subprocess.Popen[str]:
    """Start a process that holds the queue's lock until it is killed."""
    ready = lock.with_name("held")
    process = start_argv([sys.executable, "-c", HOLDER, str(lock), str(ready)])
    wait_until(ready.exists, what="the lock to be held")
    return process


# -- cancelled and paused parents --------------------------------------------------------------------------------------


def test_a_cancelled_parents_child_is_cancelled_and_the_answer_is_cancel(task: Task, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    call = f"{subtask_line('child', 'sleep 60')} > {answer}"
    spawn(["sh", "-c", f"{call}; sleep 60"], "--grace-seconds", "20", name="top")
    child = below(task, "child")
    wait_until((child.agent("shell-1") / "worker.json").exists)
    told = run("cancel", "top", "--json").json
    assert told["status"] == "cancelled"
    assert [(one["taskId"], one["agentInstance"], one["status"]) for one in told["withIt"]] == [
        ("child", "shell-1", "cancelled"),
    ]  # fmt: skip
    assert json.loads(answer.read_text())["subTaskStatus"] == "Cancel"
    ends = [(child.exit("shell-1") or {})["endedAt"], (task.exit("top") or {})["endedAt"]]
    assert ends == sorted(ends), "the deepest first"


def test_a_cancel_while_the_child_is_being_started_is_answered_too(task: Task, tmp_path: Path) -> None:
    """The child works already, and the call has not yet begun to wait for it."""
    answer = tmp_path / "answer"
    call = f"exec env AGENTCTL_FAILPOINT=spawn.before-roster:stop {subtask_line('child', 'sleep 60')} > {answer}"
    spawn(["sh", "-c", call], "--grace-seconds", "20", name="top")
    child = below(task, "child")
    wait_until((child.agent("shell-1") / "worker.json").exists)
    stands(leader_of(task, "top").pid)
    run("cancel", "top")
    assert json.loads(answer.read_text())["subTaskStatus"] == "Cancel"


@pytest.mark.parametrize("unbuffered", [None, "1"])
def test_an_answer_is_printed_once_and_whole_whatever_interrupts_it(task: Task, unbuffered: str | None) -> None:
    """The parent is interrupted as soon as the child has ended, which is when the call prints its answer."""
    receive, give = os.pipe()
    fcntl.fcntl(give, fcntl.F_SETPIPE_SZ, 4096)
    script = "head -c 20000 /dev/zero | tr '\\0' x"
    asked = start(
        "subtask", "shell", ": child", "--intent", script, "--json",
        group=0, stdout=give, env={"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    os.close(give)
    select.select([receive], [], [])
    asked.send_signal(signal.SIGINT)
    with open(receive, encoding="utf-8") as stream:
        answer = json.load(stream)
    assert (asked.wait(timeout=20), answer["subTaskStatus"]) == (0, "Success")


def test_a_child_that_succeeds_in_that_moment_has_succeeded(task: Task, tmp_path: Path) -> None:
    """The child ends by itself just then: it completes while it is being cancelled, or before."""
    answer, ready = tmp_path / "answer", tmp_path / "ready"
    script = f"{AGENTCTL} report result --summary done; touch {ready}; exit 0"
    call = f"{subtask_line('child', script)} > {answer}"
    spawn(["sh", "-c", f"{call}; sleep 60"], "--grace-seconds", "20", name="top")
    wait_until(ready.exists)
    run("cancel", "top")
    child = below(task, "child").exit("shell-1") or {}
    told = json.loads(answer.read_text())
    assert told["subTaskStatus"] == {"completed": "Success", "cancelled": "Cancel"}[child["status"]]


@pytest.mark.slow
def test_where_children_are_left_a_cancel_of_the_parent_leaves_them(task: Task, tmp_path: Path) -> None:
    set_config(task, maxConcurrentAgents=2, graceSeconds=0.2, childrenAtEnd="leave")
    answer = tmp_path / "answer"
    leaf = shlex.join(worker("exits", 0, "--after-file", tmp_path / "gate"))
    spawn(["sh", "-c", f"{subtask_line('child', leaf)} > {answer}; sleep 60"], name="top")
    child = below(task, "child")
    wait_until((child.agent("shell-1") / "worker.json").exists)
    run("cancel", "top")
    assert statuses() == {"top": "cancelled"}
    assert child.exit("shell-1") is None
    (tmp_path / "gate").touch()
    child.ended("shell-1")


def test_a_cancelled_parent_starts_no_subtask(task: Task, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    trap = f"trap '{subtask_line('late', 'true')}; exit 9' INT; touch {ready}; while :; do sleep 0.02; done"
    spawn(["bash", "-c", trap.replace("'true'", "true").replace("': late'", "late")], "--grace-seconds", "20", name="a")
    wait_until(ready.exists)
    run("cancel", "a")
    assert "is being cancelled: it starts nothing new" in (task.agent("a") / "stderr.log").read_text()
    assert [path.name for path in task.path.parent.iterdir()] == ["t1"]


@pytest.mark.slow
def test_a_paused_parents_wait_ends_with_an_answer(task: Task, tmp_path: Path) -> None:
    leaf = shlex.join(worker("exits", 0, "--after-file", tmp_path / "gate"))
    answer = tmp_path / "answer"
    spawn(["sh", "-c", f"{subtask_line('child', leaf)} > {answer}; {AGENTCTL} wait-all --task child"], name="top")
    child = below(task, "child")
    wait_until((child.agent("shell-1") / "worker.json").exists)
    assert run("pause", "top", "--json").json["withIt"] == ["child/shell-1"]
    assert run("list", "--task", "child", "--json").json[0]["paused"]
    run("unpause", "top")
    assert wait_for_json(answer) == {
        "taskId": "child", "agentId": "shell-1", "status": "still_running", "stopped": "paused",
    }  # fmt: skip
    (tmp_path / "gate").touch()
    task.ended("top")
    assert statuses() == {"top": "completed"}
