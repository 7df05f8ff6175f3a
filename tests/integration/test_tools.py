"""At stake: the answers of the tools keep their contracts: bounded, attributed, within the limits."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent_world, define
from tests.life import read
from tests.steps import Task, new_task, row, statuses
from tests.support import run, start_argv, worker

Answers = list[Any]


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with an agent that is a line of shell and one agent program that needs no model."""
    made = agent_world(tmp_path, monkeypatch, cap=3)
    define(root, "echo", 'echo "said: $1"')
    return made


def calls(*made: tuple[str, dict[str, Any]], dialect: str = "all", limit_s: float = 30) -> Answers:
    """Make calls in a person's session, one after the other; return the answers."""
    process = start_argv(worker("calls_tools", dialect, "-"), stdin=subprocess.PIPE)
    out, err = process.communicate(json.dumps([(*call, limit_s) for call in made]), timeout=50)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()][1:]


def within(name: str, *made: tuple[str, dict[str, Any]], dialect: str = "all") -> tuple[dict[str, str], Answers]:
    """Make calls inside a worker; return the tools that it was offered, and the answers."""
    run("spawn", "--name", name, "--", *worker("calls_tools", dialect, json.dumps([(*call, 30) for call in made])))
    run("wait", name)
    lines = [json.loads(line) for line in run("logs", name).out.splitlines()]
    return lines[0], lines[1:]


def test_agents_are_started_waited_for_and_told_once(task: Task) -> None:
    started, first, again, both = calls(
        ("spawn_agent", {"agent_type": "echo", "message": "hello", "id": "e1"}),
        ("wait", {"ids": ["e1", "nobody"]}),
        ("wait_agent", {"targets": ["e1"], "timeout": 20000}),
        ("spawn_agent", {"subagent_type": "echo", "prompt": "there", "run_in_background": False}),
    )
    assert started["id"] == "e1"
    assert started["status"] in {"running", "queued"}
    assert first["status"]["nobody"] == "not_found"
    assert again["status"] == {"e1": "completed"}
    assert again["results"]["e1"] == {"output": "said: hello", "success": True, "turnsUsed": 0}
    assert (both["status"], both["output"]) == ("completed", "said: there")


def test_a_call_that_is_made_again_with_its_key_does_nothing_twice(task: Task) -> None:
    start = ("spawn_agent", {"agent_type": "general", "instruction": "say hello", "keep": True, "key": "one"})
    tell = ("send_input", {"id": "general-1", "message": "say more", "key": "two"})
    again = ("send_input", {"id": "general-1", "message": "say much", "key": "three"})
    delegated = ("task", {"objective": "there", "subagent_type": "echo", "key": "four"})
    close = ("close_agent", {"id": "general-1"})
    told = calls(start, start, tell, tell, close, tell, again, again, close, delegated, delegated)
    assert told[0]["id"] == told[1]["id"] == "general-1"
    assert told[2] == told[3] == told[5]
    assert told[6]["submission_id"] == told[7]["submission_id"] == "general-1-1"
    assert told[9]["task_id"] == told[10]["task_id"]
    assert sorted(statuses()) == ["echo-1", "general-1", "general-1-1"]
    (refused,) = calls(("send_input", {"id": "general-1", "message": "say else", "key": "two"}))
    assert refused == {
        "error": "the key 'two' has sent m1 to general-1 already, and that request differs in text",
        "hint": "choose another `key`; general-1 is what this one did",
    }


def test_a_subtask_whose_answer_was_lost_is_one_subtask(task: Task) -> None:
    look = ("create_subtask_echo", {"title": "Look", "intent": "around", "key": "k"})
    first, again, other, spawned = calls(
        look, look,
        ("create_subtask_echo", {"title": "Look", "intent": "away", "key": "k"}),
        ("spawn_agent", {"agent_type": "echo", "instruction": "hello", "key": "k"}),
    )  # fmt: skip
    assert first == again
    assert first["subTaskStatus"] == "Success"
    assert other["failureReason"].endswith("the key 'k' has made the sub-task look already, and that request differs in"
                                           " intent")  # fmt: skip
    assert other["hint"] == spawned["hint"] == "choose another `key`; look is what this one made"
    assert spawned["error"].endswith("differs in what it asks for")
    assert sorted(one["taskId"] for one in run("tasks", "--json").json) == ["look", "t1"]


