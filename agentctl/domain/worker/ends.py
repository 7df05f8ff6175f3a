"""The end of a worker in words, without anything that a terminal would obey."""

from __future__ import annotations

from agentctl.domain.text.plaintext import plain

#: Said of an end that no shim has seen: all that a worker starts is below its shim, and without it only found by marks.
HIDDEN = "any processes that it had hidden cannot be found"


def end_in_words(status: str, reason: str | None, exit_code: int | None = None, signal: str | int | None = None) -> str:
    """Return an end in a few words.

    >>> end_in_words("completed", None), end_in_words("failed", "exit_code", 3)
    ('completed', 'failed (exit_code 3)')
    """
    return plain(f"{status} ({reason_in_words(reason, exit_code, signal)})") if reason else status


def said_at_end(message: str | None, last_line: str | None) -> list[str]:
    """Return what is said of a failure beside its reason, the most telling first: what it wrote last, then a message.

    >>> said_at_end("its time limit of 60 s passed", "connecting"), said_at_end(None, None)
    (['connecting', 'its time limit of 60 s passed'], [])
    """
    return list(dict.fromkeys(said for said in (last_line, message) if said))


def reason_in_words(reason: str | None, exit_code: int | None, signal: str | int | None) -> str:
    """Return the reason of a failure with the detail that belongs to it: `exit_code 3`, `signal SIGKILL`, `lost`."""
    detail = {"exit_code": exit_code, "signal": signal}.get(reason or "")
    return " ".join(str(part) for part in (reason, detail) if part is not None)
