"""Which part of a long text a request asks for: a page by offsets in bytes."""

from __future__ import annotations

from agentctl.errors import UsageError
from agentctl.interfaces.web.endpoint import CheckedRequest, Input

#: An offset in a file.
OFFSET = {"type": "integer", "minimum": 0, "maximum": 1 << 50}
PAGED = (
    Input("from", OFFSET, "Where the page begins: an offset in bytes that an earlier page named."),
    Input("before", OFFSET, "Where it ends, instead; without both it is the last page."),
)


def behind_page(call: CheckedRequest) -> int | None:
    """Return where a page ends, if that was said."""
    before = call.values.get("before")
    if before is not None and "from" in call.values:
        raise UsageError("from and before exclude each other")
    return None if before is None else int(before)
