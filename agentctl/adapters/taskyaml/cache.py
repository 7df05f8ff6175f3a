"""The configuration of a task as it was parsed last, for shims and hot paths, which read no YAML.

`config.json` beside task.yaml holds the parsed head and its limits; the code that parses task.yaml writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping

from agentctl.adapters.files import read_known, storage_errors, to_json, write_whole
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.names import is_name
from agentctl.domain.states import ChildrenAtEnd
from agentctl.domain.tree.limits import KEYS, BadLimit, Limits, limits_from
from agentctl.lean import Any, NamedTuple


class TaskConfig(NamedTuple):
    """What the head of task.yaml says."""

    limits: Limits
    title: str = ""
    parent_task_id: str | None = None
    root_task_id: str | None = None
    #: Of a sub-task: the worker that asked for it, and the only agent that works on it.
    parent_instance: str | None = None
    agent: str | None = None
    #: Who asked for it: a worker, or `user`.
    author: str | None = None
    created_at: str | None = None
    #: The rules of `config.permissions`, for the task's agents.
    permissions: tuple[dict[str, str], ...] = ()
    children_at_end: ChildrenAtEnd = ChildrenAtEnd.WAIT
    #: The targets that `config.notify` names: `phone`, `phone:blocked,failed`.
    notify: tuple[str, ...] = ()
    #: Of a root task: whether starts in its tree wait for a slot unless they are told not to (`config.queue`).
    queueing: bool = False
    #: What `config.runner` and `config.resources` say: fields of a placement.
    running: Mapping[str, Any] = {}


def name_or_none(value: object) -> str | None:
    """Return `value` if it is the name of a task or a worker, else None: a path would lead out of the root."""
    return value if isinstance(value, str) and is_name(value) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false, not {value!r}")
    return value


def _known_limits(value: Mapping[str, Any]) -> Limits:
    """Return the limits in `config`; those that only a newer agentctl has are skipped."""
    return limits_from({key: value[key] for key in KEYS.values() if key in value})


#: Field of a `TaskConfig` -> (its key in `config.json`, what checks its value).
_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "limits": ("config", _known_limits),
    "title": ("title", lambda value: str(value or "")),
    "parent_task_id": ("parentTaskId", name_or_none),
    "root_task_id": ("rootTaskId", name_or_none),
    "parent_instance": ("parentInstance", name_or_none),
    "agent": ("agent", _text),
    "author": ("author", name_or_none),
    "created_at": ("createdAt", _text),
    "permissions": ("permissions", tuple),
    "children_at_end": ("childrenAtEnd", ChildrenAtEnd),
    "notify": ("notify", lambda value: tuple(map(str, value))),
    "queueing": ("queue", _flag),
    "running": ("running", dict),
}


class _Known(NamedTuple):
    """A `config.json` as this process has read it."""

    version: tuple[int, int] | None
    #: None where a key is missing: an older agentctl, which has left it out, may have read less than the head says.
    head: str | None
    config: TaskConfig | None


#: By path: a shim reads it twice for each worker, and a sub-task a dozen times for each task above it.
_KNOWN: dict[str, _Known] = {}
_MOST_KNOWN = 1000


def cached(task: TaskDir, head: bytes | None = None) -> TaskConfig | None:
    """Return the configuration that was parsed last; None where there is none, or it is not that of `head`."""
    version = config_version(task)
    known = _KNOWN.get(task.config_cache)
    if known is None or known.version != version:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[task.config_cache] = _read(task, version)
    is_of_head = head is None or known.head == head.decode("utf-8", "replace")
    return known.config if is_of_head else None


def _read(task: TaskDir, version: tuple[int, int] | None) -> _Known:
    value = read_known(task.config_cache)
    try:
        said = checked_fields(value)
        head = str(value.get("head")) if said.keys() == _FIELDS.keys() else None
        return _Known(version, head, TaskConfig(**said))
    except (BadLimit, KeyError, TypeError, ValueError, AttributeError):
        return _Known(version, None, None)


def config_version(task: TaskDir) -> tuple[int, int] | None:
    """Return a value that changes whenever another configuration is stored; None where there is none.

    Raises:
        StorageError: That cannot be known.
    """
    try:
        found = os.stat(task.config_cache)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        with storage_errors(task.config_cache, "look at"):
            raise
    return found.st_ino, found.st_mtime_ns


def checked_fields(values: Mapping[str, Any], but: Container[str] = ()) -> dict[str, Any]:
    """Return the fields whose keys are in `values`, each checked, but for those in `but`."""
    return {field: check(values[key]) for field, (key, check) in _FIELDS.items() if key in values and field not in but}


def store(task: TaskDir, head: bytes, config: TaskConfig) -> None:
    """Store a parsed configuration with the head that it was parsed from."""
    said = {**config._asdict(), "limits": config.limits.to_json()}
    value = {"head": head.decode(), **{_FIELDS[field][0]: value for field, value in said.items()}}
    write_whole(task.config_cache, to_json(value), durable=False)


def known_limits(task: TaskDir) -> Limits:
    """Return the limits that were parsed last; the defaults where none ever were."""
    config = cached(task)
    return config.limits if config else Limits()
