"""Shell completion of instances, tasks, agents and templates: names only, quickly. Never raises or writes.

The names in the current folder may be somebody else's choice, and zsh runs code that it finds in a completion: so only
names in the sense of `is_name` are ever offered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError
from agentctl.interfaces.commands.model.command_model import AGENTS, HOST, HOST_LIST, INSTANCES, TASKS, TEMPLATES

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import Root


def names_offered(kind: str, incomplete: str, given: Mapping[str, Any] = {}) -> list[str]:
    """Return the names of a kind that may stand where a word is not complete yet.

    Args:
        kind: Of those of `command.py`.
        given: What the line says so far: its task, its root, its host, its instances.
    """
    from agentctl.domain.hosts import is_destination

    if kind == HOST:  # Those that are defined, and those that ssh knows by name.
        return _offer(_host_names, incomplete, is_offered=is_destination)
    if kind == HOST_LIST:  # The last word of a list is completed.
        before, comma, last = incomplete.rpartition(",")
        names = _offer(_hosts_of_list, last, frozenset(before.split(",")), is_destination)
        return [f"{before}{comma}{name}" for name in names]
    there = given.get("instances") if kind == INSTANCES else None
    taken = frozenset(there) if isinstance(there, (list, tuple)) else frozenset[str]()
    return _offer(lambda: _names(kind, given), incomplete, taken)


#: The hidden command that another host's completion calls.
NAMES = "_names"
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
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S, _LIMIT_S)  # Again, where Python loses the first `_TooLong`.
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _TooLong(BaseException):
    """A `BaseException`, so that no handler on the way up takes it for an error of its own."""


def _too_long(_number: int, _frame: object) -> NoReturn:
    raise _TooLong


def _names(kind: str, given: Mapping[str, Any]) -> Iterable[str]:
    """Return the names of a kind in the place, and on the host, that the line refers to."""
    task, root, host = given.get("task"), given.get("root"), given.get("host")
    return _KINDS[kind](task, root) if host is None else _names_on(str(host), kind, task, root)


def _names_on(host: str, kind: str, task: str | None, root: str | None) -> Iterator[str]:
    """Yield the names that another host has; nobody can type a password for it."""
    from agentctl.interfaces.hosts.host_names import host_named
    from agentctl.interfaces.hosts.hosts_asked import ask_host

    answer = ask_host(host_named(host), [NAMES, kind, task or "", root or ""], limit_s=_LIMIT_S)
    yield from answer.out.decode("ascii", "replace").splitlines()


def print_names(words: list[str]) -> None:
    """Print the names of a kind that there are here, for the completion of a line on another host."""
    kind, task, root = [*words, "", "", ""][:3]
    if kind in _KINDS:
        for name in _offer(lambda: _KINDS[kind](task or None, root or None), ""):
            print(name)


def _root_of(named: str | None) -> Root:
    from agentctl.operations.where.locating import find_root

    # Reading names does no harm: the command itself checks whose folder it is.
    return find_root(named, force=True)


def _instances(task: str | None, root: str | None) -> Iterable[str]:
    from agentctl.operations.where.locating import find_task

    return find_task(task, root=root, force=True).instances()


def _host_names() -> Iterator[str]:
    from agentctl.interfaces.hosts.host_names import known_hosts

    return known_hosts()


def _hosts_of_list() -> Iterator[str]:
    from agentctl.domain.hosts import ALL, HERE
    from agentctl.operations.where.personal_config import HOSTS, section

    return iter((ALL, HERE, *section(HOSTS)))


def _template_names(_task: str | None, named: str | None) -> Iterator[str]:
    from agentctl.operations.trust.templates import all_templates

    root: Root | None = None
    with suppress(AgentctlError):  # The shipped ones need no root.
        root = _root_of(named)
    yield from (template.name for template in all_templates(root))


def _agent_names(_task: str | None, named: str | None) -> list[str]:
    from agentctl.operations.trust.definitions import list_agent_specs

    root: Root | None = None
    with suppress(AgentctlError):
        root = _root_of(named)
    return [agent.spec.name for agent in list_agent_specs(root)[0]]


_KINDS: dict[str, Callable[[str | None, str | None], Iterable[str]]] = {
    INSTANCES: _instances,
    TASKS: lambda _task, root: _root_of(root).task_ids(),
    AGENTS: _agent_names,
    TEMPLATES: _template_names,
}