def test_a_subtask_answers_also_where_its_agent_is_no_more(task: Task, root: Path) -> None:
    definition = root / "agents" / "echo.md"
    define(root, "echo", f"rm {definition}; echo gone")
    (answer,) = calls(("create_subtask_echo", {"title": "Look"}))
    assert not definition.exists()
    assert answer.get("subTaskStatus") == "Success", answer


@pytest.mark.slow
def test_an_answer_is_bounded_whatever_a_model_sends(task: Task) -> None:
    """A long wrong argument must not fill the model's context a second time, in the error."""
    long = "x" * 60_000
    unknown, typed, started, _, ended, delegated, titled = calls(
        ("spawn_agent", {"instruction": "x", "agent_type": long}),
        ("send_input", {"id": "a", long: long}),
        ("spawn_agent", {"agent_type": "echo", "instruction": long + long + long, "id": "e1"}),
        ("wait", {"ids": ["e1"]}),
        ("wait", {"ids": ["e1", "../no name"]}),
        ("task", {"objective": long, "subagent_type": "echo"}),
        ("create_subtask_echo", {"title": long}),
    )
    assert started["id"] == "e1"
    for answer in (unknown, typed, ended, delegated, titled):
        assert len(json.dumps(answer)) < 6000
    assert unknown["error"].startswith("Unknown agent type: xxx")
    assert ended["status"]["../no name"] == "not_found", "one name that is none fails no other"
    assert ended["results"]["e1"]["reason"] == "not_started"
    assert "promptOnStdin" in ended["results"]["e1"]["error"], "why, and what to do"
    assert delegated["objective"].startswith("xxx")
    assert titled["subTaskStatus"] == "Error"
    assert "title" in titled["failureReason"]
    assert "intent" in titled["hint"]


@pytest.mark.slow
def test_a_cursor_acknowledges_and_a_limit_stops_nobody(task: Task, root: Path, tmp_path: Path) -> None:
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done")
    run("spawn", "--agent", "echo", "--name", "by-hand", "hello")
    begun = ("spawn_agent", {"agent_type": "held", "message": "x", "id": "h1"})
    calls(("spawn_agent", {"agent_type": "echo", "message": "hello", "id": "e1"}), ("wait", {"ids": ["e1"]}), begun)
    # Another session, which has started nothing, finds the agents of the one before it.
    answers = calls(("wait", {}), ("wait", {"timeout_ms": 50}), ("wait", {"ids": ["h1"], "timeout_ms": 50}))
    assert answers[0]["status"] == {"e1": "completed"}
    assert answers[0]["still_running"] == ["h1"]
    assert answers[1]["status"] == {"e1": "completed"}, "without the cursor all of it is told again"
    assert (answers[2]["status"], answers[2]["timed_out"]) == ({}, True)
    assert statuses()["h1"] == "running"
    (tmp_path / "gate").touch()
    run("wait", "h1")


def test_a_task_answers_as_its_contract_says(task: Task) -> None:
    done, unknown, empty = calls(
        ("task", {"objective": "look", "subagent_type": "echo", "context": {"path": "src"}}),
        ("task", {"objective": "look", "subagent_type": "nobody"}),
        ("task", {"subagent_type": "echo"}),
    )
    assert list(done) == [
        "task_id", "objective", "agent_type", "status", "result", "error", "duration", "started_at", "completed_at",
    ]  # fmt: skip
    assert (done["status"], done["agent_type"], done["error"]) == ("completed", "echo", None)
    assert done["result"] == 'said: look\n\nContext:\n{\n  "path": "src"\n}'
    assert unknown["status"] == "failed"
    assert "Unknown agent type: nobody" in unknown["error"]
    assert empty["error"] == "task lacks 'objective'"


@pytest.mark.slow
def test_parallel_tasks_keep_their_order_and_one_bad_one_fails_alone(task: Task, root: Path) -> None:
    define(root, "fails", "echo so far; exit 3")
    define(root, "late", "sleep 60")
    items = [
        {"objective": "one", "subagent_type": "echo"},
        {"objective": "two", "subagent_type": "fails"},
        {"objective": "three", "argv": ["touch", "owned"]},
        "four",
    ]
    answer, late = calls(
        ("task_parallel", {"tasks": items}),
        ("task", {"objective": "five", "subagent_type": "late", "timeout_seconds": 0.1}),
    )
    told = [(one["objective"], one["status"]) for one in answer["results"]]
    assert told == [("one", "completed"), ("two", "failed"), ("three", "failed"), ("", "failed")]
    assert late["status"] == "timeout"
    assert "exit_code" in answer["results"][1]["error"]
    assert "argv" in answer["results"][2]["error"], "a model runs no commands outside of its sandbox"
    assert not Path("owned").exists()


