"""The queue: one file for each waiting worker, in the order of their names.

`<priority>.<age>.<environment>.<r|w>.<task>.<instance>`: smaller priority first, then smaller age; `w` waits for other
workers, which the file names; `environment` is the token of its variables, or `0`.
A ticket stays until the shim of its worker holds its liveness lock, so a worker is always in the queue or guarded.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence

from agentctl.adapters.files import read_json, set_aside, storage_errors, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TreeDir, WorkerDir
from agentctl.domain.names import WorkerId, is_name
from agentctl.errors import Damaged
from agentctl.supervision.worker import environment

#: No honest queue gets this far. A larger, forged age is not counted from, since soon none would be left behind it.
_MOST_AGE = 10**11
LOWEST, HIGHEST = -4000, 4000
#: Ends the name of a ticket whose worker is not in the log yet. With this extra dot it is not a ticket.
UNSEEN = ".new"
#: The exact form of a ticket's name: a worker, or the author of a cloned repository, may put any file into a queue.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
_FORM = rf"\d{{4}}\.\d{{12}}\.(?:0|[0-9a-f]{{16}})\.[rw]\.{_NAME}\.{_NAME}"
_TICKET, _TICKETS = re.compile(_FORM, re.ASCII), re.compile(rf"(?:{_FORM}/)*+", re.ASCII)


class Ticket(str):
    """A worker's place in the queue: the name of a file. Names sort like the queue, so few of them are taken apart."""

    __slots__ = ()

    @property
    def age(self) -> int:
        """Roughly how many tickets came before it."""
        return int(self.split(".")[1])

    @property
    def environment(self) -> str:
        """The token of its environment."""
        return self.split(".")[2]

    @property
    def waits(self) -> bool:
        """Whether it waits for other workers."""
        return ".w." in self

    @property
    def task_id(self) -> str:
        """The task of its worker."""
        return self.split(".")[4]

    @property
    def instance(self) -> str:
        """Its worker."""
        return self.split(".")[5]

    @property
    def worker_id(self) -> WorkerId:
        """The task and the name of its worker."""
        parts = self.split(".")
        return WorkerId(parts[4], parts[5])

    def with_environment(self, token: str) -> Ticket:
        """Return the ticket with another environment."""
        parts = self.split(".")
        return Ticket(".".join([*parts[:2], token, *parts[3:]]))

    def of_one_that_ran(self, token: str) -> Ticket:
        """Return the ticket for the same place in the queue of a worker that no longer waits for others."""
        parts = self.split(".")
        return Ticket(".".join([*parts[:2], token, "r", *parts[4:]]))


def parse_ticket(name: str) -> Ticket | None:
    """Return the ticket with this file name; None if it is not the name of a ticket."""
    return Ticket(name) if _TICKET.fullmatch(name) else None


def read_names(tree: TreeDir) -> list[str]:
    """Return the names of all files of the queue, in its order; not every file is a ticket."""
    try:
        names = os.listdir(tree.queue)
    except (FileNotFoundError, NotADirectoryError):
        return []
    names.sort()
    return names


def read_queue(tree: TreeDir) -> list[Ticket]:
    """Return all tickets in the order of the queue."""
    names = read_names(tree)
    if not _TICKETS.fullmatch("/".join([*names, ""])):  # One match for all takes half the time of one for each.
        names = list(filter(_TICKET.fullmatch, names))
    return list(map(Ticket, names))


def instances_by_task(queue: Iterable[Ticket]) -> dict[str, set[str]]:
    """Return the workers that have tickets, by their tasks."""
    found: dict[str, set[str]] = {}
    for ticket in queue:
        found.setdefault(ticket.task_id, set()).add(ticket.instance)
    return found


def some_wait(names: Sequence[str]) -> bool:
    """Return whether any ticket waits for other workers: one search through all names."""
    return ".w." in "/".join(names)


