"""Names: which may become file names (instances, tasks, consumers, questions), and how JSON spells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.lean import NamedTuple

NAME_RULE = "1 to 64 of A-Z a-z 0-9 _ -, not starting with -"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", re.ASCII)


class WorkerId(NamedTuple):
    """The name of a worker, unique among all tasks of a root; workers of another root may have the same.

    >>> str(WorkerId("survey", "explore-1"))
    'survey/explore-1'
    """

    task_id: str
    instance: str

    def __str__(self) -> str:
        return f"{self.task_id}/{self.instance}"


def is_name(text: str) -> bool:
    """Return whether `text` can be an instance, a task id or a consumer.

    >>> [is_name(n) for n in ("explore-1", "../x", "-x", "x" * 65, "", "é", "a\\n")]
    [True, False, False, False, False, False, False]
    """
    return _NAME.fullmatch(text) is not None


def check_name(text: str, what: str | Argument) -> str:
    """Return `text`; raise `UsageError` naming `what` where it is not a name."""
    if not is_name(text):
        raise UsageError(WithArguments(what, f" {text!r} is not a name"), hint=f"use {NAME_RULE}")
    return text


def first_free(is_taken: Callable[[int], bool]) -> int:
    """Return a number after those in use, which begin at 1, in few steps: the 5,000th is as cheap as the 5th.

    >>> first_free({1, 2, 3, 4, 5}.__contains__)
    6
    """
    high = 1
    while is_taken(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_taken(middle) else (low, middle)
    return high


def slug(text: str, fallback: str = "task") -> str:
    """Return a name made from a title.

    >>> slug("Survey the auth module!")
    'survey-the-auth-module'
    >>> slug("Ünïcode")
    'unicode'
    """
    if not text.isascii():
        import unicodedata  # 1 MB of tables, which most names do not need.

        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "-".join(words)[:40].strip("-") or fallback


def base_name(argv0: str) -> str:
    """Return the stem of an instance's name, made from a program's path.

    >>> base_name("/usr/bin/python3.11")
    'python3-11'
    """
    return slug(argv0.rstrip("/").rsplit("/", 1)[-1], fallback="worker")


def camel(name: str) -> str:
    """Return the JSON key of a field.

    >>> camel("max_cost_usd"), camel("key")
    ('maxCostUsd', 'key')
    """
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def first_of(names: Sequence[str], limit: int = 8) -> str:
    """Return some names for a message, and how many more there are.

    >>> first_of(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
