"""Whose account a Claude Code uses: that of a key or token in its environment, else that of its login."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

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
#: Its file has all that it knows of all projects, and may be large.
_ACCOUNT = re.compile(rb'"accountUuid"\s*:\s*"([^"\\]{1,100})"')


def account_of(environ: Mapping[str, str], read: Callable[[str], bytes]) -> list[str]:
    """Return what decides the account, in an environment.

    Args:
        read: Gives the content of a file; nothing where there is none.

    >>> said = {"/h/.claude.json": b'{"oauthAccount": {"accountUuid": "u-1"}}'}
    >>> account_of({"HOME": "/h"}, said.__getitem__)[-1]
    'u-1'
    """
    told = [environ.get(name, "") for name in _VARIABLES]
    if any(environ.get(name) for name in _KEYS):
        return told
    # Another one may log in in the same place.
    found = _ACCOUNT.search(
        read(os.path.join(environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", ""), ".claude.json"))
    )
    return [*told, found[1].decode("utf-8", "replace") if found else ""]
