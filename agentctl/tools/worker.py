"""The tools `ask_user` and `report`, with which a worker asks the user and reports on its work."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.question import KINDS, AnswerOption, Question
from agentctl.errors import Refused, UsageError
from agentctl.operations.talk.asking import StillOpen, Unanswered, ask_as
from agentctl.operations.talk.reporting import report_message, report_progress, report_result
from agentctl.tools.definition import Arguments, Call, Tool, closed, either, number, some_text, text
from agentctl.tools.scope import Scope


def _ask(scope: Scope, given: Arguments, call: Call) -> Any:
    """Ask, and wait for the answer within the time of the call; later calls can go on waiting for it."""
    worker = _worker(scope, "ask_user")
    options = tuple(_option(one) for one in given.get("options", []))
    kind = given.get("kind") or ("select" if options else "input")
    question = Question(
        given.get("question_id") or "", kind, given["question"], options, given.get("default"),
        deadline_s=given.get("timeout_seconds"),
    )  # fmt: skip
    try:
        answer = ask_as(worker, question, limit_s=call.limit_s, broken=call.broken)
    except Unanswered as late:
        return {"question_id": late.question_id, "answer": None, "note": "nobody answered in time"}
    except StillOpen as still:
        hint = "ask again with this question_id to keep waiting"
        return {"still_running": True, "question_id": still.question_id, "hint": hint}
    return {"question_id": answer["id"], "answer": answer["answer"], "by": answer["by"]}


def _option(one: Any) -> AnswerOption:
    if isinstance(one, str):
        return AnswerOption(one, one)
    return AnswerOption(str(one["id"]), str(one.get("label", one["id"])))


def _report(scope: Scope, given: Arguments, _call: Call) -> Any:
    _worker(scope, "report")
    if not given:
        raise UsageError("report has no argument", hint="percent and text, a message, or a summary and a file")
    answer: dict[str, Any] = {}
    if "percent" in given or "text" in given:
        answer["progress"] = report_progress(given.get("percent"), given.get("text"))
    if "message" in given:
        answer["message"] = report_message(given["message"])["id"]
    if "summary" in given or "file" in given:
        answer["result"] = report_result(given.get("summary"), given.get("file"))
    return answer


def _worker(scope: Scope, tool: str) -> WorkerDir:
    if scope.me is None:
        raise Refused(f"{tool} is for workers, and this session is not a worker's")
    return scope.me.worker


ASK_USER = Tool(
    name="ask_user",
    describe=lambda _situation: (
        "Ask the user, and wait for the answer. Everyone who looks at your task sees the question; your clock stands"
        " still meanwhile. `still_running`: nobody has answered yet; ask again with the `question_id`."
    ),
    properties={
        "question": some_text("What you want to know."),
        "options": {
            "type": "array",
            "description": "The possible answers.",
            "items": either(
                "A text is both id and label.",
                closed(
                    {
                        "type": "object",
                        "properties": {"id": some_text("What you get back."), "label": text("What the user reads.")},
                        "required": ["id"],
                    }
                ),
                some_text("Both id and label."),
            ),
        },
        "kind": text(
            "confirm: yes or no; input: any text. Default: select with options, else input.", enum=list(KINDS)
        ),
        "default": text("The answer if nobody gives one within timeout_seconds."),
        "timeout_seconds": number(
            "How long the question stays open; default: without a limit.", low=0.001, high=31_536_000
        ),
        "question_id": text("A question that was asked before, to keep waiting for its answer."),
    },
    required=("question",),
    run=_ask,
    answers="UserAnswer | QuestionOpen",
)

REPORT = Tool(
    name="report",
    describe=lambda _situation: (
        "Report how far you are (`percent`, `text`), leave a `message`, or declare your result: a `summary`, a `file`."
    ),
    properties={
        "percent": number("How much is done, 0 to 100.", low=0, high=100),
        "text": text("What you are doing."),
        "message": some_text("A note for people who follow your work."),
        "summary": some_text("Your result in a few sentences; a later one replaces it."),
        "file": some_text("The path of a file with the result."),
    },
    run=_report,
    answers="ToolReport",
)
