"""Where a worker's processes run: here, or on a node on which an engine places them; and what was asked for there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.lean import Any, NamedTuple

#: The runner that needs no engine: the worker is a child of its shim.
LOCAL = "local"
#: Those that come with agentctl, beside it.
OWN_RUNNERS = ("slurm", "loopback")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_MEMORY = re.compile(r"[1-9][0-9]{0,11}[KMGT]", re.ASCII)
_GPUS = re.compile(r"(?:[A-Za-z0-9_.-]{1,64}:)?[1-9][0-9]{0,3}", re.ASCII)
_PARTITION = re.compile(r"[A-Za-z0-9_.-]{1,64}(?:,[A-Za-z0-9_.-]{1,64})*", re.ASCII)
_SPAN = re.compile(r"([1-9][0-9]{0,6})([smhd])", re.ASCII)
_CLOCK = re.compile(r"(?:([0-9]{1,4})-)?([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])", re.ASCII)
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_CPUS, _MOST_ARGS = 100_000, 100


#: What is asked for by one source (a command line, a definition, a task): fields of `Placement`.
Resources = dict[str, Any]


class Placement(NamedTuple):
    """How a worker is placed on a node: the runner, the resources that were asked for, and how the engine is asked."""

    runner: str
    cpus: int | None = None
    #: A whole number with a unit: 500M, 16G.
    memory: str | None = None
    #: A number, or TYPE:NUMBER.
    gpus: str | None = None
    #: After this long the engine itself ends it.
    time_s: int | None = None
    partition: str | None = None
    #: Passed to the engine as they are.
    args: Sequence[str] = ()
    #: How often the engine is asked, for all workers together.
    poll_s: float = 15.0
    #: A node that is silent for this long, and of which the engine says that it is gone, is lost.
    silence_s: float = 60.0
    #: The folder on a file system that the nodes see too; None: the worker's own folder lies on one.
    folder: str | None = None
    #: The interpreter on the nodes; None: at the same path as here.
    python: str | None = None
    #: How many workers beyond the slots may wait in the engine's queue.
    ahead: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as a spec keeps it."""
        return {name: value for name, value in self._asdict().items() if value not in (None, ())}


def placement_from(value: Mapping[str, Any]) -> Placement:
    """Return the placement in a spec; fields of a newer version are left out."""
    return Placement(**{name: value[name] for name in Placement._fields if name in value})


def check_runner(name: str, what: str = "runner") -> str:
    """Return the name of a runner if it can be one.

    Raises:
        UsageError: It cannot.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{what} must be the name of a runner, such as local or slurm, not {name!r}")
    return name


def check_resources(asked: Placement) -> None:
    """Raise `UsageError` where a resource is asked for in a way that no engine understands."""
    if asked.cpus is not None and not 1 <= asked.cpus <= _MOST_CPUS:
        raise UsageError(f"cpus must be from 1 to {_MOST_CPUS}, not {asked.cpus}")
    for what, value, form, example in (
        ("memory", asked.memory, _MEMORY, "500M or 16G"),
        ("gpus", asked.gpus, _GPUS, "1 or a100:2"),
        ("partition", asked.partition, _PARTITION, "short"),
    ):
        if value is not None and not form.fullmatch(value):
            raise UsageError(f"{what} must be like {example}, not {value!r}")
    if len(asked.args) > _MOST_ARGS or any("\0" in one or "\n" in one for one in asked.args):
        raise UsageError(
            WithArguments(Argument("runner_arg"), f" takes at most {_MOST_ARGS} arguments of one line each")
        )


#: The keys of `resources` in a file, and the fields that they become.
_KEYS = {"cpus": "cpus", "memory": "memory", "gpus": "gpus", "time": "time_s", "partition": "partition", "args": "args"}


def resources_from(value: Mapping[str, Any]) -> Resources:
    """Return what a mapping in a file asks for.

    Raises:
        UsageError: A key that does not exist, or a value that it cannot have; the message begins with the key.
    """
    found: Resources = {}
    for key, item in value.items():
        if key not in _KEYS:
            raise UsageError(f"{key} is not a resource; known: {', '.join(_KEYS)}")
        if item is not None:
            found[_KEYS[key]] = _resource(key, item)
    check_resources(Placement("", **found))
    return found


def _resource(key: str, item: Any) -> Any:
    if key == "cpus":
        if isinstance(item, bool) or not isinstance(item, int):
            raise UsageError(f"cpus must be a whole number, not {item!r}")
        return item
    if key == "args":
        if not isinstance(item, list) or not all(isinstance(one, str) for one in item):
            raise UsageError(f"args must be a list of texts, not {item!r}")
        return list(item)
    if key == "gpus" and isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if not isinstance(item, str):
        raise UsageError(f"{key} must be text, not {item!r}")
    return seconds_of(item) if key == "time" else item


def seconds_of(text: str) -> int:
    """Return the seconds of a time as `--time` takes it.

    A number without a unit is refused: Slurm reads minutes, everything else here reads seconds.

    >>> seconds_of("90m"), seconds_of("1-00:00:00"), seconds_of("2:30:00")
    (5400, 86400, 9000)
    """
    if (span := _SPAN.fullmatch(text)) is not None:
        return int(span[1]) * _UNIT_S[span[2]]
    if (clock := _CLOCK.fullmatch(text)) is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        if total := days * 86_400 + hours * 3600 + minutes * 60 + seconds:
            return total
    raise UsageError(f"time must be like 90m, 2h, 1d, 2:30:00 or 1-12:00:00, not {text!r}")
