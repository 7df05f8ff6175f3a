"""What `doctor` and `serve` show: what is wrong with a root and its machine, and where its server is."""

from __future__ import annotations

from typing_extensions import TypedDict


class FindingRow(TypedDict):
    """One thing that was looked at."""

    #: `ok note warning error`.
    severity: str
    what: str
    #: A path, or the name of what it is about; empty for the machine.
    where: str
    #: What a person can do about it: a command, or a sentence; empty if there is nothing to do.
    next: str
    fixed: bool


class ClosedBreaker(TypedDict):
    """An agent that failed too often, and may be started again."""

    agent: str
    #: How many times in a row it had failed, and why the last time.
    failures: int
    reason: str


class FreedAccount(TypedDict):
    """An account that was on hold, and may be used again."""

    account: str


class ServerLink(TypedDict):
    """Where the server of a root is, and a link that lets one browser in."""

    url: str
    #: It works once, and only soon.
    link: str
    #: The file with the token for scripts.
    tokenFile: str
    root: str
