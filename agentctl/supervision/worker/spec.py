"""What a worker is to do (`spec.json`): written once, before anything of it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from agentctl.adapters.files import AnyPath, json_in, read_json, read_known
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.names import camel
from agentctl.domain.text.numbers import finite
from agentctl.domain.tree.limits import KEYS, LONGEST_GRACE_S, Limits
from agentctl.errors import AtTerminal, Damaged
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker import environment

try:
    from _blake2 import blake2b  # `hashlib` loads OpenSSL: 2 ms for each command.
except ImportError:
    from hashlib import blake2b

#: Names the spec that its shim has checked to the program that drives an agent; the agent itself does not get it.
SPEC_DIGEST = "AGENTCTL_SPEC_DIGEST"
_DIGEST_BYTES = 16
_TEXT = frozenset({str})
#: Where programs of ours lay in the package -> where they lie now: a spec may be older than the code that reads it.
_MOVED = {
    "agentctl/driving/__main__.py": "agentctl/worker_programs/agent_host/__main__.py",
    "agentctl/cli/early.py": "agentctl/interfaces/cli/early.py",
}


class WorkerSpec(NamedTuple):
    """What a worker is to do; times in seconds. Holds the names of its environment variables, never their values."""

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
    #: Start once the workers of `after` have ended, whatever their end.
    after_any: bool = False
    retries: int = 0
    #: The pause before the second attempt; it doubles with each, with jitter.
    retry_delay_s: float = 1.0
    keep_children: bool = False
    #: The worker that started it.
    parent: str | None = None
    #: The task of `parent`, where that is another one: its id, or the path of one in another root.
    parent_task: str | None = None
    depth: int = 0
    key: str | None = None
    #: What only one worker may be (`SpawnRequest.sole`).
    sole: str | None = None
    #: The worker whose work it tries again, or goes on with.
    retry_of: str | None = None
    continues: str | None = None
    #: What only the driver of an agent reads.
    order: dict[str, Any] | None = None
    #: Names a chain of runs, where each continues the one before.
    agent_id: str | None = None
    stall_s: float = Limits().stall_seconds
    #: How long it may be parked; None takes the limit of its tree.
    max_park_s: float | None = None
    #: The files that it was given to work with.
    artifacts: Sequence[str] | None = None
    #: For a delegated task: {session, objective}.
    delegation: dict[str, str] | None = None
    #: Whether a tool of a session has started it.
    by_tool: bool | None = None
    #: The random text of its task: a spec that came with somebody else's files does not have it.
    origin: str | None = None
    #: The limits of its tree when it was spawned: what it starts is held to them, whatever was changed since.
    tree_limits: dict[str, float] | None = None
    #: How it is placed on a node; None runs it on this machine.
    placement: dict[str, Any] | None = None

    @property
    def keeps_its_folder(self) -> bool:
        """Whether it may run only in `cwd` as it was at the spawn, and not where a link leads that came there since.

        A worker that may do less than a person is confined to its folder by a check where that is.
        """
        return self.order is not None or self.parent is not None

    def to_json(self) -> dict[str, Any]:
        """Return its fields under their names in the file."""
        values = {name: getattr(self, field) for field, name in _NAMES.items()}
        return {name: value for name, value in values.items() if value is not None or name not in _LEFT_OUT}


#: Fields with another name in the file.
_OTHERWISE = {
    "instance": "agentInstance", "timeout_s": "timeoutSeconds", "grace_s": "graceSeconds",
    "retry_delay_s": "retryDelaySeconds", "stall_s": "stallSeconds", "max_park_s": "maxParkSeconds",
}  # fmt: skip
_NAMES = {field: _OTHERWISE.get(field) or camel(field) for field in WorkerSpec._fields}
#: Fields that a spec may lack, and their names.
_OPTIONAL = frozenset(
    {
        "order", "agent_id", "stall_s", "parent_task", "artifacts", "delegation", "by_tool", "origin", "tree_limits",
        "max_park_s", "placement", "retry_of", "continues", "sole",
    }
)  # fmt: skip
_LEFT_OUT = frozenset(_NAMES[field] for field in _OPTIONAL)


def grace_of(path: AnyPath) -> float:
    """Return a worker's grace period; the default where its spec was removed or damaged."""
    grace = valid_grace(read_known(path))
    return Limits().grace_seconds if grace is None else grace


def held_limits(worker: WorkerDir) -> Mapping[str, Any]:
    """Return the limits of a worker's tree when it was spawned; {} if an older agentctl spawned it."""
    held = read_known(worker.spec).get("treeLimits")
    return held if isinstance(held, dict) else {}


def held_cap(worker: WorkerDir) -> int | None:
    """Return the cap for a worker that another one has requested, with it; None for others: as their task says now."""
    spec = read_known(worker.spec)
    held = spec.get("treeLimits") if spec.get("parent") else None
    cap = held.get(KEYS["max_concurrent_agents"]) if isinstance(held, dict) else None
    return cap if isinstance(cap, int) and cap else None  # 0 held the queue then; it is asked anew whether it does.


def valid_grace(content: Mapping[str, Any]) -> float | None:
    """Return the grace period in a file's content, cut to the valid range, since a worker can have written it."""
    grace = finite(content.get("graceSeconds"))
    return None if grace is None else min(max(grace, 0), LONGEST_GRACE_S)


def is_placed(worker: WorkerDir) -> bool:
    """Return whether a worker runs on a node."""
    return worker.launch.exists() and is_for_node(worker)


def is_for_node(worker: WorkerDir) -> bool:
    """Return whether a worker is to run on a node, whether or not it has come that far."""
    return isinstance(read_known(worker.spec).get("placement"), dict)


