"""How an error is told over HTTP: problem+json with the codes and hints of the command line."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

from starlette.responses import Response

from agentctl.errors import (
    AgentctlError,
    Conflict,
    ExitCode,
    LockTimeout,
    Next,
    StorageError,
    Taken,
    steps_in_words,
    steps_of,
)
from agentctl.interfaces.web.json_bytes import json_bytes
from agentctl.interfaces.web.list_pages import ListChanged
from agentctl.interfaces.web.next_requests import words_over_http, wrong_over_http
from agentctl.lean import TYPE_CHECKING
from agentctl.world_errors import error_in_words, is_of_world, next_step

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import DoneBefore, NextStep, ProblemDocument
    from agentctl.errors import Step

MEDIA_TYPE = "application/problem+json"
#: What another status says better than that of its exit code.
_BY_KIND: tuple[tuple[type[AgentctlError], int], ...] = (
    (StorageError, 507), (Taken, 409), (ListChanged, 410), (LockTimeout, 503),
)  # fmt: skip
#: A wait that was over is answered by whoever carries it out, if it is one of the client's.
STATUS: Mapping[ExitCode, int] = {
    ExitCode.REFUSED: 409, ExitCode.USAGE: 400, ExitCode.NOT_FOUND: 404, ExitCode.TIMED_OUT: 409,
    ExitCode.NO_SLOT: 429, ExitCode.NOTHING_LEFT: 409, ExitCode.UNSUCCESSFUL: 409, ExitCode.CONFLICT: 409,
}  # fmt: skip
_TITLES: Mapping[int, str] = {
    400: "The request is not valid", 401: "A token is needed", 403: "Not from here", 404: "There is no such thing",
    405: "The method is not allowed", 409: "Refused", 410: "It is not there any more", 413: "The request is too large",
    415: "The body must be JSON", 429: "Every slot is in use", 500: "This is a bug in agentctl",
    503: "Not now", 507: "The disk refused",
}  # fmt: skip
#: Errors of the world that are of this moment, and those about a name; any other is the disk's.
_OF_NOW = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.EINTR})
_OF_NAMES = frozenset({errno.ENAMETOOLONG, errno.ELOOP})


def problem(
    status: int, detail: str, *steps: Step, code: ExitCode = ExitCode.REFUSED,
    headers: Mapping[str, str] | None = None, done: DoneBefore | None = None,
) -> Response:  # fmt: skip
    """Return the response that tells a problem.

    Args:
        done: What the key of the request has done before.
    """
    document = problem_document(status, detail, steps, code)
    if done is not None:
        document["done"] = done
    return Response(json_bytes(document), status, headers, MEDIA_TYPE)


def problem_document(status: int, detail: str, steps: Sequence[Step], code: ExitCode) -> ProblemDocument:
    """Return the document of a problem."""
    documents = step_documents(steps)
    return {
        "type": f"urn:agentctl:{code.name.lower().replace('_', '-')}", "title": _TITLES.get(status, "It failed"),
        "status": status, "detail": detail, "hint": steps_in_words(steps, words_over_http),
        "next": next((one for one in documents if one["step"]), None), "steps": documents,
        "code": int(code), "name": code.name,
    }  # fmt: skip


def step_documents(steps: Sequence[Step]) -> list[NextStep]:
    """Return next steps as data, for those who have words of their own for them."""
    return [
        {"step": step.step, "of": step.of, "task": step.task, "words": words}
        if isinstance(step, Next)
        else {"step": "", "of": "", "task": "", "words": words}
        for step in steps
        if (words := words_over_http(step))
    ]


def problem_response(error: AgentctlError | OSError) -> Response:
    """Return the response for an error that was foreseen."""
    detail, steps = error_and_steps(error)
    if isinstance(error, AgentctlError):
        return problem(_status_of(error), detail, *steps, code=error.exit_code, done=_done_before(error))
    return problem(503 if error.errno in _OF_NOW else 409 if error.errno in _OF_NAMES else 507, detail, *steps)


def _done_before(error: AgentctlError) -> DoneBefore | None:
    if not isinstance(error, Conflict):
        return None
    return {"taskId": error.task_id, "agentInstance": error.instance}


def _status_of(error: AgentctlError) -> int:
    """Return the status that tells an error."""
    by_kind = (status for kind, status in _BY_KIND if isinstance(error, kind))
    return next(by_kind, STATUS.get(error.exit_code, 409))


def error_and_steps(error: AgentctlError | OSError) -> tuple[str, Sequence[Step]]:
    """Return what is wrong and the next steps; an error of the system is told with its file."""
    if isinstance(error, OSError) and not isinstance(error, AgentctlError):
        return error_in_words(error), steps_of(next_step(error))
    return wrong_over_http(error), error.steps


def is_foreseen(error: OSError) -> bool:
    """Return whether an error of the system is not agentctl's: a full disk, a missing permission."""
    return is_of_world(error)
