"""The sessions of Codex as a person finds them, whichever program has begun them: opened by hand, and by one writer."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from agentctl.drivers.codex.home import VARIABLE


def by_hand(session: str) -> list[str]:
    """Return the command line that opens a session by hand."""
    return ["codex", "resume", session]


def writer_lock(inherited: Mapping[str, str], session: str) -> str:
    """Return the lock of a thread, which its only writer holds: for half an hour after its screen, Codex's daemon."""
    home = inherited.get(VARIABLE) or os.path.join(inherited.get("HOME", ""), ".codex")
    return os.path.join(home, "thread-writer-locks", f"{session.replace('/', '_')}.lock")
