"""What a test's process tells the one that prints: letters that are none would end the whole run on their way there."""

from __future__ import annotations

from typing import Any


def sendable(part: Any) -> Any:
    """Return a part of a report, with an escape for each surrogate: a byte of a name that is no text, printed in it.

    What several processes tell one is sent as UTF-8, which has no surrogates, and a report that could not be sent is
    an internal error in place of the failure that it tells.
    """
    if isinstance(part, str):
        return part.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(part, dict):
        return {sendable(key): sendable(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(map(sendable, part))
    return part
