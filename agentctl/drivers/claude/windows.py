"""What Claude Code tells of its account's usage windows, with a login and never with a key: `rate_limit_event`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.domain.windows import Window, window_from
from agentctl.drivers.claude.values import object_in, text_in


def windows_in(line: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a `rate_limit_event` tells of.

    Older versions tell one alone. Where requests are let through by what is paid beside, a window that is used up
    stops nobody.

    >>> info = {"status": "rejected", "resetsAt": 1788625200, "rateLimitType": "five_hour"}
    >>> windows_in({"rate_limit_info": info})
    [Window(name='five_hour', used_percent=None, resets_at=1788625200.0, is_rejected=True)]
    """
    info = object_in(line.get("rate_limit_info"))
    is_rejected, kind = info.get("status") == "rejected", text_in(info.get("rateLimitType"))
    told = {name: object_in(window) for name, window in object_in(info.get("unifiedWindows")).items()}
    if kind and kind not in told:
        told[kind] = {"resetsAt": info.get("resetsAt"), "status": info.get("status")}
    found = [
        window_from(
            name, _percent(window.get("utilization")), window.get("resetsAt"),
            is_rejected=is_rejected and (name == kind or window.get("status") == "rejected"),
        )
        for name, window in told.items()
    ]  # fmt: skip
    return [window for window in found if window is not None]


def _percent(utilization: object) -> object:
    is_number = isinstance(utilization, (int, float)) and not isinstance(utilization, bool)
    return utilization * 100 if is_number else None  # type: ignore[operator]
