"""At stake: a question survives any death, the first valid answer wins, a blocked worker's clock stands still."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.life import is_settled, passes
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import Completed, alike, is_alive, run, start_argv, wait_until, worker


def asking(*options: str, name: str = "a") -> Task:
    """Start a worker that asks `Which?` with these options, and wait until it is blocked."""
    task = new_task()
    spawn(worker("asks", *options, "Which?"), name=name)
    task.has("agent.blocked", name)
    return task


def respond(name: str, answer: str, question: str = "q1", *, check: bool = True) -> Completed:
    """Answer from another process, in another folder, without naming the task."""
    return run("interact", "respond", name, "--id", question, answer, check=check, cwd="/")


def questions() -> list[dict[str, Any]]:
    """Return the rows of `interact list`, called in another folder."""
    rows: list[dict[str, Any]] = run("interact", "list", "--json", cwd="/").json
    return rows


def answer_of(task: Task, name: str = "a") -> str:
    """Wait for a worker's end, and return what its asker printed."""
    task.ended(name)
    return (task.agent(name) / "stdout.log").read_text()


def asker_of(task: Task, question: str = "q1", name: str = "a") -> int:
    """Return the pid of the process that waits for the answer."""
    body = json.loads((task.agent(name) / "interactions" / f"{question}.json").read_bytes())
    return int(body["asker"]["pid"])


def test_a_question_is_listed_answered_and_printed(root: Path) -> None:
    task = asking("--option", "api=Backend", "--option", "web=Frontend", "--default", "web")
    assert statuses() == {"a": "blocked"}
    (told,) = questions()
    assert {key: told[key] for key in ("taskId", "agentInstance", "id", "kind", "question", "default", "waiting")} == {
        "taskId": "t1", "agentInstance": "a", "id": "q1", "kind": "select", "question": "Which?", "default": "web",
        "waiting": True,
    }  # fmt: skip
    assert told["options"] == [{"id": "api", "label": "Backend"}, {"id": "web", "label": "Frontend"}]
    wait_until(task.roster, accept=lambda rows: rows == {"a": "awaiting"}, what="the roster to follow")

    given = run("interact", "respond", "a", "--id", "q1", "Backend", "--json").json
    assert given["answer"] == "api", "a label means its id"
    assert answer_of(task) == "answer: api\n"
    kinds = [event["type"] for event in task.events(of="a")]
    assert kinds == [
        "agent.queued", "agent.started", "interaction.requested", "agent.blocked", "interaction.responded",
        "agent.resumed", "agent.completed",
    ]  # fmt: skip
    assert questions() == []


@pytest.mark.parametrize(
    ("options", "wrong", "said", "right", "got"),
    [
        (["--option", "x=X"], "y", "'y' is not an option of this question", "x", "x"),
        *alike(
            (["--kind", "confirm"], "maybe", "neither yes nor no", "Y", "yes"),
            (["--kind", "confirm"], "", "neither yes nor no", "false", "no"),
            (["--kind", "input"], "n" * 100_001, "too long", " two  words\n", "two  words"),
        ),
    ],
)
def test_a_wrong_answer_is_refused_and_the_question_stays(
    root: Path, options: list[str], wrong: str, said: str, right: str, got: str
) -> None:
    task = asking(*options)
    refused = respond("a", wrong, check=False)
    assert refused.code == 2
    assert said in refused.err
    assert statuses() == {"a": "blocked"}
    assert not (task.agent("a") / "interactions" / "q1.answer.json").exists()
    respond("a", right)
    assert answer_of(task).strip().removeprefix("answer:").strip() == got


@pytest.mark.slow
def test_stale_second_and_unknown_answers_are_each_told_apart(root: Path) -> None:
    task = asking("--kind", "confirm")
    unknown = respond("a", "yes", "q9", check=False)
    assert (unknown.code, "q9" in unknown.err) == (3, True)
    respond("a", "yes")
    task.ended("a")
    nameless = [("a", "no"), ("no",)]
    late = [respond("a", "no", check=False), *(run("interact", "respond", *one, check=False) for one in nameless)]
    assert [one.code for one in late] == [1, 1, 3]
    assert "q1 of a was answered already, with 'yes' by user" in late[0].err
    assert "has ended" in late[1].err
    assert "no question is open" in late[2].err
    assert respond("nobody", "yes", check=False).code == 3
    assert len(task.events("interaction.responded")) == 1