@pytest.mark.slow
def test_a_subtask_answers_at_its_end(task: Task, root: Path) -> None:
    define(root, "fails", "exit 3")
    good, bad, odd = calls(
        ("create_subtask_echo", {"title": "Look", "intent": "around"}),
        ("create_subtask_fails", {"title": "Fail"}),
        ("create_subtask_echo", {"title": " "}),
    )
    assert (good["subTaskStatus"], good["finalAssistantMessage"]) == ("Success", "said: Look\n\naround")
    assert read(root / "tasks" / good["taskId"] / "config.json")["parentTaskId"] == "t1"
    assert bad["subTaskStatus"] == "Error"
    assert "exit_code" in bad["failureReason"]
    assert odd["error"] == "create_subtask_echo.title is empty"


@pytest.mark.slow
def test_a_call_whose_time_is_over_says_who_works_and_wait_takes_it_up(task: Task, root: Path, tmp_path: Path) -> None:
    define(root, "held", f"while ! [ -e {tmp_path / 'gate'} ]; do sleep 0.02; done; echo at last")
    (still,) = calls(("create_subtask_held", {"title": "Wait"}), limit_s=0.2)
    assert still["still_running"] is True
    (name,) = still["ids"]
    assert still["status"][name] in {"queued", "running"}
    (tmp_path / "gate").touch()
    (ended,) = calls(("wait", {"ids": [name]}))
    assert ended["status"] == {name: "completed"}
    assert ended["results"][name]["output"] == "at last"


@pytest.mark.slow
def test_results_are_bounded_and_name_the_whole(task: Task, root: Path) -> None:
    define(root, "long", "head -c 100000 /dev/zero | tr '\\0' x")
    started, task, parallel, subtask, waited = calls(
        ("spawn_agent", {"agent_type": "long", "message": "go", "id": "l1", "run_in_background": False}),
        ("task", {"subagent_type": "long", "objective": "go"}),
        ("task_parallel", {"tasks": [{"subagent_type": "long", "objective": "go"}]}),
        ("create_subtask_long", {"title": "Go"}),
        ("wait", {"ids": ["l1"]}),
    )
    texts = {
        "output": [started, waited["results"]["l1"]],
        "result": [task, parallel["results"][0]],
        "finalAssistantMessage": [subtask],
    }
    for key, answers in texts.items():
        for answer in answers:
            assert answer[key] == "x" * 4000
            assert (answer["truncated"], answer["size"]) == (True, 100_000)
            assert answer["sha256"] == hashlib.sha256(b"x" * 100_000).hexdigest()
            assert Path(answer["path"]).read_bytes() == b"x" * 100_000


@pytest.mark.slow
def test_a_question_is_data_and_an_input_answers_it(task: Task) -> None:
    asked, sent, ended = calls(
        ("spawn_agent", {"message": "question", "id": "q", "run_in_background": False}),
        ("send_input", {"id": "q", "message": "blue"}),
        ("wait", {"ids": ["q"]}),
        limit_s=4,
    )
    assert asked["still_running"] is True
    assert asked["questions"]["q"]["question"].startswith("Which colour?")
    assert [option["label"] for option in asked["questions"]["q"]["options"]] == ["red: warm", "blue: cold"]
    assert sent["answered"]
    assert ended["results"]["q"]["output"] == "blue"


@pytest.mark.slow
def test_a_kept_agent_takes_input_until_it_is_closed(task: Task) -> None:
    answers = calls(
        ("spawn_agent", {"message": "say one", "id": "k", "keep": True}),
        ("wait", {"ids": ["k"]}),
        ("send_input", {"id": "k", "message": "say two"}),
        ("wait", {"ids": ["k"]}),
        ("close_agent", {"target": "k"}),
        ("close_agent", {"id": "k"}),
    )
    idle = answers[1]["results"]["k"]
    assert answers[1]["status"] == {"k": "blocked"}
    assert (idle["output"], idle["success"], idle["question"]["idle"]) == ("one", True, True)
    assert answers[4] == {"previous_status": "blocked", "status": "completed"}, "one that has answered ends well"
    assert answers[5] == {"previous_status": "completed"}
    assert statuses() == {"k": "completed"}


