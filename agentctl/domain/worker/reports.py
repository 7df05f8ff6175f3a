"""What a worker reports about itself: its progress, a message, or its result."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.domain.text.numbers import finite
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import LastProgress
    from agentctl.domain.documents.workers.worker_reports import DeclaredArtifact


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

    def to_json(self) -> DeclaredArtifact:
        """Return it as files have it, and as `report result --json` prints it."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256}


class ResultReport(NamedTuple):
    """The worker's result: a summary, a file, or both."""

    summary: str | None
    artifact: DeclaredFile | None


Report = ProgressReport | MessageReport | ResultReport
#: What each kind is called in an entry.
_VERBS = {ProgressReport: "progress", MessageReport: "message", ResultReport: "result"}


def last_progress(value: Mapping[str, Any]) -> LastProgress | None:
    """Return what a worker's progress.json says; what is not of its kind, in a file of the worker's, is not there.

    >>> last_progress({"at": "2026-01-01T00:00:00.000Z", "percent": 40, "text": ["reading"]})
    {'at': '2026-01-01T00:00:00.000Z', 'percent': 40, 'text': None}
    >>> last_progress({"percent": True})
    """
    at, percent, text = value.get("at"), finite(value.get("percent")), value.get("text")
    words = text if isinstance(text, str) else None
    if percent is None and words is None:
        return None
    return {"at": at if isinstance(at, str) else None, "percent": percent, "text": words}


def entry_of(report: Report) -> dict[str, Any]:
    """Return a report as an entry of an outbox.

    >>> entry_of(ResultReport("done", DeclaredFile("/p/r.md", 3, "ab")))
    {'verb': 'result', 'summary': 'done', 'artifact': {'path': '/p/r.md', 'size': 3, 'sha256': 'ab'}}
    """
    fields = report._asdict()
    if isinstance(report, ResultReport) and report.artifact is not None:
        fields["artifact"] = report.artifact.to_json()
    return {"verb": _VERBS[type(report)], **fields}
