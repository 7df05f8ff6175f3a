"""What stands in the lists of several hosts for one that has no rows there."""

from __future__ import annotations

from typing_extensions import TypedDict


class FailedHost(TypedDict):
    """A host that did not answer or refused, in place of its rows."""

    #: Its name in `config.yaml`, or `here`.
    host: str
    error: str
    hint: str | None
    exitCode: int