@pytest.mark.slow
def test_an_idle_agent_is_marked_where_questions_are_listed(task: Task) -> None:
    calls(("spawn_agent", {"message": "say one", "id": "k", "keep": True}), ("wait", {"ids": ["k"]}))
    (row,) = run("interact", "list", "--json").json
    assert row["idle"] is True
    calls(("close_agent", {"id": "k"}))


def test_a_follow_up_to_an_ended_agent_goes_on_under_its_id(task: Task) -> None:
    _, sent, after = calls(
        ("spawn_agent", {"message": "say one", "id": "a1", "run_in_background": False}),
        ("send_input", {"target": "a1", "message": "argv"}),
        ("wait", {"ids": ["a1"]}),
        dialect="codex",
    )
    assert (sent["id"], sent["instance"]) == ("a1", "a1-1")
    assert "--resume=" in after["results"]["a1"]["output"], "from its own history"


def test_a_message_is_left_while_a_question_is_open(task: Task) -> None:
    _, asked, left, sent, ended = calls(
        ("spawn_agent", {"message": "question", "id": "q"}),
        ("wait", {"ids": ["q"]}),
        ("send_input", {"id": "q", "message": "say soon", "as_message": True}),
        ("send_input", {"id": "q", "message": "blue"}),
        ("wait", {"ids": ["q"], "cursor": "none"}),
    )
    assert asked["results"]["q"]["question"]["other"] is True, "free text is taken too"
    assert left == {"submission_id": "m1"}
    assert sent["answered"]
    assert ended["results"]["q"]["output"] in {"blue", "soon"}
    assert [row["payload"]["answer"] for row in task.events("interaction.responded")] != ["say soon"]


@pytest.mark.slow
def test_an_ended_agent_continues_under_its_id(task: Task) -> None:
    answers = calls(
        ("spawn_agent", {"message": "say one", "id": "r", "model": "big", "run_in_background": False}),
        ("resume_agent", {"id": "r", "message": "argv"}),
        ("wait", {"ids": ["r"]}),
        ("list_agents", {}),
    )
    resumed = answers[1]
    assert resumed["id"] == "r"
    assert resumed["instance"] != "r"
    told = answers[2]["results"]["r"]
    assert (told["instance"], "--model=big" in told["output"]) == (resumed["instance"], True)
    (row,) = answers[3]
    assert (row["id"], row["instance"], row["status"]) == ("r", resumed["instance"], "completed")


@pytest.mark.slow
def test_a_follow_up_keeps_the_id_and_the_path_of_its_agent(task: Task) -> None:
    *_, by_id, by_run = calls(
        ("spawn_agent", {"message": "say one", "id": "a1", "run_in_background": False}),
        ("send_input", {"id": "a1", "message": "say two"}),
        ("wait", {"ids": ["a1"]}),
        ("list_agents", {"path_prefix": "a1"}),
        ("list_agents", {"path_prefix": "a1-1"}),
    )
    assert [(one["id"], one["path"], one["instance"]) for one in by_id] == [("a1", "a1", "a1-1")]
    assert by_run == by_id, "the name of its run is understood too"


@pytest.mark.slow
def test_a_worker_sees_its_own_and_is_held_to_the_depth(task: Task, root: Path) -> None:
    run("spawn", "--agent", "echo", "--name", "other", "hello")
    run("wait", "other")
    offered, answers = within(
        "w1",
        ("spawn_agent", {"agent_type": "echo", "message": "hello", "id": "child"}),
        ("wait", {}),
        ("close_agent", {"id": "other"}),
        ("list_agents", {}),
        ("report", {"percent": 50, "text": "half"}),
        ("report", {}),
    )
    assert {"spawn_agent", "task", "create_subtask_echo", "ask_user", "report"} <= set(offered)
    assert "At most 3 work at once" in offered["spawn_agent"]
    assert "none can start agents" in offered["spawn_agent"]
    assert "- echo: Of a test." in offered["spawn_agent"]
    assert answers[1]["status"] == {"child": "completed"}
    assert answers[2]["error"] == "no worker 'other' below w1"
    assert [(one["id"], one["parent"], one["path"]) for one in answers[3]] == [("child", "w1", "w1/child")]
    assert answers[4]["progress"]["percent"] == 50
    assert "has no argument" in answers[5]["error"]
    assert row("child")["depth"] == 1


