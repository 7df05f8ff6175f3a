"""The limits of a task (`config` in task.yaml): defaults and ranges; and the default size of a printed result."""

from __future__ import annotations

from collections.abc import Mapping

from agentctl.domain.names import camel
from agentctl.lean import Any, NamedTuple

GIB = 1 << 30
#: How much of a result is returned where the caller sets no other bound.
RESULT_BYTES = 4000
#: The largest `maxDepth`.
DEEPEST = 64
#: A day more than the longest usage window of an account, which is a week.
LONGEST_PARK_S = 8 * 86_400
#: The largest `graceSeconds`.
LONGEST_GRACE_S = 3600


class Limits(NamedTuple):
    """The limits that every worker of a task is held to; times in seconds."""

    #: 0 holds the queue: nothing is started.
    max_concurrent_agents: int = 5
    timeout_seconds: float = 3600
    grace_seconds: float = 5
    max_depth: int = 1
    max_output_bytes: int = GIB
    #: How long an agent program may keep retrying without any progress.
    retry_ceiling_seconds: float = 60
    #: A worker counts as stalled after this long without output.
    stall_seconds: float = 300
    #: For a whole tree of tasks, set in its root task; 0 means no limit. Tokens: input and output, without cached.
    max_tokens: int = 0
    max_cost_usd: float = 0
    max_workers: int = 0
    #: Limits the time during which at least one worker of the tree was at work.
    max_wall_seconds: float = 0
    #: After this many failures in a row (0: never) an agent is not started for the cool-down below.
    breaker_failures: int = 5
    breaker_cooldown_seconds: float = 300
    #: How long an account is on hold after a rate limit; doubled each time a worker meets another. 0: not at all.
    cooldown_seconds: float = 60
    #: How long a stopped worker may wait for its account before it fails.
    max_park_seconds: float = LONGEST_PARK_S

    @property
    def has_budget(self) -> bool:
        """Return whether the tree as a whole has a limit."""
        return any((self.max_tokens, self.max_cost_usd, self.max_workers, self.max_wall_seconds))

    def to_json(self) -> dict[str, float]:
        """Return the limits under their names in task.yaml."""
        return {KEYS[name]: value for name, value in self._asdict().items()}

    def of_tree(self) -> dict[str, float]:
        """Return the limits of the whole tree, as a worker's spec keeps them."""
        return {KEYS[name]: getattr(self, name) for name in _OF_TREE}

    def no_looser_than(self, held: Mapping[str, Any]) -> Limits:
        """Return the limits, made no looser than `held`, which an earlier `of_tree` returned.

        >>> held = Limits(max_depth=1, max_workers=3).of_tree()
        >>> Limits(max_depth=9, max_workers=0, max_tokens=5).no_looser_than(held)._asdict()["max_workers"]
        3
        """
        found: dict[str, Any] = {name: _stricter(name, getattr(self, name), held.get(KEYS[name])) for name in _OF_TREE}
        return self._replace(**found)


KEYS = {name: camel(name) for name in Limits._fields}
FIELDS = {key: name for name, key in KEYS.items()}
#: The limits of a tree of tasks, and those of a worker that no call can choose. A worker, and what it starts, is held
#: to them as they were when it was started.
_OF_TREE = (
    "max_concurrent_agents", "max_depth", "max_tokens", "max_cost_usd", "max_workers", "max_wall_seconds",
    "max_output_bytes", "breaker_failures", "breaker_cooldown_seconds",
)  # fmt: skip

#: key -> (smallest, largest, whole numbers only)
_RANGES: dict[str, tuple[float, float, bool]] = {
    "maxConcurrentAgents": (0, 10_000, True),
    "timeoutSeconds": (0.001, 365 * 86_400, False),
    "graceSeconds": (0, LONGEST_GRACE_S, False),
    "maxDepth": (0, DEEPEST, True),
    "maxOutputBytes": (1, 1 << 50, True),
    "retryCeilingSeconds": (0, 86_400, False),
    "stallSeconds": (0.001, 365 * 86_400, False),
    "maxTokens": (0, 10**15, True),
    "maxCostUsd": (0, 1e9, False),
    "maxWorkers": (0, 1_000_000, True),
    "maxWallSeconds": (0, 365 * 86_400, False),
    "breakerFailures": (0, 1000, True),
    "breakerCooldownSeconds": (0, 86_400, False),
    "cooldownSeconds": (0, 3600, False),
    "maxParkSeconds": (0, LONGEST_PARK_S, False),
}


def _stricter(name: str, now: float, held: Any) -> float:
    if isinstance(held, bool) or not isinstance(held, int | float):
        return now
    if name == "max_depth":
        return min(now, held)
    if name == "breaker_cooldown_seconds":
        return max(now, held)
    # 0 sets no limit; as a cap it holds the queue, and that is looked up anew each time.
    return min((limit for limit in (now, held) if limit), default=0)


class BadLimit(ValueError):
    """A key of `config` that does not exist, or a value that it cannot have."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def check_limit(key: str, value: Any) -> float:
    """Return the value of one limit, or raise `BadLimit`."""
    if key not in _RANGES:
        raise BadLimit(key, f"unknown key {key!r}; known: {', '.join(_RANGES)}")
    low, high, whole = _RANGES[key]
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        raise BadLimit(key, f"{key} must be {kind} from {low:g} to {high:g}, not {value!r}")
    return value


def limits_from(config: Mapping[str, Any], base: Limits | None = None) -> Limits:
    """Return `base` (or the defaults), overridden by the keys of `config`, each checked.

    >>> limits_from({"maxDepth": 3}).max_depth
    3
    """
    checked = {key: check_limit(key, value) for key, value in config.items()}
    values: dict[str, Any] = {FIELDS[key]: value for key, value in checked.items()}
    return (base or Limits())._replace(**values)
