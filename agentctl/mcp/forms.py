"""Translates questions of workers into MCP's forms, and filled forms into answers.

A form can allow only a call that it shows whole: for a longer call it offers only denials, and says where the rest is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.answers import DENY, meaning
from agentctl.domain.plaintext import beginning, distinct, plain, whole
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.talk.interacting import respond
from agentctl.tools.definition import Pending
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope

FIELD = "answer"
#: In characters as shown.
_LONGEST, _LONGEST_LABEL = 2000, 1000


class Form(NamedTuple):
    """A form that the user of a client reads and fills in."""

    message: str
    schema: dict[str, Any]
    #: Value in the form -> the answer that it means; None: any text; empty: no answer is possible here.
    answers: Mapping[str | bool, str] | None


def key_of(worker: WorkerDir, question: Mapping[str, Any]) -> str:
    """Return the name of a question, unique in its call: a question that replaces it has another name."""
    text = json.dumps(question, sort_keys=True).encode()
    return f"{worker.task.id}.{worker.instance}.{question['id']}.{blake2b(text, digest_size=8).hexdigest()}"


def open_forms(
    scope: Scope, pending: Pending, *, with_idle: bool = False
) -> dict[str, tuple[WorkerDir, dict[str, Any]]]:
    """Return the open questions of a call's workers, by name; without those of idle workers by default."""
    found = {}
    for key in pending.keys:
        worker = scope.agent_of(key)
        question = None if worker.has_ended else question_of(worker)
        if question is not None and (with_idle or not question.get("idle")):
            found[key_of(worker, question)] = (worker, question)
    return found


def is_over(worker: WorkerDir, question: Mapping[str, Any]) -> bool:
    """Return whether a question no longer needs an answer: it has one, or its worker has ended."""
    return worker.has_ended or worker.answer(str(question["id"])).exists()


def form_of(worker: WorkerDir, question: Mapping[str, Any]) -> Form:
    """Return the form of a question."""
    show = _shown_of_call if question.get("tool") else _shown
    asked, tool, arguments = show(question["question"]), show(question.get("tool") or ""), question.get("arguments")
    call = f"{tool} {show(json.dumps(arguments, ensure_ascii=False)) if arguments else ''}".strip()
    is_whole = not question.get("isCut") and max(len(asked), len(call)) <= _LONGEST
    lines = [f"{worker.instance} asks: {_cut(asked)}", _cut(call)]
    if not is_whole:
        lines.append(f"{_NOT_ALLOWED if tool else _NOT_WHOLE} {plain(_way_to_the_whole(worker, question))}")
    message = "\n".join(line for line in lines if line)
    if question.get("kind") != "confirm" and not question.get("options"):
        return _form(message, {} if tool and not is_whole else None)
    if question.get("kind") == "confirm":
        return _form(message, {} if tool and not is_whole else {True: "yes", False: "no"})
    labels = {str(one["id"]): show(one["label"]) for one in _offered(question, is_whole=is_whole)}
    return _form(message, {show(name): name for name in labels}, [_cut(label) for label in labels.values()])


_NOT_WHOLE = "This is cut. The full text:"
_NOT_ALLOWED = "This is not the whole call, so it cannot be allowed here. The whole call:"


def _shown(text: str) -> str:
    return whole(plain(text))


def _shown_of_call(text: str) -> str:
    """Return a text of a call as it is allowed by its looks: also what nobody would see is seen."""
    return distinct(_shown(text))


def _cut(text: str) -> str:
    return beginning(text, _LONGEST)


def _way_to_the_whole(worker: WorkerDir, question: Mapping[str, Any]) -> str:
    if question.get("isCut"):
        return f"agentctl logs {worker.instance} --task {worker.task.id} --raw"
    return f"agentctl interact list --task {worker.task.id}"


def _offered(question: Mapping[str, Any], *, is_whole: bool) -> Iterator[Mapping[str, Any]]:
    """Yield the options of the form: one that allows a call only if the user sees the whole call and option."""
    is_permission, means = bool(question.get("tool")), question.get("means")
    for option in question["options"]:
        is_shown = is_whole and len(str(option["label"])) <= _LONGEST_LABEL
        if is_shown or not is_permission or meaning(means, str(option["id"])) == DENY:
            yield option


def _form(message: str, answers: dict[str | bool, str] | None, labels: list[str] | None = None) -> Form:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if answers == {}:
        return Form(message, {"type": "object", "properties": {}}, {})
    if labels is not None:
        field |= {"enum": list(answers or ()), "enumNames": labels}
    elif answers is not None:
        field = {"type": "boolean", "title": "Yes?"}
    return Form(message, {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}, answers)


def answer(scope: Scope, worker: WorkerDir, question: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Pass a filled form on; return whether its question has an answer now, even if somebody else gave it."""
    value, answers = content.get(FIELD), form_of(worker, question).answers
    said = None
    if isinstance(value, str | bool):
        said = answers.get(value) if answers is not None else value if isinstance(value, str) else None
    if said is None:
        return is_over(worker, question)
    try:
        respond(
            scope.task.root, task=worker.task, instance=worker.instance, question_id=question["id"], answer=said,
            answerer=who_answers(by_form=True), shown=question,
        )  # fmt: skip
    except AgentctlError:
        return is_over(worker, question)
    return True
