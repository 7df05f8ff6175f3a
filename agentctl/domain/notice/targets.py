"""Targets: where a person is told of notices. A person defines them; tasks, roots and options only name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentctl.domain.names import is_name
from agentctl.domain.notice.notices import DEFAULT_KINDS, KINDS
from agentctl.lean import Any, NamedTuple

NTFY, WEBHOOK, COMMAND, TERMINAL = "ntfy", "webhook", "command", "terminal"
TYPES: tuple[str, ...] = (NTFY, WEBHOOK, COMMAND, TERMINAL)
BELL, OSC_9, OSC_777 = "bell", "osc9", "osc777"
WAYS: tuple[str, ...] = (BELL, OSC_9, OSC_777)
#: More than anybody has.
MOST_TARGETS = 50


class NoticeTarget(NamedTuple):
    """Where notices are sent."""

    name: str
    type: str
    #: Of ntfy and webhook.
    url: str = ""
    token: str = ""
    #: Of command.
    argv: tuple[str, ...] = ()
    #: Of terminal: bell, osc9, osc777.
    ways: tuple[str, ...] = ()
    events: tuple[str, ...] = DEFAULT_KINDS
    #: Nothing that happened before that is told, as events have it.
    since: str = ""
    #: Of ntfy: its messages may have buttons that answer a question, for whoever reads them.
    buttons: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, without what it does not have."""
        return {key: value for key, value in self._asdict().items() if value}


def target_from(value: Mapping[str, Any]) -> NoticeTarget:
    """Return the target that `to_json` gave.

    Raises:
        TypeError, ValueError: It is not a target.
    """
    fields = {key: tuple(item) if isinstance(item, list) else str(item) for key, item in value.items()}
    target = NoticeTarget(**fields)  # type: ignore[arg-type]  # each field is a text or a tuple of texts
    target = target._replace(buttons=value.get("buttons") is True)
    if target.type not in TYPES:
        raise ValueError(f"no type of target: {target.type}")
    return target


class Naming(NamedTuple):
    """A target that a task, a root or an option names, and the kinds of notices that are wanted there."""

    name: str
    #: None: those of its definition.
    events: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.name if self.events is None else f"{self.name}:{','.join(self.events)}"


def parse_naming(text: object) -> Naming:
    """Return the target that a text names.

    >>> parse_naming("phone"), str(parse_naming("phone:failed,blocked"))
    (Naming(name='phone', events=None), 'phone:failed,blocked')

    Raises:
        ValueError: It is not of that form, or there is no such kind of notice.
    """
    name, colon, kinds = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not is_name(name):
        raise ValueError(f"{text!r} must be the name of a target, as in phone or phone:blocked,failed")
    return Naming(name, check_kinds(kinds.split(",")) if colon else None)


def check_kinds(kinds: Iterable[object]) -> tuple[str, ...]:
    """Return kinds of notices, each once.

    Raises:
        ValueError: There is no such kind, or none is named.
    """
    found = tuple(dict.fromkeys(str(kind).strip() for kind in kinds))
    unknown = [kind for kind in found if kind not in KINDS]
    if unknown or not found:
        raise ValueError(f"no kind of notice: {unknown[0] if unknown else ''!r}; known: {', '.join(KINDS)}")
    return found


def parse_namings(value: object) -> tuple[Naming, ...]:
    """Return the targets that a list of texts names; of one that is named twice the last counts.

    Raises:
        ValueError: It is not such a list.
    """
    if not isinstance(value, (list, tuple)) or len(value) > MOST_TARGETS:
        raise ValueError(f"notify must be a list of names of targets (at most {MOST_TARGETS}), not {value!r:.100}")
    return tuple({one.name: one for one in map(parse_naming, value)}.values())


class Applied(NamedTuple):
    """A target that applies to a tree of tasks, and who named it: always, root, task.yaml or task."""

    target: NoticeTarget
    by: str


#: Where targets are named (always, root, task.yaml, task), what is named there, and what is switched off there.
Level = tuple[str, Sequence[Naming], frozenset[str]]


def applied(defined: Mapping[str, NoticeTarget], levels: Iterable[Level]) -> tuple[Applied, ...]:
    """Return the targets that apply, where a later level overrides the ones before it.

    A name that is not defined is left out.

    >>> phone = NoticeTarget("phone", "ntfy")
    >>> [one.by for one in applied({"phone": phone}, [("always", [Naming("phone")], frozenset())])]
    ['always']
    >>> applied({"phone": phone}, [("always", [Naming("phone")], frozenset()), ("task", [], frozenset({"phone"}))])
    ()
    """
    found: dict[str, Applied] = {}
    for by, on, off in levels:
        for name in off:
            found.pop(name, None)
        for name, events in on:
            if name in defined:
                target = defined[name]
                found[name] = Applied(target if events is None else target._replace(events=events), by)
    return tuple(found.values())
