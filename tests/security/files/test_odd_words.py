"""At stake: whatever JSON a worker writes into a file of its own, nobody's command ends over it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import check_answer, question_in
from agentctl.errors import AgentctlError
from agentctl.mcp.forms import form_of
from tests.integration.test_mcp import call, talk
from tests.life import forge
from tests.steps import Task, new_task, spawn
from tests.support import run, worker

#: Half of a character that takes two in UTF-16: what is left where a text was cut between them.
HALF = "\ud83d"
HUGE = 10**400
#: What no field of a file should be, and every field can be.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 5, HUGE, float("inf"), float("nan"), "", "x", HALF, "\0", "../x", [], [5], [{}], [["a"]], {}]
)
JSON = ODD | st.lists(ODD, max_size=2) | st.dictionaries(st.sampled_from(["id", "label", "path", "error"]), ODD)

#: Questions that cannot be shown or answered, each by another field.
NO_QUESTIONS: dict[str, dict[str, Any]] = {
    "options": {"options": [5]},
    "label": {"options": [{"id": "a"}]},
    "question": {"question": ["Which?"]},
    "kind": {"kind": {}},
    "tool": {"tool": ["Bash"]},
    "arguments": {"tool": "Bash", "arguments": [1]},
}


def asking(*names: str) -> Task:
    """Start workers that ask `Which?`, and wait until they are blocked."""
    task = new_task()
    for name in names:
        spawn(worker("asks", "--option", "a=A", "Which?"), name=name)
    for name in names:
        task.has("agent.blocked", name)
    return task


def question_file(task: Task, name: str) -> Path:
    return task.agent(name) / "interactions" / "q1.json"


@pytest.mark.parametrize("changes", NO_QUESTIONS.values(), ids=NO_QUESTIONS)
def test_a_question_that_is_none_hides_no_other(root: Path, changes: dict[str, Any]) -> None:
    task = asking("odd", "good")
    forge(question_file(task, "odd"), **changes)
    told = run("interact", "list")
    assert [line.split("\t")[1] for line in told.out.splitlines()] == ["good"]
    assert "holds no question" in told.err
    assert "holds no question" in run("interact", "respond", "odd", "--id", "q1", "a", check=False).err
    assert run("interact", "respond", "a").out.startswith("answered q1 of good")
    run("cancel", "odd")


def test_a_question_that_is_none_ends_no_server(root: Path) -> None:
    task = asking("odd")
    forge(question_file(task, "odd"), options=[5])

    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def to(client: Any) -> None:
        for _ in range(2):
            told = await call(client, "wait", ids=["odd"], timeout_ms=100)
            assert told["status"] == {"odd": "blocked"}

    talk(to, elicitation_callback=fill)
    run("cancel", "odd")


def test_an_answer_that_is_none_is_told_to_its_asker(root: Path) -> None:
    task = asking("odd")
    (task.agent("odd") / "interactions" / "q1.answer.json").write_text("{}", encoding="ascii")
    task.ended("odd")
    said = (task.agent("odd") / "stderr.log").read_text(encoding="utf-8")
    assert "q1.answer.json holds no answer" in said


QUESTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["select", "confirm", "input"]) | JSON,
        "question": st.sampled_from(["Which?", HALF]) | JSON,
    },
    optional={
        key: st.sampled_from([[{"id": HALF, "label": HALF}], HALF, {"command": HALF}]) | JSON
        for key in ("options", "default", "tool", "arguments", "isCut", "means", "multiple", "other", "deadlineSeconds")
    },
)


@given(QUESTIONS, st.text(max_size=3))
def test_every_question_is_none_or_can_be_shown_and_answered(value: dict[str, Any], answer: str) -> None:
    question = question_in(value)
    if question is not None:
        form = form_of(Root("/nowhere/.agentctl").task("t1").agent("a"), {"id": "q1", **question})
        json.dumps([form.message, form.schema], ensure_ascii=False).encode()
        with contextlib.suppress(AgentctlError):
            check_answer(question, answer)
