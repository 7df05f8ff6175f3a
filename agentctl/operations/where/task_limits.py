"""Reads the limits of a task from task.yaml, which is parsed again only when its head has changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.adapters.document import Document
from agentctl.adapters.known import known_files
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import closing_step, config_folder, is_ones_own
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml import cache, reader, roster
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.domain.limits import DEEPEST, Limits
from agentctl.errors import AgentctlError, NotFound, Refused, UsageError
from agentctl.operations.where.ownership import is_own
from agentctl.supervision.worker.environment import store_folder, switch_of

if TYPE_CHECKING:
    from agentctl.adapters.taskyaml.notifying import PersonalNotify
    from agentctl.domain.hosts import CommandHost

#: Keys of `config` that may allow something, or say what is run.
_POWERS = (reader.PERMISSIONS, reader.RUNNER, reader.RESOURCES)
#: YAML of a quarter of a megabyte can take three seconds.
_MOST_OF_OTHERS = 16 << 10


def read_config(task: TaskDir) -> TaskConfig:
    """Return what the head of task.yaml says now; it is parsed only if it differs from the one parsed last.

    Raises:
        UsageError: It cannot be read; the message names file, line and key.
    """
    try:
        head = roster.read_head(task)
    except FileNotFoundError:
        raise NotFound(f"{task.task_file} is missing", hint="agentctl tasks lists what is there") from None
    found = cache.cached(task, head)
    return found if found is not None else _parse(task, head)


def _parse(task: TaskDir, head: bytes) -> TaskConfig:
    is_ours = is_own(task)
    if len(head) > _MOST_OF_OTHERS and not is_ours:
        raise UsageError(f"{task.task_file} is larger than {_MOST_OF_OTHERS} bytes, and was not made here by you")
    from agentctl.adapters.yamldoc import parse  # Only here: a hot path with a valid cache loads no YAML.

    found = _understood(parse(Path(task.task_file), head))
    if is_ours:
        _keep(task, head, found)
    return found


def keep_config(task: TaskDir, head: bytes, value: dict[str, Any]) -> None:
    """Cache `value` as the content of a head that was just written to an own task, so that nobody has to parse it."""
    _keep(task, head, _understood(Document(Path(task.task_file), value, {})))


def _keep(task: TaskDir, head: bytes, found: TaskConfig) -> None:
    with contextlib.suppress(AgentctlError, OSError):  # A read-only folder: parsed again next time.
        cache.store(task, head, found)


def _understood(document: Document) -> TaskConfig:
    text = {key: value for key, value in document.value.items() if isinstance(value, str)}
    # Where a sub-task has no maxDepth, those of the tasks above it apply.
    base = Limits(max_depth=DEEPEST) if text.get("parentTaskId") else None
    return TaskConfig(
        limits=reader.read_limits(document, base),
        title=str(document.value.get("title") or ""),
        parent_task_id=cache.named(text.get("parentTaskId")),
        root_task_id=cache.named(text.get("rootTaskId")),
        parent_instance=cache.named(text.get("parentInstance")),
        agent=text.get("agent"),
        author=cache.named(text.get("author")),
        created_at=text.get("createdAt"),
        permissions=reader.read_permissions(document),
        children_at_end=reader.read_children_at_end(document),
        notify=_named_targets(document),
        running=_running_in(document),
    )


def _named_targets(document: Document) -> tuple[str, ...]:
    if (document.value.get("config") or {}).get(reader.NOTIFY) is None:
        return ()
    from agentctl.adapters.taskyaml.notifying import read_namings  # Few tasks name any.

    return tuple(map(str, read_namings(document)))


def _running_in(document: Document) -> dict[str, Any]:
    config = document.value.get("config") or {}
    if config.get(reader.RUNNER) is None and config.get(reader.RESOURCES) is None:
        return {}
    from agentctl.adapters.taskyaml.running import read_resources  # Few tasks say anything about it.

    return read_resources(document, config)


def usable_config(task: TaskDir) -> TaskConfig:
    """Return what task.yaml says; while it cannot be read (somebody is saving it), what it said last."""
    try:
        return read_config(task)
    except AgentctlError:
        return cache.cached(task) or TaskConfig(limits=Limits())


def personal_defaults() -> dict[str, Any]:
    """Return the limits in a person's ~/.config/agentctl/config.yaml; a new task gets them in its own file.

    Raises:
        UsageError: It is not well-formed; or others can write the file, and it says what is allowed, or what is run.
    """
    document = _personal()
    reader.read_limits(document)
    config = dict(document.value.get("config") or {})
    power = next((key for key in _POWERS if config.get(key) is not None), None)
    if power is not None and not is_ones_own(os.stat(document.path)):
        raise UsageError(
            f"{document.path} says {power} for new tasks, and others can write it", hint=closing_step(document.path)
        )
    return config


def driver_order() -> Iterable[str]:
    """Return the order in which a person wants the drivers tried: `driverOrder` in their config.yaml."""
    return _order_in(_personal())


def _order_in(document: Document) -> Iterable[str]:
    from agentctl.drivers.registry import AGENT_DRIVERS, TESTED_DRIVERS, is_agent_driver

    if reader.DRIVER_ORDER not in document.value:
        return TESTED_DRIVERS
    order = document.value[reader.DRIVER_ORDER]
    if not isinstance(order, list) or not order or not all(is_agent_driver(str(name)) for name in order):
        known = ", ".join(AGENT_DRIVERS)
        raise document.error((reader.DRIVER_ORDER,), f"{reader.DRIVER_ORDER} must be a list of {known}")
    return [str(name) for name in order]


def may_be_told(root_task: TaskDir) -> bool:
    """Return whether a person may want to be told of a tree of tasks: they have a config.yaml, or had one.

    Two looks at the disk, so that the others load nothing of what tells.
    """
    try:
        return FilePath(personal_file()).exists() or switch_of(store_folder(), root_task.nonce()).exists()
    except Refused:  # No place in memory: nothing is told.
        return False
    except (AgentctlError, OSError):  # It cannot be known: what tells finds out, and says so.
        return True


def personal_notify() -> PersonalNotify:
    """Return the targets that a person has defined: `notify` in their config.yaml.

    Raises:
        UsageError: It is not well-formed, or others can write the file: it says what is run.
    """
    from agentctl.adapters.taskyaml.notifying import PersonalNotify, read_notify

    document = _personal()
    if document.value.get(reader.NOTIFY) is None:
        return PersonalNotify()
    if not is_ones_own(os.stat(document.path)):
        raise UsageError(
            f"{document.path} defines targets (notify), and others can write it", hint=closing_step(document.path)
        )
    return read_notify(document)


def personal_hosts() -> dict[str, CommandHost]:
    """Return the hosts that a person has defined, by their names: `hosts` in their config.yaml.

    Raises:
        UsageError: It is not well-formed, or others can write the file: it says what is run on other machines.
    """
    document = _personal()
    if document.value.get(reader.HOSTS) is None:
        return {}
    if not is_ones_own(os.stat(document.path)):
        raise UsageError(f"{document.path} defines hosts, and others can write it", hint=closing_step(document.path))
    from agentctl.adapters.taskyaml.hosts import read_hosts

    return read_hosts(document)


def personal_runners() -> dict[str, dict[str, Any]]:
    """Return a person's settings of runners: `runners` in their config.yaml, under the fields of a placement.

    Raises:
        UsageError: It is not well-formed, or others can write the file: it says what is run on nodes.
    """
    document = _personal()
    if document.value.get(reader.RUNNERS) is None:
        return {}
    if not is_ones_own(os.stat(document.path)):
        raise UsageError(f"{document.path} sets up runners, and others can write it", hint=closing_step(document.path))
    from agentctl.adapters.taskyaml.running import read_runners

    return read_runners(document)


def _personal() -> Document:
    """Return a person's config.yaml; an empty one where there is none."""
    path, known = personal_file(), known_files(os.environ)
    data = reader.read_personal(path)
    says = {} if data is None else known.said("config", path, data)
    if data is None or says is not None:
        return Document(path, says or {}, {})
    document = reader.parse_personal(path, data)
    with contextlib.suppress(UsageError):  # It is not cached: a caller that needs the wrong key gets the error.
        reader.read_limits(document)
        _order_in(document)
        if reader.NOTIFY in document.value:
            from agentctl.adapters.taskyaml.notifying import read_notify  # Few people define targets.

            read_notify(document)
        if reader.HOSTS in document.value:
            from agentctl.adapters.taskyaml.hosts import read_hosts  # Few people define hosts.

            read_hosts(document)
        if reader.RUNNERS in document.value:
            from agentctl.adapters.taskyaml.running import read_runners

            read_runners(document)
        _running_in(document)
        known.keep("config", path, data, document.value)
        known.save()
    return document


def personal_file() -> Path:
    """Return the path of a person's defaults."""
    return Path(config_folder(os.environ)) / "config.yaml"
