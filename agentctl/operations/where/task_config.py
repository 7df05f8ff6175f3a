"""Reads what the head of a task.yaml says, which is parsed again only when it has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentctl.adapters.document import Document
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml import cache, reader, roster
from agentctl.adapters.taskyaml.cache import TaskConfig
from agentctl.domain.tree.limits import DEEPEST, Limits
from agentctl.errors import AgentctlError, Next, NotFound, UsageError
from agentctl.operations.where.ownership import is_own

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
        raise NotFound(f"{task.task_file} is missing", hint=Next("tasks")) from None
    found = cache.cached(task, head)
    return found if found is not None else _parse(task, head)


def _parse(task: TaskDir, head: bytes) -> TaskConfig:
    is_ours = is_own(task)
    if len(head) > _MOST_OF_OTHERS and not is_ours:
        raise UsageError(f"{task.task_file} is larger than {_MOST_OF_OTHERS} bytes, and was not made here by you")
    from agentctl.adapters.yamldoc import parse_yaml  # Only here: a hot path with a valid cache loads no YAML.

    found = _understood(parse_yaml(Path(task.task_file), head))
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
    said = {field: read(document) for field, read in _IN_CONFIG.items()}
    return TaskConfig(**said, **cache.checked_fields(document.value, but=said))


def _limits(document: Document) -> Limits:
    # Where a sub-task has no maxDepth, those of the tasks above it apply.
    base = Limits(max_depth=DEEPEST) if cache.name_or_none(document.at("parentTaskId")) else None
    return reader.read_limits(document, base)


def _named_targets(document: Document) -> tuple[str, ...]:
    if document.at("config", reader.NOTIFY) is None:
        return ()
    from agentctl.adapters.taskyaml.notifying import read_namings  # Few tasks name any.

    return tuple(map(str, read_namings(document)))


def _running(document: Document) -> Mapping[str, Any]:
    if document.at("config", reader.RUNNER) is None and document.at("config", reader.RESOURCES) is None:
        return {}
    from agentctl.adapters.taskyaml.running import read_resources  # Few tasks say anything about it.

    return read_resources(document, document.value["config"])


#: Field of a `TaskConfig` -> how it is read from `config`, the limits first: they check what `config` is. All others
#: stand in the head as they do in `config.json`.
_IN_CONFIG: dict[str, Callable[[Document], Any]] = {
    "limits": _limits,
    "permissions": reader.read_permissions,
    "children_at_end": reader.read_children_at_end,
    "notify": _named_targets,
    "queueing": reader.read_queueing,
    "running": _running,
}


def usable_config(task: TaskDir) -> TaskConfig:
    """Return what task.yaml says; while it cannot be read (somebody is saving it), what it said last."""
    try:
        return read_config(task)
    except AgentctlError:
        return cache.cached(task) or TaskConfig(limits=Limits())
