"""Identifies the account that Claude Code uses, and reads its reports about that account's usage windows."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.tree.windows import Window, window_from
from agentctl.drivers.values import object_in, text_in

_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CONFIG_DIR",
    "HOME",
)
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
#: Searched, not parsed: the file describes all projects and may be large.
_ACCOUNT = re.compile(rb'"accountUuid"\s*:\s*"([^"\\]{1,100})"')


def claude_account(environ: Mapping[str, str], read: Callable[[str], bytes]) -> list[str]:
    """Return the texts that identify the account in an environment.

    Args:
        read: Returns the content of a file; empty if there is none.

    >>> files = {"/h/.claude.json": b'{"oauthAccount": {"accountUuid": "u-1"}}'}
    >>> claude_account({"HOME": "/h"}, files.__getitem__)[-1]
    'u-1'
    """
    texts = [environ.get(name, "") for name in _VARIABLES]
    if any(environ.get(name) for name in _KEYS):
        return texts
    # The same variables do not mean the same login: another account may be logged in meanwhile.
    found = _ACCOUNT.search(
        read(os.path.join(environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", ""), ".claude.json"))
    )
    return [*texts, found[1].decode("utf-8", "replace") if found else ""]


def claude_windows(line: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a `rate_limit_event` reports.

    Older versions report only one. If extra usage is paid for, requests succeed even when a window is used up.

    >>> info = {"status": "rejected", "resetsAt": 1788625200, "rateLimitType": "five_hour"}
    >>> claude_windows({"rate_limit_info": info})
    [Window(name='five_hour', used_percent=None, resets_at=1788625200.0, is_rejected=True)]
    """
    info = object_in(line.get("rate_limit_info"))
    is_rejected, kind = info.get("status") == "rejected", text_in(info.get("rateLimitType"))
    windows = {name: object_in(window) for name, window in object_in(info.get("unifiedWindows")).items()}
    if kind and kind not in windows:
        windows[kind] = {"resetsAt": info.get("resetsAt"), "status": info.get("status")}
    found = [
        window_from(
            name, _percent(window.get("utilization")), window.get("resetsAt"),
            is_rejected=is_rejected and (name == kind or window.get("status") == "rejected"),
        )
        for name, window in windows.items()
    ]  # fmt: skip
    return [window for window in found if window is not None]


def _percent(utilization: object) -> object:
    is_number = isinstance(utilization, (int, float)) and not isinstance(utilization, bool)
    return utilization * 100 if is_number else None  # type: ignore[operator]
