"""Dependencies among workers: a graph that must have no cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.errors import UsageError


def check_no_cycle(after: Mapping[str, Sequence[str]]) -> None:
    """Raise `UsageError` naming a cycle, where there is one.

    >>> check_no_cycle({"a": ["b"], "b": ["c"]})
    >>> check_no_cycle({"a": ["b"], "b": ["a"]})
    Traceback (most recent call last):
    agentctl.errors.UsageError: these workers wait for each other: a -> b -> a
    """
    done: set[str] = set()
    for start in after:
        path: list[str] = []
        waiting: list[tuple[str, bool]] = [(start, False)]
        while waiting:
            name, leaves = waiting.pop()
            if leaves:
                path.pop()
                done.add(name)
            elif name in path:
                cycle = " -> ".join([*path[path.index(name) :], name])
                raise UsageError(f"these workers wait for each other: {cycle}")
            elif name not in done:
                path.append(name)
                waiting.append((name, True))
                waiting += [(other, False) for other in after.get(name, ())]