def next_age(queue: Sequence[Ticket]) -> int:
    """Return an age behind the whole queue. Ages are counted; they are not times, since the clock may be set back."""
    return max((ticket.age for ticket in queue if ticket.age < _MOST_AGE), default=0) + 1


def make_ticket(task_id: str, instance: str, priority: int, age: int, environment: str, waits: bool) -> Ticket:
    """Return the ticket of a worker; a larger `priority` comes earlier."""
    return Ticket(f"{HIGHEST - priority:04d}.{age:012d}.{environment}.{'w' if waits else 'r'}.{task_id}.{instance}")


def write_ticket(tree: TreeDir, ticket: Ticket, after: Sequence[str], after_any: bool) -> None:
    """Write a ticket under a name that does not count yet (the caller holds the queue's lock)."""
    path = tree.queue / (ticket + UNSEEN)
    if ticket.waits:
        write_whole(path, to_json({"after": list(after), "any": after_any}), durable=False)
    else:
        with storage_errors(path, "write"):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def show_ticket(tree: TreeDir, ticket: Ticket) -> None:
    """Put a written ticket into the queue (the caller makes the folder durable)."""
    with storage_errors(tree.queue, "write to"):
        os.rename(tree.queue / (ticket + UNSEEN), tree.queue / ticket)


def show_left_behind(tree: TreeDir, worker_id: WorkerId) -> bool:
    """Show a ticket whose writer was killed before it could do that; return whether the worker has a ticket."""
    for name in read_names(tree):
        ticket = parse_ticket(name.removesuffix(UNSEEN))
        if ticket is not None and ticket.worker_id == worker_id:
            if name.endswith(UNSEEN):
                with contextlib.suppress(FileNotFoundError):  # Another process was faster.
                    show_ticket(tree, ticket)
            return True
    return False


def remove_ticket(tree: TreeDir, ticket: Ticket) -> bool:
    """Take a ticket out of the queue; return whether it was there."""
    for name in (ticket, ticket + UNSEEN):
        try:
            os.unlink(tree.queue / name)
        except FileNotFoundError:
            continue
        except (IsADirectoryError, PermissionError):  # EPERM: what unlink(2) gives for a folder on other systems.
            set_aside(tree.queue / name)
        return True
    return False


def tickets_of(tree: TreeDir, worker: WorkerDir) -> list[Ticket]:
    """Return the tickets of a worker; a killed writer may have left it two."""
    me = worker.id
    return [ticket for ticket in read_queue(tree) if ticket.worker_id == me]


def take_out(tree: TreeDir, tickets: Iterable[Ticket], folder: FilePath) -> None:
    """Remove tickets permanently, with their environments; the caller holds the queue's lock.

    The worker's end must be decided before: without a ticket and an end, it would count as never started.
    """
    tokens = {environment.NO_ENVIRONMENT: False}
    for ticket in tickets:
        remove_ticket(tree, ticket)
        tokens.setdefault(ticket.environment, True)
    tokens.update((ticket.environment, False) for ticket in read_queue(tree))
    for token in filter(tokens.get, tokens):
        environment.drop(folder, token)


def forget_environment(token: str, folder: FilePath, names: Sequence[str]) -> None:
    """Drop an environment from memory once no ticket of the queue names it (the caller holds the queue's lock)."""
    if token != environment.NO_ENVIRONMENT and not any(f".{token}." in name and parse_ticket(name) for name in names):
        environment.drop(folder, token)


def dependencies_of(tree: TreeDir, ticket: Ticket) -> tuple[list[str], bool]:
    """Return the workers that a ticket waits for, and whether any end of these will do."""
    if not ticket.waits:
        return [], False
    value = read_json(tree.queue / ticket) or {}
    names = value.get("after", [])
    if not isinstance(names, list) or not all(isinstance(name, str) and is_name(name) for name in names):
        raise Damaged(f"{tree.queue / ticket} does not list the workers to wait for")
    return names, bool(value.get("any"))
