"""What a tool and a call of it are: schema, description, answer, and for how long a call may take (45 s by default)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentctl.domain.names import WorkerId
from agentctl.domain.tree.limits import RESULT_BYTES as RESULT_BYTES  # noqa: PLC0414 - tools import it from here
from agentctl.lean import NamedTuple
from agentctl.tools.awaited_worker import Target

if TYPE_CHECKING:
    from agentctl.tools.scope import Scope, Situation

Arguments = dict[str, Any]

#: How long one call may take if it is not known how long the caller waits: many give up after 60 s.
CAREFUL_S = 45.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of a tool: how long it may take, and what breaks it off."""

    limit_s: float | None = None
    #: A descriptor that becomes readable when the call is aborted.
    broken: int | None = None
    #: Called with the workers that the call waits for, so that their progress can be reported to the caller.
    on_wait: Callable[[Scope, Sequence[Target]], object] | None = None

    def waits_for(self, scope: Scope, targets: Sequence[Target]) -> None:
        """Report which workers the call waits for from now on."""
        if self.on_wait is not None:
            self.on_wait(scope, targets)

    def within(self, wanted_s: float | None) -> float | None:
        """Return how long to wait: as long as wanted, but no longer than the call allows."""
        limits = [limit for limit in (self.limit_s, wanted_s) if limit is not None]
        return min(limits) if limits else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """Work that was started and has no answer yet, with all that is needed to answer later, even in another process."""

    tool: str
    targets: tuple[Target, ...]
    #: What the answer needs besides the workers' results.
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> list[WorkerId]:
        """The workers."""
        return [target.key for target in self.targets]

    def to_json(self) -> dict[str, Any]:
        """Return it for a file."""
        return {
            "tool": self.tool,
            "targets": [target.to_json() for target in self.targets],
            "given": dict(self.given),
        }


def pending_from(value: Mapping[str, Any]) -> Pending:
    """Return the pending work that a file describes."""
    targets = tuple(Target(id=one["id"], key=WorkerId(one["taskId"], one["agentInstance"])) for one in value["targets"])
    return Pending(tool=value["tool"], targets=targets, given=value["given"])


class Ends(NamedTuple):
    """The functions with which a tool answers a call whose work it has started."""

    #: Once all its workers have ended.
    finish: Callable[[Scope, Pending], Any] | None = None
    #: When the caller itself is being cancelled: returns an answer, or None if the work that it began goes on.
    with_caller: Callable[[Scope, Pending], Any] | None = None


_NOTHING_BEGUN = Ends()


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool. `run` returns a JSON value, or a `Pending` that `ends.finish` answers once all its workers have ended."""

    name: str
    #: Returns the description for the model, which depends on the situation.
    describe: Callable[[Situation], str]
    #: name -> JSON schema
    properties: Mapping[str, Mapping[str, Any]]
    run: Callable[[Scope, Arguments, Call], Any]
    #: The types of its answers, as an annotation of `domain/documents`; None where it answers with a list.
    answers: str | None = None
    ends: Ends = _NOTHING_BEGUN
    required: tuple[str, ...] = ()
    #: Arguments that are accepted but not listed: name -> JSON schema.
    also: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Other names of arguments -> their names here; other names of the tool.
    synonyms: Mapping[str, str] = field(default_factory=dict)
    other_names: tuple[str, ...] = ()
    #: Translates arguments that have the form of another program's tool of this kind.
    adapt: Callable[[Arguments], Arguments] = dict
    #: Arrays whose items it checks itself: an invalid item must not fail the others.
    own_items: frozenset[str] = frozenset()
    #: What it answers if there is no task yet; None: it makes one if it `spawns`, and fails otherwise.
    without_task: Callable[[Arguments], Any] | None = None
    #: It starts workers, so it is not offered at the depth limit.
    spawns: bool = False
    read_only: bool = False
    destructive: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, as it is listed: see `listed`."""
        return listed({"type": "object", "properties": self.properties, "required": self.required})

    @property
    def checked(self) -> dict[str, Any]:
        """The schema against which arguments are checked before it is called."""
        known = {name: dict(schema) for name, schema in {**self.properties, **self.also}.items()}
        for name in self.own_items:
            known[name].pop("items")
        return closed({"type": "object", "properties": known, "required": list(self.required)})


#: What every provider accepts in a schema, strict ones too. Ranges and lengths are checked here, and listed as words.
_LISTED = ("type", "description", "enum")


def listed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema in the form that all providers accept: one type for each value, no branches, no ranges.

    Objects are not closed: so a client that checks a call before it sends it lets other names through, which are
    understood here. A client that wants closed objects closes them itself.
    """
    first = dict(schema["anyOf"][0]) | {"description": schema["description"]} if "anyOf" in schema else schema
    found = {key: first[key] for key in _LISTED if key in first}
    if "items" in first:
        found["items"] = listed(first["items"])
    if "properties" in first:
        found["properties"] = {name: listed(one) for name, one in first["properties"].items()}
        found["required"] = list(first.get("required", ()))
    return found


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object, with no other keys allowed."""
    return {**schema, "additionalProperties": False}


def text(description: str, **more: Any) -> dict[str, Any]:
    """Return the schema of a text."""
    return {"type": "string", "description": description, **more}


def some_text(description: str) -> dict[str, Any]:
    """Return the schema of a text that is not blank."""
    return text(description, pattern=r"\S")


def number(description: str, *, low: float, high: float, whole: bool = False) -> dict[str, Any]:
    """Return the schema of a number."""
    kind = "integer" if whole else "number"
    return {"type": kind, "description": description, "minimum": low, "maximum": high}


def either(description: str, *schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value of one of several kinds; only the first kind is listed."""
    return {"description": description, "anyOf": list(schemas)}


def flag(description: str) -> dict[str, Any]:
    """Return the schema of a boolean."""
    return {"type": "boolean", "description": description}
