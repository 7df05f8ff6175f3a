"""At stake: whatever an agent program asks, a person sees it and can answer it, and the answer reaches the asker."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.agent_steps import agent, agent_world, blocked, ends, plays, rebuilds_the_same
from tests.life import set_config
from tests.steps import Task, statuses
from tests.support import alike, run, start, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def asked(task: Task, count: int) -> list[dict[str, Any]]:
    """Wait until an agent has asked `count` questions; return those that are open."""
    task.has("interaction.requested", "a", times=count)
    found: list[dict[str, Any]] = run("interact", "list", "--json").json
    return found


TWO = """
got = {}
def take(name):
    def told(answer):
        got[name] = answer["behavior"]
        if len(got) == 2:
            me.answer(" ".join(f"{key}={got[key]}" for key in sorted(got)))
    return told
me.ask("Bash", {"command": "first"}, take("first"))
me.ask("Bash", {"command": "second"}, take("second"))
"""


@pytest.mark.slow
def test_two_at_once_are_answered_in_the_other_order(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, TWO))
    first, second = asked(task, 2)
    assert [one["arguments"]["command"] for one in (first, second)] == ["first", "second"]
    run("interact", "respond", "a", "--id", second["id"], "deny")
    assert statuses() == {"a": "blocked"}
    run("interact", "respond", "a", "--id", first["id"], "allow")
    assert ends()["result"]["finalMessage"] == "first=allow second=deny"
    rebuilds_the_same(task)


@pytest.mark.slow
def test_two_people_answer_two_questions_at_the_same_time(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, TWO))
    questions = asked(task, 2)
    said = [(one, word) for one in questions for word in ("allow", "deny")]
    answers = [start("interact", "respond", "a", "--id", one["id"], word) for one, word in said]
    done = [
        (one["arguments"]["command"], word)
        for (one, word), answer in zip(said, answers, strict=True)
        if answer.wait(20) == 0
    ]
    assert [command for command, _ in done] == ["first", "second"]
    assert ends()["result"]["finalMessage"] == " ".join(f"{command}={word}" for command, word in done)


@pytest.mark.slow
def test_a_question_that_is_taken_back_is_closed(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    agent(plays(tmp_path, f"""
import os, time
name = me.ask("Bash", {{"command": "x"}}, "permission")
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
say(type="control_cancel_request", request_id=name)
me.answer("on my own")
"""))  # fmt: skip
    question = blocked()
    gate.touch()
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "on my own")
    late = run("interact", "respond", "a", "--id", question["id"], "allow", check=False)
    assert (late.code, "withdrawn" in late.err) == (1, True)
    rebuilds_the_same(task)


@pytest.mark.parametrize("labels", [["-rf", "", "a,b", "7"], *alike(["a", "a "], ["\x1b[31mred", "two\nlines"])])
@pytest.mark.slow
def test_options_with_odd_names_can_be_told_apart_and_answered(task: Task, tmp_path: Path, labels: list[str]) -> None:
    agent(plays(tmp_path, f"""
options = [{{"label": label, "description": ""}} for label in {labels!r}]
one = {{"question": "Which?", "header": "W", "options": options, "multiSelect": True}}
me.ask("AskUserQuestion", {{"questions": [one]}}, "question")
"""))  # fmt: skip
    question = blocked()
    ids = [option["id"] for option in question["options"]]
    assert ids == [str(number) for number in range(1, len(labels) + 1)]
    assert "\x1b" not in run("interact", "list").out
    run("interact", "respond", "a", "--id", "q1", f"1,{len(labels)}")
    assert ends()["result"]["finalMessage"] == f"{labels[0]}, {labels[-1]}"


@pytest.mark.slow
def test_a_free_answer_is_one_too(task: Task) -> None:
    agent("question")
    blocked()
    run("interact", "respond", "a", "--id", "q1", "neither; mauve, or\nnothing")
    assert ends()["result"]["finalMessage"] == "neither; mauve, or\nnothing"


SHAPES = {
    "one long text": "{'command': 'x' * (10 << 20)}",
    "many keys": "{f'key{n}': 'value' for n in range(200_000)}",
    "a long key": "{'k' * (10 << 20): 1}",
    "deep": "json.loads('{\"a\": ' + '[' * 900 + ']' * 900 + '}')",
    "half a surrogate": "{'command': '\\ud800 x', 'secret': 'hunter2'}",
    "no object": "{}",
}


@pytest.mark.parametrize("shape", ["no object", *alike(*(shape for shape in SHAPES if shape != "no object"))])
def test_arguments_of_any_shape_are_asked_about_in_a_size_that_a_person_reads(
    task: Task, tmp_path: Path, shape: str
) -> None:
    agent(plays(tmp_path, f"import json; me.ask('Bash', {SHAPES[shape]}, 'permission')"))
    question = blocked()
    assert len(json.dumps(question)) < 100_000
    if shape == "half a surrogate":
        assert question["arguments"]["secret"] == "hunter2"  # The person decides about this.
    run("interact", "list")
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert ends()["result"]["finalMessage"] == "allowed"
    rebuilds_the_same(task)


DENIED = """
me.ask("Bash", {"command": "rm"}, lambda answer: me.answer(answer["message"]))
"""


def test_why_it_was_denied_reaches_the_model(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, DENIED))
    blocked()
    refused = run("interact", "respond", "a", "--id", "q1", "yes", "--reason", "because", check=False)
    assert (refused.code, "a reason goes only with the denial" in refused.err) == (2, True)
    run("interact", "respond", "a", "--id", "q1", "no", "--reason", "only \u00e4fter the release")
    assert ends()["result"]["finalMessage"] == "The user denied this. only \u00e4fter the release"
    rebuilds_the_same(task)
    rules = json.dumps([{"tool": "Bash", "pattern": "*", "answer": "deny"}])
    agent(plays(tmp_path, DENIED), "--permissions", rules, name="b")
    assert ends("b")["result"]["finalMessage"] == "A rule denies this to you; no user was asked."


def test_an_answer_that_nobody_will_read_is_not_taken(task: Task, tmp_path: Path) -> None:
    set_config(task, graceSeconds=20)
    agent(f"permit {tmp_path / 'x'}")
    question = blocked()
    driver = run("show", "a", "--json").json["worker"]["pid"]
    wait_until(lambda: len(psutil.Process(driver).children()) == 1)  # The server's preparation has ended.
    (child,) = psutil.Process(driver).children()
    child.suspend()
    psutil.Process(driver).kill()
    wait_until(lambda: not run("interact", "list", "--json").json or not is_waited_for(question))
    refused = run("interact", "respond", "a", "--id", question["id"], "allow", check=False)
    assert refused.code == 1
    assert "nobody waits for the answer" in refused.err or "has ended" in refused.err
    with contextlib.suppress(psutil.NoSuchProcess):
        child.kill()
    assert ends()["status"] == "failed"


def is_waited_for(question: dict[str, Any]) -> bool:
    return any(one["id"] == question["id"] and one["waiting"] for one in run("interact", "list", "--json").json)
