"""How an error is told over HTTP: problem+json with the codes and hints of the command line."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from starlette.responses import Response

from agentctl.errors import AgentctlError, Conflict, ExitCode, StorageError
from agentctl.interfaces.web.json_bytes import json_bytes
from agentctl.lean import TYPE_CHECKING
from agentctl.world_errors import error_in_words, is_of_world, next_step

if TYPE_CHECKING:
    from agentctl.domain.documents.server_answers import DoneBefore, ProblemDocument

MEDIA_TYPE = "application/problem+json"
#: A wait that was over is not the fault of a server: a status that clients take for one would have them ask again.
STATUS: Mapping[ExitCode, int] = {
    ExitCode.REFUSED: 409, ExitCode.USAGE: 400, ExitCode.NOT_FOUND: 404, ExitCode.TIMED_OUT: 409,
    ExitCode.NO_SLOT: 429, ExitCode.NOTHING_LEFT: 409, ExitCode.UNSUCCESSFUL: 409, ExitCode.CONFLICT: 409,
}  # fmt: skip
_TITLES: Mapping[int, str] = {
    400: "The request is not valid", 401: "A token is needed", 403: "Not from here", 404: "There is no such thing",
    405: "The method is not allowed", 409: "Refused", 413: "The request is too large",
    415: "The body must be JSON", 429: "Every slot is in use", 500: "This is a bug in agentctl",
    503: "Not now", 507: "The disk refused",
}  # fmt: skip
#: Errors of the world that are of this moment; any other is the disk's.
_OF_NOW = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.EINTR})


#: The next steps that the command line words as options, as a request has them.
_HINTS = {
    "another name": "choose another name", "another key": "choose another key; GET …/workers/{} shows what it did",
    "another key for a task": "choose another key; GET /tasks/{} shows what it made",
    "another folder": "choose another cwd",
    "another driver": "its definition needs argv; or choose another driver ({})",
    "look around": "GET …/list shows them", "look at questions": "GET …/interact shows what is open",
    "read result": "GET …/workers/{}/result", "send": "POST …/workers/{}/send",
}  # fmt: skip


def problem(
    status: int, detail: str, hint: str | None = None, *, code: ExitCode = ExitCode.REFUSED,
    headers: Mapping[str, str] | None = None, done: DoneBefore | None = None,
) -> Response:  # fmt: skip
    """Return the response that tells a problem.

    Args:
        done: What the key of the request has done before.
    """
    document = problem_document(status, detail, hint, code)
    if done is not None:
        document["done"] = done
    return Response(json_bytes(document), status, headers, MEDIA_TYPE)


def problem_document(status: int, detail: str, hint: str | None, code: ExitCode) -> ProblemDocument:
    """Return the document of a problem."""
    return {
        "type": f"urn:agentctl:{code.name.lower().replace('_', '-')}", "title": _TITLES.get(status, "It failed"),
        "status": status, "detail": detail, "hint": hint, "code": int(code), "name": code.name,
    }  # fmt: skip


def problem_response(error: AgentctlError | OSError) -> Response:
    """Return the response for an error that was foreseen."""
    detail, hint = error_and_hint(error)
    if isinstance(error, AgentctlError):
        status = 507 if isinstance(error, StorageError) else STATUS.get(error.exit_code, 409)
        return problem(status, detail, hint, code=error.exit_code, done=_done_before(error))
    return problem(503 if error.errno in _OF_NOW else 507, detail, hint)


def _done_before(error: AgentctlError) -> DoneBefore | None:
    if not isinstance(error, Conflict):
        return None
    return {"taskId": error.task_id, "agentInstance": error.instance}


def error_and_hint(error: AgentctlError | OSError) -> tuple[str, str | None]:
    """Return what is wrong and the next step; an error of the system is told with its file."""
    if isinstance(error, OSError):
        return error_in_words(error), next_step(error)
    worded = None if error.next is None else _HINTS.get(error.next.step)
    return error.message, error.hint if worded is None or error.next is None else worded.format(error.next.of)


def is_foreseen(error: OSError) -> bool:
    """Return whether an error of the system is not agentctl's: a full disk, a missing permission."""
    return is_of_world(error)
