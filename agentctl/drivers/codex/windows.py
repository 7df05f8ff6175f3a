"""What Codex tells of its account's usage windows: `account/rateLimits/updated`, with each answer of its provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.domain.windows import Window, name_of_minutes, window_from
from agentctl.drivers.codex.items import as_dict

#: The limits of the account as a whole; others are those of single models.
_WHOLE = (None, "codex")
_FULL = 100.0


def windows_in(params: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a notification tells of.

    >>> primary = {"usedPercent": 97, "windowDurationMins": 300, "resetsAt": 1788625200}
    >>> windows_in({"rateLimits": {"limitId": "codex", "primary": primary, "secondary": None}})
    [Window(name='five_hour', used_percent=97.0, resets_at=1788625200.0, is_rejected=False)]
    """
    told = as_dict(params.get("rateLimits"))
    if told.get("limitId") not in _WHOLE:
        return []
    windows = [as_dict(told.get(name)) for name in ("primary", "secondary")]
    found = [
        window_from(name_of_minutes(one.get("windowDurationMins")), one.get("usedPercent"), one.get("resetsAt"))
        for one in windows
    ]
    return [window for window in found if window is not None]


def rejected(windows: Iterable[Window]) -> list[Window]:
    """Return what it means that a request was refused for the usage limit: the error itself tells no time."""
    return [window._replace(is_rejected=True) for window in windows if (window.used_percent or 0) >= _FULL]