def is_of_task(worker: WorkerDir) -> bool:
    """Return whether a worker's spec was written by a spawn in its task, and did not come with a repository."""
    nonce = worker.task.nonce()
    return bool(nonce) and read_known(worker.spec).get("origin") == nonce


def read_spec(path: AnyPath) -> WorkerSpec:
    """Return the spec in a file.

    Raises:
        Damaged: There is none, or it lacks a field.
    """
    value = read_json(path)
    if value is None:
        raise Damaged(f"{path} is missing", hint="spawn it again")
    return _spec_from(value, path)


def digest_of(data: bytes) -> str:
    """Return the digest of the bytes of a spec."""
    return str(blake2b(data, digest_size=_DIGEST_BYTES).hexdigest())


def read_vouched(path: AnyPath, blob: bytes) -> tuple[WorkerSpec, str]:
    """Return the spec in a file and its digest, if the environment of its worker vouches for it.

    Raises:
        Damaged: The spec is not what was spawned, or there is none.
    """
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise Damaged(f"{path} is missing", hint="spawn it again") from None
    digest = digest_of(data)
    if not environment.vouches_for(blob, digest):
        raise Damaged(f"{path} was changed since its worker was spawned", hint="spawn it again")
    return _spec_from(json_in(data, path), path), digest


def _spec_from(value: Mapping[str, Any], path: AnyPath) -> WorkerSpec:
    try:
        fields = {field: value[name] for field, name in _NAMES.items() if field not in _OPTIONAL or name in value}
    except KeyError as error:
        raise Damaged(f"{path} lacks {error}", hint=AtTerminal("agentctl doctor")) from error
    for field, found in fields.items():
        if not _KINDS[field](found) and not (found is None and field in _NOTHING):
            raise _damaged(path, _NAMES[field])
    return WorkerSpec(**fields)


def with_moved_programs(argv: Sequence[str]) -> list[str]:
    """Return a command line of an agent's spec, with the programs of ours in it where an upgrade has put them.

    >>> with_moved_programs(["python", "/nowhere/agentctl/driving/__main__.py", "codex"])
    ['python', '/nowhere/agentctl/worker_programs/agent_host/__main__.py', 'codex']
    """
    return [_where_it_lies(word) for word in argv]


def _where_it_lies(word: str) -> str:
    for before, now in _MOVED.items():
        if word.endswith(f"/{before}") and not os.path.exists(word):
            return word.removesuffix(before) + now
    return word


def order_of(worker: WorkerDir) -> Mapping[str, Any]:
    """Return the order of a worker as its file has it, unchecked; empty for a command, or if there is none."""
    order = read_known(worker.spec).get("order")
    return order if isinstance(order, dict) else {}


def is_for_agent(order: Mapping[str, Any] | None) -> bool:
    """Return whether an order is for the program of an agent; a definition may also run a plain command."""
    return bool(order) and order is not None and order.get("driver") != "command"


def read_order(worker: WorkerDir) -> dict[str, Any] | None:
    """Return the order of an agent's driver; None for a command, or if there is no spec.

    Raises:
        Damaged: A restriction in it is not what a spawn would write.
    """
    order = (read_json(worker.spec) or {}).get("order")
    if order is None:
        return None
    if not isinstance(order, dict):
        raise _damaged(worker.spec, "order")
    for key, is_right in _OF_ORDER.items():
        if key in order and not is_right(order[key]):
            raise _damaged(worker.spec, f"order.{key}")
    return order


def _damaged(path: AnyPath, key: str) -> Damaged:
    return Damaged(
        f"{path} is damaged: `{key}` is not what a spawn writes",
        hint=(AtTerminal("agentctl doctor"), "or spawn it again"),
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def are_texts(value: object) -> bool:
    """Return whether a value of a spec is a list of texts."""
    return isinstance(value, (list, tuple)) and _TEXT.issuperset(map(type, value))


def _are_texts_or_none(value: object) -> bool:
    return value is None or are_texts(value)


def _are_rules(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(rule, dict) and all(isinstance(rule.get(key), str) for key in ("tool", "pattern", "answer"))
        for rule in value
    )


def _are_lists_of_rules(value: object) -> bool:
    return isinstance(value, list) and all(map(_are_rules, value))


_KINDS = {
    **dict.fromkeys(
        (
            "instance",
            "agent",
            "cwd",
            "parent",
            "parent_task",
            "key",
            "agent_id",
            "origin",
            "retry_of",
            "continues",
            "sole",
        ),
        _is_text,
    ),
    **dict.fromkeys(("argv", "env_names", "after", "artifacts"), are_texts),
    **dict.fromkeys(("timeout_s", "grace_s", "max_output_bytes", "retry_delay_s", "stall_s", "max_park_s"), _is_number),
    **dict.fromkeys(("umask", "priority", "retries", "depth"), _is_whole),
    **dict.fromkeys(("after_any", "keep_children", "by_tool"), _is_flag),
    **dict.fromkeys(("order", "delegation", "tree_limits", "placement"), _is_table),
}
#: Fields that may be null.
_NOTHING = frozenset(
    {
        "parent", "parent_task", "key", "order", "agent_id", "artifacts", "delegation", "origin", "tree_limits",
        "max_park_s", "placement", "retry_of", "continues", "sole",
    }
)  # fmt: skip
_OF_ORDER = {
    **dict.fromkeys(("driver", "program", "agent", "prompt", "cwd"), _is_text),
    **dict.fromkeys(("readOnly", "keep"), _is_flag),
    "permissions": _are_rules, "deniedAbove": _are_lists_of_rules, "tools": _are_texts_or_none,
}  # fmt: skip
