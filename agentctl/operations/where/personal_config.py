"""Reads a person's own config.yaml, which need not exist: what each section says, and whether it counts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agentctl.adapters.document import Document
from agentctl.adapters.files import storage_errors
from agentctl.adapters.known import known_files
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import check_closed, config_folder
from agentctl.adapters.taskdir import TreeDir
from agentctl.adapters.taskyaml import reader
from agentctl.errors import AgentctlError, Refused, UsageError
from agentctl.supervision.worker.environment import store_folder, switch_of

if TYPE_CHECKING:
    from agentctl.adapters.taskyaml.notifying import PersonalNotify
    from agentctl.domain.hosts import CommandHost

T = TypeVar("T")


class Section(Generic[T]):
    """A part of the file.

    Args:
        read: Returns what a file says in this section, or what holds where it has none.
        powers: The keys that say what is allowed or run: they count only where nobody else can write the file.
    """

    def __init__(self, key: str, read: Callable[[Document], T], powers: tuple[str, ...] = ()) -> None:
        self.key = key
        self.read = read
        self.powers = powers


def section(which: Section[T]) -> T:
    """Return what a section of the file says.

    Raises:
        UsageError: It is not well-formed; or others can write the file, and the section says what is allowed or run.
    """
    path = personal_file()
    found = _read(path)
    if found is None:
        return which.read(Document(path, {}, {}))
    data, status = found
    document = _parsed(path, data)
    power = next((keys for keys in which.powers if document.at(*keys.split(".")) is not None), None)
    if power is not None:
        check_closed(path, status, f"sets {power}")
    return which.read(document)


def personal_file() -> Path:
    """Return the path of the file."""
    return Path(config_folder(os.environ)) / "config.yaml"


def may_be_told(tree: TreeDir) -> bool:
    """Return whether a person may want to be told of a tree of tasks: they have the file, or had one.

    Two looks at the disk, so that the others load nothing of what tells.
    """
    try:
        return FilePath(personal_file()).exists() or switch_of(store_folder(), tree.nonce()).exists()
    except Refused:  # No place in memory: nothing is told.
        return False
    except (AgentctlError, OSError):  # It cannot be known: what tells finds out, and says so.
        return True


# -- the file ----------------------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[bytes, os.stat_result] | None:
    """Return the content of the file, and who can write what was read; None where there is no file."""
    try:
        with storage_errors(path, "read"), open(path, "rb") as file:
            return file.read(), os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="it holds your own defaults") from error


def _parsed(path: Path, data: bytes) -> Document:
    known = known_files(os.environ)
    says = known.said("config", path, data)
    if says is not None:
        return Document(path, says, {})
    document = _parse(path, data)
    with contextlib.suppress(UsageError):  # It is not cached: a caller that needs the wrong key gets the error.
        for one in _SECTIONS:
            if one.key in document.value:
                one.read(document)
        known.keep("config", path, data, document.value)
        known.save()
    return document


def _parse(path: Path, data: bytes) -> Document:
    from agentctl.adapters.yamldoc import parse_yaml  # Only for people who have such a file, and have changed it.

    document = parse_yaml(path, data)
    document.check_keys((), document.value, [one.key for one in _SECTIONS])
    return document


# -- its sections ------------------------------------------------------------------------------------------------------


def _defaults(document: Document) -> dict[str, Any]:
    reader.read_limits(document)
    reader.read_queueing(document)
    config = dict(document.value.get("config") or {})
    if reader.RUNNER in config or reader.RESOURCES in config:
        from agentctl.adapters.taskyaml.running import read_resources  # Few people say anything about it.

        read_resources(document, config)
    return config


def _driver_order(document: Document) -> Iterable[str]:
    from agentctl.drivers.registry import AGENT_DRIVERS, TESTED_DRIVERS, is_agent_driver

    key = DRIVER_ORDER.key
    if key not in document.value:
        return TESTED_DRIVERS
    order = document.value[key]
    if not isinstance(order, list) or not order or not all(is_agent_driver(str(name)) for name in order):
        known = ", ".join(AGENT_DRIVERS)
        raise document.error((key,), f"{key} must be a list of {known}")
    return [str(name) for name in order]


def _notify(document: Document) -> PersonalNotify:
    from agentctl.adapters.taskyaml.notifying import read_notify  # Few people define targets.

    return read_notify(document)


def _runners(document: Document) -> dict[str, dict[str, Any]]:
    from agentctl.adapters.taskyaml.running import read_runners

    return read_runners(document)


def _hosts(document: Document) -> dict[str, CommandHost]:
    from agentctl.adapters.taskyaml.hosts import read_hosts  # Few people define hosts.

    return read_hosts(document)


#: What new tasks get in their own `config`.
DEFAULTS = Section("config", _defaults, ("config.permissions", "config.runner", "config.resources"))
#: The order in which the drivers are tried.
DRIVER_ORDER = Section("driverOrder", _driver_order)
#: The targets of notices.
NOTIFY = Section(reader.NOTIFY, _notify, (reader.NOTIFY,))
#: Settings of each runner, under the fields of a placement.
RUNNERS = Section(reader.RUNNERS, _runners, (reader.RUNNERS,))
#: Other machines, by their names.
HOSTS = Section(reader.HOSTS, _hosts, (reader.HOSTS,))
_SECTIONS: tuple[Section[Any], ...] = (DEFAULTS, DRIVER_ORDER, NOTIFY, RUNNERS, HOSTS)
