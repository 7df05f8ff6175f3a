"""What came of one attempt of a worker, as its shim saw it."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.domain.states import Reason, Status
from agentctl.lean import Any, NamedTuple


class Outcome(NamedTuple):
    """What came of an attempt."""

    status: Status
    reason: Reason | None
    exit_code: int | None
    signal: str | None
    duration_s: float
    message: str | None = None
    swept: Sequence[dict[str, Any]] = ()
    kept: Sequence[dict[str, Any]] = ()
    usage: dict[str, float] | None = None