#: Twenty processes that load everything first and answer as soon as a file exists; it prints all exit codes.
RACERS = """
import os, sys
from agentctl.errors import Refused
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.operations.where.locating import find_root, find_task
def race(number):
    while not os.path.exists(sys.argv[1]): pass
    try:
        answer_open_question(
            find_root(None), task=find_task(None), instance="a", question_id="q1", answer=f"answer-{number}"
        )
    except Refused:
        os._exit(1)
    os._exit(0)
pids = [os.fork() or race(number) for number in range(20)]
open(sys.argv[1], "w").close()
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


def test_of_twenty_that_answer_at_once_exactly_one_wins(root: Path, tmp_path: Path) -> None:
    task = asking("--kind", "input")
    out, err = start_argv([sys.executable, "-c", RACERS, str(tmp_path / "go")]).communicate(timeout=60)
    codes = json.loads(out or "[]")
    assert sorted(codes) == [0] + [1] * 19, err
    assert answer_of(task) == f"answer: answer-{codes.index(0)}\n"
    assert len(task.events("interaction.responded")) == 1


@pytest.mark.slow
def test_which_of_several_questions_must_be_said(root: Path) -> None:
    task = asking("--kind", "confirm")
    spawn(worker("asks", "--kind", "confirm", "And?"), name="b")
    task.has("agent.blocked", "b")
    unclear = run("interact", "respond", "yes", check=False)
    assert unclear.code == 2
    assert "2 questions are open: q1 of a (task t1), q1 of b (task t1)" in unclear.err
    respond("b", "no")
    respond("a", "yes")
    assert (answer_of(task), answer_of(task, "b")) == ("answer: yes\n", "answer: no\n")


def test_a_killed_asker_lets_the_clock_run_and_its_question_is_taken_up_again(root: Path) -> None:
    task = new_task()
    argv = worker("asks", "--id", "port", "--kind", "input", "Which port?")
    spawn(argv, "--retries", "2", "--retry-delay-seconds", "0.01", name="a")
    task.has("agent.blocked", "a")
    os.kill(asker_of(task, "port"), signal.SIGKILL)
    task.has("agent.blocked", "a", times=2)
    assert [event["payload"].get("reason") for event in task.events("agent.resumed")] == ["asker_gone"]
    assert len(task.events("interaction.requested")) == 1, "it is the same question"
    respond("a", "8080", "port")
    assert answer_of(task) == "answer: 8080\n"


@pytest.mark.slow
def test_an_answer_that_came_while_nobody_asked_is_there_for_who_asks_again(root: Path, tmp_path: Path) -> None:
    task = new_task()
    ask = f"{sys.executable} -m agentctl interact ask --id port --kind input 'Which port?'"
    again = f"{ask} & wait $!; while [ ! -e {tmp_path / 'gate'} ]; do sleep 0.01; done; {ask}"
    spawn(["sh", "-c", again], name="a")
    task.has("agent.blocked", "a")
    os.kill(asker_of(task, "port"), signal.SIGKILL)
    task.has("agent.resumed", "a")
    assert statuses() == {"a": "running"}
    (told,) = questions()
    assert (told["id"], told["waiting"]) == ("port", False)
    respond("a", "8080", "port")
    (tmp_path / "gate").touch()
    assert answer_of(task) == "8080\n"
    assert len(task.events("agent.blocked")) == 1


@pytest.mark.slow
def test_a_responder_killed_behind_the_answer_has_answered(root: Path) -> None:
    task = asking("--kind", "confirm")
    dies = {"AGENTCTL_FAILPOINT": "respond.after-answer"}
    killed = run("interact", "respond", "a", "--id", "q1", "yes", env=dies, check=False)
    assert killed.code == -9
    assert answer_of(task) == "answer: yes\n"
    assert respond("a", "no", check=False).code == 1


def test_the_deadline_takes_the_default_and_without_one_gives_up(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "confirm", "--default", "no", "--timeout-seconds", "0.1", "Go?"), name="a")
    spawn(worker("asks", "--kind", "confirm", "--deadline-seconds", "0.1", "Go?"), name="b")
    assert answer_of(task) == "answer: no\n"
    assert answer_of(task, "b") == ""
    assert (task.exit("b") or {})["exitCode"] == 4
    assert [event["agentInstance"] for event in task.events("interaction.expired")] == ["b"]
    assert len(task.events("agent.resumed")) == 2
    late = respond("b", "yes", check=False)
    assert late.code == 1
    assert "deadline passed" in late.err


@pytest.mark.slow
def test_a_blocked_worker_is_cancelled_with_its_asker(root: Path) -> None:
    task = asking("--kind", "confirm")
    asker = asker_of(task)
    assert run("cancel", "a", "--json").json["status"] == "cancelled"
    assert not is_alive(asker)
    late = respond("a", "yes", check=False)
    assert late.code == 1
    assert "a has ended (cancelled)" in late.err
    assert questions() == []


@pytest.mark.slow
def test_a_worker_killed_while_it_asks_asks_no_more(root: Path) -> None:
    task = asking("--kind", "confirm")
    os.kill(row("a")["pid"], signal.SIGKILL)
    task.ended("a")
    assert (row("a")["status"], row("a")["reason"]) == ("failed", "signal")
    assert questions() == []
    assert respond("a", "yes", check=False).code == 1


@pytest.mark.slow
def test_the_time_limit_stands_still_while_a_worker_is_blocked(root: Path) -> None:
    task = new_task()
    limit_s = 4.0  # long enough for a busy machine to ask in time
    spawn(worker("asks", "--kind", "confirm", "Go?"), "--timeout-seconds", str(limit_s), name="a")
    task.has("agent.blocked", "a")
    passes(limit_s + 0.3)
    assert statuses() == {"a": "blocked"}
    respond("a", "yes")
    assert answer_of(task) == "answer: yes\n"
    assert is_settled(task, "a")["status"] == "completed"


@pytest.mark.slow
def test_once_the_asker_is_gone_the_time_limit_runs(root: Path) -> None:
    task = new_task()
    ask = f"{sys.executable} -m agentctl interact ask --kind confirm Go? & wait $!; exec sleep 60"
    spawn(["sh", "-c", ask], "--timeout-seconds", "4", name="a")
    task.has("agent.blocked", "a")
    os.kill(asker_of(task), signal.SIGKILL)
    task.ended("a")
    decision = is_settled(task, "a")
    assert (decision["status"], decision["reason"]) == ("failed", "timed_out")


@pytest.mark.slow
def test_a_block_is_given_while_it_holds_and_again_when_it_is_another(root: Path) -> None:
    task = asking("--kind", "confirm", "--id", "one")
    assert run("wait-any").out == "a blocked\n"
    assert run("wait-any", "--timeout-seconds", "0.05", check=False).code == 4
    respond("a", "yes", "one")
    task.ended("a")
    assert run("wait-any", "--consumer", "late").out == "a completed\n", "a block that is over is no news"

    three = f"{sys.executable} -m agentctl interact ask --kind confirm Go? && exec sleep 100"
    spawn(["sh", "-c", three], name="c")
    task.has("agent.blocked", "c")
    respond("c", "yes")
    stale = run("wait-any", "c", "--timeout-seconds", "0.05", check=False)
    assert (stale.code, stale.out) == (4, "")
    run("cancel", "c")

    two = " && ".join([f"{sys.executable} -m agentctl interact ask --kind confirm Go?"] * 2)
    spawn(["sh", "-c", two], name="b")
    assert run("wait-any", "b").out == "b blocked\n"
    respond("b", "yes")
    task.has("agent.blocked", "b", times=2)
    assert run("wait-any", "b").out == "b blocked\n"
    respond("b", "yes", "q2")
    assert run("wait-any", "b").out == "b completed\n"


def test_ask_is_for_workers_that_live(root: Path) -> None:
    task = new_task()
    outside = run("interact", "ask", "--kind", "confirm", "Go?", check=False)
    assert outside.code == 1
    assert "interact ask is for workers" in outside.err
    spawn(["true"], name="a")
    task.ended("a")
    inside = {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a", "AGENTCTL_AGENT_DIR": str(task.agent("a"))}
    ended = run("interact", "ask", "--kind", "confirm", "Go?", env=inside, check=False)
    assert ended.code == 1
    assert "a has ended (completed)" in ended.err
    assert questions() == []
    assert task.events("interaction.requested") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--option", "a=A", "--default", "b"], "'b' is not an option"),
        *alike(
            (["--kind", "select"], "needs options"),
            (["--kind", "confirm", "--option", "a=A"], "takes no options"),
            (["--option", "a=A", "--option", "a=B"], "must differ"),
            (["--id", "../x"], "is not a name"),
        ),
    ],
)
def test_a_question_that_nobody_could_answer_is_refused(root: Path, options: list[str], said: str) -> None:
    task = new_task()
    spawn(worker("asks", *options, "Which?"), name="a")
    task.ended("a")
    assert (task.exit("a") or {})["exitCode"] == 2
    assert said in (task.agent("a") / "stderr.log").read_text()
    assert task.events("agent.blocked") == []
