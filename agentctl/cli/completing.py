"""Shell completion of instances, tasks, agents and templates: names only, quickly. Never raises or writes.

The names in the current folder may be somebody else's choice, and zsh runs code that it finds in a completion: so only
names in the sense of `is_name` are ever offered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

import typer

from agentctl.domain.hosts import ALL, HERE, is_destination
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import Root, TaskDir


def complete_instances(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the workers of the task that the line refers to."""
    return _offer(lambda: _task_of(ctx).instances(), incomplete, taken=_given(ctx))


def complete_tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tasks of the root that the line refers to."""
    return _offer(lambda: _root_of(ctx).task_ids(), incomplete)


def complete_agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the agents that are defined here."""
    return _offer(lambda: _agent_names(ctx), incomplete)


def complete_templates(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the templates that can be used."""
    return _offer(lambda: _template_names(ctx), incomplete)


def complete_hosts(incomplete: str) -> list[str]:
    """Return the hosts that are defined, and those that ssh knows by name."""
    return _offer(_host_names, incomplete, is_offered=is_destination)


def complete_hosts_list(incomplete: str) -> list[str]:
    """Return what may stand in `--hosts`: the last word of a list is completed."""
    before, comma, last = incomplete.rpartition(",")
    names = _offer(_hosts_of_list, last, frozenset(before.split(",")), is_destination)
    return [f"{before}{comma}{name}" for name in names]


#: The most names, more than a person chooses from; the time limit, longer than a person waits after a key.
_MOST, _LIMIT_S = 1000, 2.0


def _offer(
    names: Callable[[], Iterable[str]],
    incomplete: str,
    taken: frozenset[str] = frozenset(),
    is_offered: Callable[[str], bool] = is_name,
) -> list[str]:
    found: list[str] = []
    with suppress(Exception, _TooLong), _bounded_time():  # A shell that completes a line is given nothing but names.
        for name in names():
            if is_offered(name) and name.startswith(incomplete) and name not in taken:
                found.append(name)
            if len(found) == _MOST:
                break
    return found


@contextmanager
def _bounded_time() -> Iterator[None]:
    """Interrupt the block with `_TooLong`, even if it waits in the kernel for someone to write to a FIFO."""
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _TooLong(BaseException):
    """A `BaseException`, so that no handler on the way up takes it for an error of its own."""


def _too_long(_number: int, _frame: object) -> NoReturn:
    raise _TooLong


def _given(ctx: typer.Context) -> frozenset[str]:
    """Return the instances that are on the line already."""
    words = (ctx.params or {}).get("instances")
    return frozenset(words) if isinstance(words, (list, tuple)) else frozenset()


def _root_of(ctx: typer.Context) -> Root:
    from agentctl.operations.where.locating import find_root

    # Reading names does no harm: the command itself checks whose folder it is.
    return find_root((ctx.params or {}).get("root"), force=True)


def _task_of(ctx: typer.Context) -> TaskDir:
    from agentctl.operations.where.locating import find_task

    given = ctx.params or {}
    return find_task(given.get("task"), root=given.get("root"), force=True)


def _host_names() -> Iterator[str]:
    from agentctl.hosts.naming import known_names

    return known_names()


def _hosts_of_list() -> Iterator[str]:
    from agentctl.operations.where.task_limits import personal_hosts

    return iter((ALL, HERE, *personal_hosts()))


def _template_names(ctx: typer.Context) -> Iterator[str]:
    from agentctl.operations.trust.templates import all_templates

    root: Root | None = None
    with suppress(AgentctlError):  # The shipped ones need no root.
        root = _root_of(ctx)
    yield from (template.name for template in all_templates(root))


def _agent_names(ctx: typer.Context) -> list[str]:
    from agentctl.operations.trust.definitions import list_agent_specs

    root: Root | None = None
    with suppress(AgentctlError):
        root = _root_of(ctx)
    return [agent.spec.name for agent in list_agent_specs(root)[0]]
