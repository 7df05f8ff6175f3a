"""What stands in a list over several hosts in place of one that did not answer."""

from __future__ import annotations

from typing_extensions import TypedDict


class FailedHost(TypedDict):
    """A host that did not answer or refused, in place of its rows."""

    #: Its name in `config.yaml`, or `here`.
    host: str
    error: str
    hint: str | None
    exitCode: int
