"""What a worker is to do (`spec.json`): written once, before anything of it runs."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.adapters.files import AnyPath, read_json
from agentctl.domain.limits import Limits
from agentctl.errors import Damaged
from agentctl.lean import Any, NamedTuple


class WorkerSpec(NamedTuple):
    """A worker's order; times in seconds. Holds the names, never the values, of its environment."""

    instance: str
    agent: str
    argv: list[str]
    cwd: str
    env_names: list[str]
    timeout_s: float
    grace_s: float
    max_output_bytes: int
    umask: int = 0o077
    priority: int = 0
    after: Sequence[str] = ()
    #: Start once those of `after` have ended, whatever their end.
    after_any: bool = False
    retries: int = 0
    #: The pause before the second attempt; it doubles with each, with jitter.
    retry_delay_s: float = 1.0
    keep_children: bool = False
    parent: str | None = None
    depth: int = 0
    key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it under the names of the file."""
        return {name: getattr(self, field) for field, name in _NAMES.items()}


_NAMES = {
    "instance": "agentInstance",
    "agent": "agent",
    "argv": "argv",
    "cwd": "cwd",
    "env_names": "envNames",
    "timeout_s": "timeoutSeconds",
    "grace_s": "graceSeconds",
    "max_output_bytes": "maxOutputBytes",
    "umask": "umask",
    "priority": "priority",
    "after": "after",
    "after_any": "afterAny",
    "retries": "retries",
    "retry_delay_s": "retryDelaySeconds",
    "keep_children": "keepChildren",
    "parent": "parent",
    "depth": "depth",
    "key": "key",
}


def grace_of(path: AnyPath) -> float:
    """Return a worker's grace period; the default where its spec was removed or damaged."""
    try:
        return read_spec(path).grace_s
    except Damaged:
        return Limits().grace_seconds


def read_spec(path: AnyPath) -> WorkerSpec:
    """Return the spec in a file.

    Raises:
        Damaged: There is none, or it lacks a field.
    """
    value = read_json(path)
    if value is None:
        raise Damaged(f"{path} is missing", hint="agentctl doctor")
    try:
        return WorkerSpec(**{field: value[name] for field, name in _NAMES.items()})
    except KeyError as error:
        raise Damaged(f"{path} lacks {error}", hint="agentctl doctor") from error
