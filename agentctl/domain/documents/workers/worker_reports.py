"""What `report` shows of what a worker has said about itself."""

from __future__ import annotations

from typing_extensions import TypedDict


class ReportedProgress(TypedDict):
    """How far a worker has got."""

    at: str
    #: 0 to 100.
    percent: float | None
    text: str | None


class ReportedMessage(TypedDict):
    """A message that a worker has left, as a row of its activity."""

    at: str
    #: `message`.
    type: str
    id: str
    #: `end`: it is complete.
    phase: str
    text: str


class DeclaredArtifact(TypedDict):
    """A file that belongs to a result, as it was when it was declared."""

    path: str
    size: int
    sha256: str


class ReportedResult(TypedDict):
    """The result that a worker has declared."""

    summary: str | None
    artifacts: list[DeclaredArtifact]
    at: str
