"""Reads and checks the keys of task.yaml's head and of a person's config.yaml. Errors name file, line and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentctl.adapters.document import Document
from agentctl.adapters.files import storage_errors
from agentctl.domain.limits import BadLimit, Limits, limits_from
from agentctl.domain.states import ChildrenAtEnd
from agentctl.errors import UsageError

PERMISSIONS = "permissions"
CHILDREN_AT_END = "childrenAtEnd"
DRIVER_ORDER, NOTIFY, RUNNERS, HOSTS = "driverOrder", "notify", "runners", "hosts"
#: What runs the workers of a task, and what they need there.
RUNNER, RESOURCES = "runner", "resources"
#: Keys of `config` that are not limits; each is checked when the task is read.
OTHER_KEYS = frozenset({PERMISSIONS, CHILDREN_AT_END, NOTIFY, RUNNER, RESOURCES})


def read_limits(document: Document, base: Limits | None = None) -> Limits:
    """Return the limits in the document's `config`, over `base`."""
    config = document.value.get("config")
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        raise document.error(("config",), "config must be a mapping of limits")
    try:
        return limits_from({key: value for key, value in config.items() if key not in OTHER_KEYS}, base)
    except BadLimit as error:
        raise document.error(("config", error.key), str(error)) from error


def read_permissions(document: Document) -> tuple[dict[str, str], ...]:
    """Return the rules of the document's `config.permissions`."""
    value = (document.value.get("config") or {}).get(PERMISSIONS)
    if value is None:
        return ()
    from agentctl.domain.permissions import parse_policy  # Few tasks have rules.

    try:
        return tuple(parse_policy(value, PERMISSIONS))
    except UsageError as error:
        raise document.error(("config", PERMISSIONS), error.message) from error


def read_children_at_end(document: Document) -> ChildrenAtEnd:
    """Return the document's `config.childrenAtEnd`."""
    value = (document.value.get("config") or {}).get(CHILDREN_AT_END, ChildrenAtEnd.WAIT)
    try:
        return ChildrenAtEnd(value)
    except ValueError:
        known = ", ".join(ChildrenAtEnd)
        problem = f"{CHILDREN_AT_END} must be one of {known}, not {value!r}"
        raise document.error(("config", CHILDREN_AT_END), problem) from None


def read_personal(path: Path) -> bytes | None:
    """Return the content of a person's config.yaml; None where there is none."""
    try:
        with storage_errors(path, "read"):
            return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="it holds your own defaults") from error


def parse_personal(path: Path, data: bytes) -> Document:
    """Return what a person's config.yaml says."""
    from agentctl.adapters.yamldoc import parse  # Only for people who have such a file, and have changed it.

    document = parse(path, data)
    known = ("config", DRIVER_ORDER, NOTIFY, RUNNERS, HOSTS)
    unknown = set(document.value) - set(known)
    if unknown:
        key = min(unknown)
        raise document.error((key,), f"unknown key {key!r}; known: {', '.join(known)}")
    return document
