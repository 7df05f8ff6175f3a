"""At stake: a line about a worker is one line, cannot command a terminal, and is said when it becomes true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.need import Need
from agentctl.domain.worker_row import BLANK
from agentctl.interfaces.commands.watch.sentences import SaidFacts, is_at_or_below, sentences_of
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, Glance

ROOT = Root(Path("/nowhere/.agentctl"))
HOSTILE = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x1b\n\r\x9b\u202e"), max_size=300)
STATUSES = st.sampled_from(["queued", "running", "blocked", "completed", "failed", "cancelled", "\x1b[2J"])


def worker(instance: str = "a", task: str = "t", need: Need = Need.WORKING, **more: Any) -> FleetWorker:
    """Return a worker of a fleet; `questions` and `idle` are not keys of its row."""
    questions, idle = more.pop("questions", ()), more.pop("idle", None)
    row = {**BLANK, "agentInstance": instance, "status": "running", **more}
    return FleetWorker(ROOT.task(task), row, need, questions, idle, 0)  # type: ignore[arg-type]


def texts(one: FleetWorker) -> list[str]:
    return [fact.text for fact in sentences_of(one)]


@given(STATUSES, HOSTILE, HOSTILE, HOSTILE, st.sampled_from(Need))
def test_whatever_a_stranger_wrote_becomes_one_printable_line(
    status: str, reason: str, message: str, question: str, need: Need
) -> None:
    row: dict[str, Any] = {"status": status, "reason": reason, "message": message, "signal": question, "health": reason}
    for one in (worker(need=need, **row), worker(questions=(Question("q1", "input", question),), **row)):
        (text,) = texts(one)
        assert plain(text) == text
        assert len(text) < 3000


def test_a_long_question_is_cut_and_an_empty_one_has_a_mark() -> None:
    step = "agentctl answer a --task t --root /nowhere/.agentctl --id q1 ANSWER (ANSWER: any text)"
    asked = Question("q1", "input", "\n  Which\nof these")
    assert texts(worker(questions=(asked,))) == [f"a of t needs you: Which {step}"]
    assert texts(worker(questions=(Question("q1", "input", " \n"),))) == [f"a of t needs you: ? {step}"]
    (long,) = texts(worker(questions=(Question("q1", "input", "x" * 9000),)))
    assert long == f"a of t needs you: {'x' * 197}... {step}"


def test_each_fact_is_new_once_and_again_after_it_was_not_true() -> None:
    said = SaidFacts()
    one, two = Question("q1", "input", "one?"), Question("q2", "input", "two?")
    steps = [
        (worker(), ["running"]),
        (worker(), []),
        (worker(questions=(one,)), ["one?"]),
        (worker(questions=(one, two)), ["two?"]),
        (worker(questions=(two,)), []),
        (worker(), ["running"]),
        (worker(paused=True), ["paused"]),
        (worker(status="failed", reason="exit_code", exitCode=3, message="why"), ["failed (exit_code 3): why"]),
    ]
    for now, words in steps:
        found = said.new(now)
        assert len(found) == len(words)
        assert all(word in fact.text for word, fact in zip(words, found, strict=True))
    said.forget_others(Glance({}, {}, {}, is_partial=False))
    assert len(said.new(steps[-1][0])) == 1


def test_a_task_is_within_those_above_it_even_where_forged_ones_form_a_circle() -> None:
    def below(name: str, parent: str | None) -> FleetTask:
        known: dict[str, Any] = {**dict.fromkeys(FleetTask._fields), "task": ROOT.task(name), "parent": parent}
        return FleetTask(**known)

    parents = {"top": None, "mid": "top", "low": "mid", "x": "y", "y": "x", "lost": "gone"}
    tasks = {name: below(name, parent) for name, parent in parents.items()}
    glance = Glance(tasks, {}, {}, is_partial=False)
    found = {name for name in parents if is_at_or_below(glance, worker(task=name), "top")}
    assert found == {"top", "mid", "low"}
    assert {name for name in parents if is_at_or_below(glance, worker(task=name), None)} == set(parents)
    assert isinstance(ROOT.task("top"), TaskDir)
    assert WorkerId("top", "a") == worker(task="top").id