def test_an_id_is_a_workers_or_a_sub_tasks_and_never_both(task: Task) -> None:
    spawned = {"agent_type": "echo", "message": "x", "run_in_background": False}
    _, made, refused, second, told = calls(
        ("spawn_agent", {**spawned, "id": "sub"}),
        ("create_subtask_echo", {"title": "Sub"}),
        ("spawn_agent", {**spawned, "id": "sub-2"}),
        ("create_subtask_echo", {"title": "Echo 1"}),
        ("spawn_agent", spawned),
    )
    assert made["taskId"] == "sub-2"
    assert refused["error"] == "'sub-2' is a sub-task's id already"
    assert refused["hint"] == "choose another `id`: a name cannot be used again"
    assert (second["taskId"], told["id"]) == ("echo-1", "echo-2")


def test_agents_of_sub_tasks_have_paths_of_their_own(task: Task) -> None:
    spawned = {"agent_type": "echo", "message": "x", "run_in_background": False}
    *_, every, one = calls(
        ("create_subtask_echo", {"title": "Sub"}), ("spawn_agent", {**spawned, "id": "echo-1"}), ("list_agents", {}),
        ("list_agents", {"path_prefix": "echo-1"}),
    )  # fmt: skip
    assert {row["id"]: row["path"] for row in every} == {"echo-1": "echo-1", "sub": "sub/echo-1"}
    assert [row["id"] for row in one] == ["echo-1"]
    *_, waited, below = within("w1", ("create_subtask_echo", {"title": "Below"}), ("wait", {}), ("list_agents", {}))[1]
    assert [(row["id"], row["path"]) for row in below] == [("below", "w1/below/echo-1")]
    assert waited["status"] == {"below": "completed"}, "a wait that names none has the ids of the list"


@pytest.mark.slow
def test_at_the_limit_nothing_that_starts_is_offered_and_calls_are_refused(root: Path) -> None:
    new_task(cap=2, depth=0)
    define(root, "echo", "echo")
    offered, answers = within(
        "w1",
        ("spawn_agent", {"agent_type": "echo", "message": "x"}),
        ("create_subtask_echo", {"title": "x"}),
        ("task", {"objective": "x", "subagent_type": "echo"}),
    )
    assert set(offered) == {"send_input", "wait", "close_agent", "list_agents", "ask_user", "report"}
    assert answers[0]["error"].startswith("Maximum subagent depth exceeded")
    assert answers[1] == {
        "taskId": None, "agentId": None, "subTaskStatus": "Error",
        "failureReason": "Maximum subtask nesting depth (0) exceeded. Current depth: 0.",
        "hint": "do the work here, or leave it to whoever started you: only a person lifts this limit",
    }  # fmt: skip
    assert "Maximum subagent depth exceeded" in answers[2]["error"]
    assert statuses() == {"w1": "completed"}


@pytest.mark.slow
def test_a_parent_lends_its_slot_while_its_call_waits(root: Path) -> None:
    new_task(cap=1)
    define(root, "echo", 'echo "said: $1"')
    _, answers = within("w1", ("task", {"objective": "deep", "subagent_type": "echo"}), dialect="claude")
    assert answers[0]["result"] == "said: deep"


@pytest.mark.slow
def test_a_worker_asks_the_user_and_takes_its_question_up_again(task: Task) -> None:
    question = {"question": "Which?", "options": ["red", {"id": "b", "label": "blue"}]}
    made = [("ask_user", question, 0.3), ("ask_user", {**question, "question_id": "q1"}, 30)]
    run("spawn", "--name", "w1", "--", *worker("calls_tools", "codex", json.dumps(made)))
    task.has("agent.blocked", "w1", times=2)
    run("interact", "respond", "w1", "--id", "q1", "blue")
    run("wait", "w1")
    first, second = [json.loads(line) for line in run("logs", "w1").out.splitlines()][1:]
    assert (first["still_running"], first["question_id"]) == (True, "q1")
    assert (second["answer"], second["by"]) == ("b", "user")


@pytest.mark.slow
def test_dialects_offer_what_they_are_named_after(task: Task) -> None:
    offered = {dialect: set(within(f"d-{dialect}", dialect=dialect)[0]) for dialect in ("codex", "claude", "subtask")}
    own = {"ask_user", "report"}
    beside = {"wait", "send_input", "close_agent"}
    assert offered["codex"] == {"spawn_agent", "resume_agent", "list_agents"} | beside | own
    assert offered["claude"] == {"task", "task_parallel"} | beside | own
    subtasks = {f"create_subtask_{name}" for name in ("echo", "explore", "general", "plan")}
    assert offered["subtask"] == subtasks | beside | own
