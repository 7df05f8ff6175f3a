"""The tools `ask_user` and `report`, by which a worker talks to whoever watches it."""

from __future__ import annotations

from typing import Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_json
from agentctl.adapters.taskdir import WorkerDir
from agentctl.adapters.watch import Watch
from agentctl.domain.answers import KINDS, check_question
from agentctl.errors import Refused, UsageError
from agentctl.operations.talk.asking import Asked, close_question, leave, put_question
from agentctl.operations.talk.reporting import report_message, report_progress, report_result
from agentctl.operations.wait.keys import BrokenOff
from agentctl.tools.definition import Arguments, Call, Tool, closed, either, number, some_text, text
from agentctl.tools.scope import Scope


def _ask(scope: Scope, given: Arguments, call: Call) -> Any:
    """Ask, and wait for the answer within the time of the call; later calls can go on waiting for it."""
    worker = _worker(scope, "ask_user")
    options = [_option(one) for one in given.get("options", [])]
    kind = given.get("kind") or ("select" if options else "input")
    body: dict[str, Any] = {"kind": kind, "question": given["question"], "options": options}
    default, limit_s = given.get("default"), given.get("timeout_seconds")
    check_question(body, default)
    with Watch() as watch:
        asked = put_question(worker, body | {"default": default, "deadlineSeconds": limit_s}, given.get("question_id"))
        try:
            watch.add(worker.interactions)
            return _await(worker, asked, watch, call, (default, limit_s))
        finally:
            leave(worker, asked)


def _await(worker: WorkerDir, asked: Asked, watch: Watch, call: Call, closing: tuple[str | None, float | None]) -> Any:
    name, (default, limit_s) = asked.question_id, closing
    begun = monotonic()
    while True:
        answer = read_json(worker.answer(name))
        if answer is not None:
            if answer.get("expired"):
                return {"question_id": name, "answer": None, "note": "nobody answered in time"}
            return {"question_id": name, "answer": str(answer["answer"]), "by": str(answer.get("by"))}
        passed = monotonic() - begun
        if limit_s is not None and passed >= limit_s:
            close_question(worker, name, default)
            continue
        if call.limit_s is not None and passed >= call.limit_s:
            return {"still_running": True, "question_id": name, "hint": "ask again with this question_id to go on"}
        limits = [limit - passed for limit in (limit_s, call.limit_s) if limit is not None]
        if call.broken in watch.sleep(min(limits, default=None), [] if call.broken is None else [call.broken]):
            raise BrokenOff("the call was broken off; the question stays open")


def _option(one: Any) -> dict[str, str]:
    if isinstance(one, str):
        return {"id": one, "label": one}
    return {"id": str(one["id"]), "label": str(one.get("label", one["id"]))}


def _report(scope: Scope, given: Arguments, _call: Call) -> Any:
    _worker(scope, "report")
    if not given:
        raise UsageError("report: say something", hint="percent and text, a message, or a summary and a file")
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
        raise Refused(f"{tool} is for workers, and this session is not one")
    return scope.me.worker


ASK_USER = Tool(
    name="ask_user",
    describe=lambda _situation: (
        "Ask the user, and wait for the answer. It is shown wherever somebody looks at your task; your clock stands"
        " still meanwhile. `still_running`: nobody has answered yet; ask again with the `question_id`."
    ),
    properties={
        "question": some_text("What you want to know."),
        "options": {
            "type": "array",
            "description": "What can be chosen from.",
            "items": either(
                "A text is both.",
                closed(
                    {
                        "type": "object",
                        "properties": {"id": some_text("What comes back."), "label": text("What is read.")},
                        "required": ["id"],
                    }
                ),
                some_text("What comes back, and is read."),
            ),
        },
        "kind": text(
            "confirm: yes or no; input: any text. select with options, else input, without it.", enum=list(KINDS)
        ),
        "default": text("The answer if nobody gives one within timeout_seconds."),
        "timeout_seconds": number(
            "How long the question stays open; without an end without it.", low=0.001, high=31_536_000
        ),
        "question_id": text("A question that was asked before, to wait for its answer."),
    },
    required=("question",),
    run=_ask,
)

REPORT = Tool(
    name="report",
    describe=lambda _situation: (
        "Tell how far you are (`percent`, `text`), leave a `message`, or declare your result: a `summary`, a `file`."
    ),
    properties={
        "percent": number("How much is done, 0 to 100.", low=0, high=100),
        "text": text("What you are at."),
        "message": some_text("A note for whoever reads along."),
        "summary": some_text("Your result in a few sentences; a later one replaces it."),
        "file": some_text("The path of a file with the result."),
    },
    run=_report,
)
