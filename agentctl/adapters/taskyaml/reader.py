"""Reads and checks the keys of `config` in the head of task.yaml. Errors name file, line and key."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.adapters.document import Document
from agentctl.domain.states import ChildrenAtEnd
from agentctl.domain.tree.limits import BadLimit, Limits, limits_from
from agentctl.errors import UsageError

PERMISSIONS = "permissions"
CHILDREN_AT_END = "childrenAtEnd"
NOTIFY = "notify"
#: Sections of a person's config.yaml, as `notify` is one.
RUNNERS, HOSTS = "runners", "hosts"
#: What runs the workers of a task, and what they need there.
RUNNER, RESOURCES = "runner", "resources"
#: Whether a start waits for a slot where nobody says.
QUEUE = "queue"
#: Keys of `config` that are not limits; each is checked when the task is read.
OTHER_KEYS = frozenset({PERMISSIONS, CHILDREN_AT_END, NOTIFY, QUEUE, RUNNER, RESOURCES})


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
    value = document.at("config", PERMISSIONS)
    if value is None:
        return ()
    from agentctl.domain.agent.permissions import parse_policy  # Few tasks have rules.

    try:
        return tuple(parse_policy(value, PERMISSIONS))
    except UsageError as error:
        raise document.error(("config", PERMISSIONS), error.message) from error


def read_queueing(document: Document) -> bool:
    """Return the document's `config.queue`: whether a start waits for a slot unless it is told not to."""
    value = (document.value.get("config") or {}).get(QUEUE, False)
    if not isinstance(value, bool):
        raise document.error(("config", QUEUE), f"{QUEUE} must be true or false, not {value!r}")
    return value


def read_children_at_end(document: Document) -> ChildrenAtEnd:
    """Return the document's `config.childrenAtEnd`."""
    value = (document.value.get("config") or {}).get(CHILDREN_AT_END, ChildrenAtEnd.WAIT)
    try:
        return ChildrenAtEnd(value)
    except ValueError:
        known = ", ".join(ChildrenAtEnd)
        problem = f"{CHILDREN_AT_END} must be one of {known}, not {value!r}"
        raise document.error(("config", CHILDREN_AT_END), problem) from None
