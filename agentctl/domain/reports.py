"""What a worker reports about itself: its progress, a message, or its result."""

from __future__ import annotations

from agentctl.lean import Any, NamedTuple


class ProgressReport(NamedTuple):
    """How far the worker is: a percentage, a text, or both."""

    percent: float | None
    text: str | None


class MessageReport(NamedTuple):
    """A message that the worker leaves in its activity."""

    text: str


class DeclaredFile(NamedTuple):
    """A file that belongs to a result, as it was when it was declared."""

    path: str
    size: int
    sha256: str


class ResultReport(NamedTuple):
    """The worker's result: a summary, a file, or both."""

    summary: str | None
    artifact: DeclaredFile | None


Report = ProgressReport | MessageReport | ResultReport
#: What each kind is called in an entry.
_VERBS = {ProgressReport: "progress", MessageReport: "message", ResultReport: "result"}


def entry_of(report: Report) -> dict[str, Any]:
    """Return a report as an entry of an outbox.

    >>> entry_of(ResultReport("done", DeclaredFile("/p/r.md", 3, "ab")))
    {'verb': 'result', 'summary': 'done', 'artifact': {'path': '/p/r.md', 'size': 3, 'sha256': 'ab'}}
    """
    fields = report._asdict()
    if isinstance(report, ResultReport) and report.artifact is not None:
        fields["artifact"] = report.artifact._asdict()
    return {"verb": _VERBS[type(report)], **fields}
