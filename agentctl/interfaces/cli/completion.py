"""Shell completion of names, and of the values that an option takes: quickly. Never raises or writes.

The names in the current folder may be somebody else's choice, and zsh runs code that it finds in a completion: so only
names in the sense of `is_name` are ever offered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from agentctl.domain.hosts import is_destination
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError
from agentctl.interfaces.commands.model.command_model import (
    ACCOUNTS,
    AGENT_LIST,
    AGENTS,
    ANSWER,
    ARCHIVED,
    CONSUMERS,
    DIALECTS,
    DRIVERS,
    EFFORTS,
    END_LIST,
    ENGINES,
    EXPANDED,
    FAILED_AGENTS,
    HOST,
    HOST_LIST,
    INSTANCES,
    POLICIES,
    QUESTIONS,
    RUNNERS,
    TARGETS,
    TASKS,
    TEMPLATES,
    WORKS,
)
from agentctl.lean import NamedTuple

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import Root, TaskDir
    from agentctl.operations.talk.interacting import OpenQuestion


class SaidSoFar(NamedTuple):
    """What a line that is not complete yet says of the names in it."""

    task: str | None = None
    root: str | None = None
    #: Of `interact respond`: the --id, and the words before the last one.
    question: str | None = None
    words: tuple[str, ...] = ()


class _Kind(NamedTuple):
    """Where the names of a kind come from."""

    names: Callable[[SaidSoFar], Iterable[str]]
    #: They stand in a list with commas, of which the last word is completed.
    is_list: bool = False
    is_offered: Callable[[str], bool] = is_name
    #: They are those of this machine, whatever host the line is for.
    is_here: bool = False
    #: A name that stands there already is not offered again.
    is_each_once: bool = True


def names_offered(kind: str, incomplete: str, given: Mapping[str, Any] = {}, there: Collection[str] = ()) -> list[str]:
    """Return the names of a kind that may stand where a word is not complete yet.

    Args:
        kind: Of those of `command_model.py`.
        given: What the line says so far: its task, its root, its host, its words.
        there: The values that the same parameter has already.
    """
    found = _KINDS[kind]
    before, comma, last = incomplete.rpartition(",") if found.is_list else ("", "", incomplete)
    taken = frozenset([*there, *before.split(",")] if found.is_each_once else ())
    names = _offer(lambda: _names(kind, given), last, taken, found.is_offered)
    return [f"{before}{comma}{name}" for name in names]


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
    host, found = given.get("host"), _KINDS[kind]
    said = SaidSoFar(given.get("task"), given.get("root"), given.get("question_id"), tuple(given.get("words") or ()))
    return found.names(said) if host is None or found.is_here else _names_on(str(host), kind, said)


def _names_on(host: str, kind: str, said: SaidSoFar) -> Iterator[str]:
    """Yield the names that another host has; nobody can type a password for it."""
    from agentctl.interfaces.hosts.host_names import host_named
    from agentctl.interfaces.hosts.hosts_asked import ask_host

    argv = [NAMES, kind, said.task or "", said.root or "", said.question or "", *said.words]
    answer = ask_host(host_named(host), argv, limit_s=_LIMIT_S)
    yield from answer.out.decode("ascii", "replace").splitlines()


def print_names(words: list[str]) -> None:
    """Print the names of a kind that there are here, for the completion of a line on another host."""
    kind, task, root, question = [*words, "", "", "", ""][:4]
    found = _KINDS.get(kind)
    if found is not None and not found.is_here:
        said = SaidSoFar(task or None, root or None, question or None, tuple(words[4:]))
        for name in _offer(lambda: found.names(said), ""):
            print(name)


# -- what is on disk ---------------------------------------------------------------------------------------------------


def _root_of(said: SaidSoFar) -> Root:
    from agentctl.operations.where.locating import find_root

    # Reading names does no harm: the command itself checks whose folder it is.
    return find_root(said.root, force=True)


def _root_if_any(said: SaidSoFar) -> Root | None:
    """Return the root; None where there is none, as what ships with agentctl needs none."""
    with suppress(AgentctlError):
        return _root_of(said)
    return None


def _task_of(said: SaidSoFar) -> TaskDir:
    from agentctl.operations.where.locating import find_task

    return find_task(said.task, root=said.root, force=True)


def _instances(said: SaidSoFar) -> list[str]:
    return _task_of(said).instances()


def _expanded(said: SaidSoFar) -> Iterator[str]:
    from agentctl.interfaces.commands.show.tree import ALL

    yield ALL
    yield from _instances(said)


def _tasks(said: SaidSoFar) -> list[str]:
    return _root_of(said).task_ids()


def _tasks_and_archived(said: SaidSoFar) -> Iterator[str]:
    from agentctl.operations.where.put_away import all_put_away

    root = _root_of(said)
    yield from root.task_ids()
    yield from (place.path.name for place, _ in all_put_away(root))


def _template_names(said: SaidSoFar) -> Iterator[str]:
    from agentctl.operations.trust.templates import all_templates

    return (template.name for template in all_templates(_root_if_any(said)))


def _agent_names(said: SaidSoFar) -> list[str]:
    from agentctl.operations.trust.definitions import list_agent_specs

    return [agent.spec.name for agent in list_agent_specs(_root_if_any(said))[0]]


def _failed_agents(said: SaidSoFar) -> list[str]:
    from agentctl.operations.doctor.gates import failed_agents

    return failed_agents(_task_of(said))


def _consumers(said: SaidSoFar) -> list[str]:
    from agentctl.operations.wait.waiting import consumers_of

    return consumers_of(_task_of(said))


# -- what a person has -------------------------------------------------------------------------------------------------


def _host_names(_said: SaidSoFar) -> Iterator[str]:
    from agentctl.interfaces.hosts.host_names import known_hosts

    return known_hosts()


def _hosts_of_list(_said: SaidSoFar) -> tuple[str, ...]:
    from agentctl.domain.hosts import ALL, HERE
    from agentctl.operations.where.personal_config import HOSTS, section

    return (ALL, HERE, *section(HOSTS))


def _targets(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.operations.where.personal_config import NOTIFY, section

    return section(NOTIFY).targets


def _accounts(_said: SaidSoFar) -> list[str]:
    from agentctl.supervision.account.accounts import all_accounts, folder_of_accounts

    return [account.name for account in all_accounts(folder_of_accounts())]


# -- what an option takes ----------------------------------------------------------------------------------------------


def _drivers(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.drivers.registry import AGENT_DRIVERS

    return AGENT_DRIVERS


def _efforts(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.domain.agent.agentspec import EFFORTS as LEVELS

    return LEVELS


def _policies(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.domain.agent.permissions import POLICIES as WORDS

    return WORDS


def _runners(_said: SaidSoFar) -> list[str]:
    from agentctl.runners.registry import names

    return names()


def _engines(said: SaidSoFar) -> list[str]:
    from agentctl.domain.placement import LOCAL

    return [name for name in _runners(said) if name != LOCAL]


def _dialects(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.tools.registry import DIALECTS as NAMED

    return NAMED


def _ends(_said: SaidSoFar) -> Iterable[str]:
    from agentctl.interfaces.commands.wait.wait_any import KINDS

    return KINDS


# -- questions ---------------------------------------------------------------------------------------------------------


def _answer_words(said: SaidSoFar) -> Iterator[str]:
    """Yield who asks; behind one of them, what may be answered where nothing of its question is shown.

    So no call is allowed by a key: it is denied so, or its answer is typed.
    """
    from agentctl.domain.question import offered, question_within

    if len(said.words) > 1:
        return
    asked = _questions_asked(said)
    if not said.words:
        yield from dict.fromkeys(one.instance for one in asked)
        return
    for one in asked[:1]:
        yield from (option.id for option in offered(one.question, question_within(one.question, 0)))


def _question_ids(said: SaidSoFar) -> Iterable[str]:
    return dict.fromkeys(one.question.id for one in _questions_asked(said._replace(question=None)))


def _questions_asked(said: SaidSoFar) -> list[OpenQuestion]:
    """Return the open questions of those who want an answer: of all of them, or of the worker that is named."""
    from agentctl.operations.talk.interacting import find_questions, questions_of

    root, task = _root_of(said), None if said.task is None else _task_of(said)
    found = questions_of(root, task, said.words[0]) if said.words else find_questions(root, task).questions
    return [one for one in found if not one.question.idle and said.question in (None, one.question.id)]


_KINDS: dict[str, _Kind] = {
    INSTANCES: _Kind(_instances),
    WORKS: _Kind(_instances),
    EXPANDED: _Kind(_expanded),
    TASKS: _Kind(_tasks),
    ARCHIVED: _Kind(_tasks_and_archived),
    TEMPLATES: _Kind(_template_names),
    AGENTS: _Kind(_agent_names),
    AGENT_LIST: _Kind(_agent_names, is_list=True),
    FAILED_AGENTS: _Kind(_failed_agents),
    CONSUMERS: _Kind(_consumers),
    ANSWER: _Kind(_answer_words, is_each_once=False),
    QUESTIONS: _Kind(_question_ids),
    HOST: _Kind(_host_names, is_offered=is_destination, is_here=True),
    HOST_LIST: _Kind(_hosts_of_list, is_list=True, is_offered=is_destination, is_here=True),
    TARGETS: _Kind(_targets),
    ACCOUNTS: _Kind(_accounts),
    DRIVERS: _Kind(_drivers),
    EFFORTS: _Kind(_efforts),
    POLICIES: _Kind(_policies),
    RUNNERS: _Kind(_runners),
    ENGINES: _Kind(_engines),
    DIALECTS: _Kind(_dialects),
    END_LIST: _Kind(_ends, is_list=True),
}
