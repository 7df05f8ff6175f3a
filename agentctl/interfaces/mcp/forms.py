"""Translates questions of workers into MCP's forms, and filled forms into answers.

It takes the answers that are offered where so much of a question is shown (`domain.question`), and says where the rest
is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.question import LONGEST_LABEL, Question, offered, question_within, safe, takes_text
from agentctl.domain.text.plaintext import beginning, plain
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.supervision.worker.questions import is_open
from agentctl.tools.definition import Pending
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope

FIELD = "answer"
#: In characters as shown.
_LONGEST = 2000


class Form(NamedTuple):
    """A form that the user of a client reads and fills in."""

    message: str
    schema: dict[str, Any]
    #: Value in the form -> the answer that it means; None: any text; empty: no answer is possible here.
    answers: Mapping[str | bool, str] | None


def question_key(worker: WorkerDir, question: Question) -> str:
    """Return the name of a question, unique in its call: a question that replaces it has another name."""
    text = json.dumps(question.to_json(), sort_keys=True).encode()
    return f"{worker.task.id}.{worker.instance}.{question.id}.{blake2b(text, digest_size=8).hexdigest()}"


def open_forms(scope: Scope, pending: Pending, *, with_idle: bool = False) -> dict[str, tuple[WorkerDir, Question]]:
    """Return the open questions of a call's workers, by name; without those of idle workers by default."""
    found = {}
    for key in pending.keys:
        worker = scope.agent_of(key)
        question = None if worker.has_ended else question_of(worker)
        if question is not None and (with_idle or not question.idle):
            found[question_key(worker, question)] = (worker, question)
    return found


def form_of(worker: WorkerDir, question: Question) -> Form:
    """Return the form of a question."""
    seen = question_within(question, _LONGEST)
    lines = [f"{worker.instance} asks: {seen.text}", seen.call]
    if not seen.is_whole:
        words = _NOT_ALLOWED if question.is_permission else _NOT_WHOLE
        lines.append(f"{words} {plain(_way_to_the_whole(worker, question))}")
    message = "\n".join(line for line in lines if line)
    options = offered(question, seen)
    if not options:
        return _form(message, None if takes_text(question, seen) else {})
    if question.kind == "confirm" and len(options) == len(question.choices):
        return _form(message, {True: "yes", False: "no"})
    labels = [beginning(safe(question, one.label), LONGEST_LABEL) for one in options]
    return _form(message, {safe(question, one.id): one.id for one in options}, labels)


_NOT_WHOLE = "This is cut. The full text:"
_NOT_ALLOWED = "This is not the whole call, so it cannot be allowed here. The whole call:"


def _way_to_the_whole(worker: WorkerDir, question: Question) -> str:
    if question.is_cut:
        return f"agentctl logs {worker.instance} --task {worker.task.id} --raw"
    return f"agentctl interact list --task {worker.task.id}"


def _form(message: str, answers: dict[str | bool, str] | None, labels: list[str] | None = None) -> Form:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if answers == {}:
        return Form(message, {"type": "object", "properties": {}}, {})
    if labels is not None:
        field |= {"enum": list(answers or ()), "enumNames": labels}
    elif answers is not None:
        field = {"type": "boolean", "title": "Yes?"}
    return Form(message, {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}, answers)


def answer_by_form(scope: Scope, worker: WorkerDir, question: Question, content: Mapping[str, Any]) -> bool:
    """Pass a filled form on; return whether its question has an answer now, even if somebody else gave it."""
    value, answers = content.get(FIELD), form_of(worker, question).answers
    said = None
    if isinstance(value, str | bool):
        said = answers.get(value) if answers is not None else value if isinstance(value, str) else None
    if said is None:
        return not is_open(worker, question.id)
    try:
        answer_open_question(
            scope.task.root, task=worker.task, instance=worker.instance, question_id=question.id, answer=said,
            answerer=who_answers(by_form=True), shown=question,
        )  # fmt: skip
    except AgentctlError:
        return not is_open(worker, question.id)
    return True
