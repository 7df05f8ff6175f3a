"""`wait`: what has become of agents, at once where something has, and with a cursor so that nothing is told twice."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Any

from agentctl.domain.states import Status
from agentctl.errors import NotFound, UsageError
from agentctl.operations.gathering import Key, Seen, Sight, gather
from agentctl.tools.definition import Arguments, Call, Target, Tool, either, number, text
from agentctl.tools.place import Place
from agentctl.tools.results import question_of, result_of, share_of
from agentctl.tools.words import cut

DEFAULT_MS, LONGEST_MS = 30_000, 3_600_000
#: So many cursors are known; an older one reads as none, and what it stood for is told again.
_MOST_CURSORS = 1000

Given = frozenset[tuple[Key, int]]


class Cursors:
    """What each answer, and those before it, have told. Lost with this process: then all of it is told again."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Given] = OrderedDict()
        self._lock = threading.Lock()

    def given(self, cursor: str | None) -> Given:
        """Return what whoever shows a cursor has been told."""
        with self._lock:
            return self._known.get(cursor or "", frozenset())

    def after(self, given: Given) -> str:
        """Return the cursor of an answer."""
        token = os.urandom(6).hex()
        with self._lock:
            self._known[token] = given
            while len(self._known) > _MOST_CURSORS:
                self._known.popitem(last=False)
        return token


_cursors = Cursors()


def _wait(place: Place, given: Arguments, call: Call) -> Any:
    targets, unknown = _targets(place, given.get("ids"))
    told = _cursors.given(given.get("cursor"))
    keys = [target.key for target in targets]
    timeout_s = call.within(given.get("timeout_ms", DEFAULT_MS) / 1000)
    seen: Sight = {}
    if keys:
        seen = gather(
            place.task, keys, is_enough=lambda sight: bool(unknown) or has_news(sight, told), timeout_s=timeout_s,
            broken=call.broken,
        )  # fmt: skip
    return _answer(place, targets, seen, told, unknown)


def _targets(place: Place, ids: list[str] | str | None) -> tuple[list[Target], list[str]]:
    """Return who is waited for, and the ids of which nothing is known."""
    if ids is None:
        return [Target(id=place.name_of(one), key=Key(one.task.id, one.instance)) for one in place.children()], []
    targets, unknown = [], []
    for name in dict.fromkeys([ids] if isinstance(ids, str) else ids):
        try:
            targets.append(place.target(name))
        except (NotFound, UsageError):  # What cannot be a name is nobody's.
            unknown.append(name)
    return targets, unknown


def has_news(sight: Sight, told: Given) -> bool:
    """Tell whether there is anything that was not told, or nothing that could still come."""
    fresh = any(seen.is_news and (key, seen.seq) not in told for key, seen in sight.items())
    return fresh or all(seen.is_terminal for seen in sight.values())


def _answer(place: Place, targets: Collection[Target], sight: Sight, told: Given, unknown: list[str]) -> dict[str, Any]:
    seen = {target: sight.get(target.key) for target in targets}
    news = {target: one for target, one in seen.items() if one is not None and one.is_news}
    fresh = {target: one for target, one in news.items() if (target.key, one.seq) not in told}
    if not fresh and all(one is None or one.is_terminal for one in seen.values()):
        fresh = news  # Nothing else will come: say once more how it stands.
    status: dict[str, str] = {target.id: str(one.status) for target, one in fresh.items()}
    status |= dict.fromkeys(unknown, "not_found")
    left = [target.id for target, one in seen.items() if one is not None and not one.is_terminal]
    known = told | {(target.key, one.seq) for target, one in fresh.items()}
    answer: dict[str, Any] = {"status": status, "timed_out": not status and bool(left)}
    if fresh:
        share = share_of(len(fresh))
        answer["results"] = {target.id: _result(place, target, one, share) for target, one in fresh.items()}
    if not targets and not unknown:
        answer["note"] = "there is nobody to wait for: nothing was started"
    return answer | {"still_running": [name for name in left if name not in status], "cursor": _cursors.after(known)}


def _result(place: Place, target: Target, seen: Seen, max_bytes: int) -> dict[str, Any]:
    agent = place.agent_of(target.key)
    told = result_of(agent, seen.status, max_bytes)
    if target.id != target.key.instance:
        told["instance"] = target.key.instance
    question = question_of(agent) if seen.status is Status.BLOCKED else None
    return told | ({"question": question} if question else {})


WAIT = Tool(
    name="wait",
    describe=lambda _situation: (
        "Wait for agents: answers at once with all that have ended or need an answer, else at the first that does."
        " A time limit stops nobody: call again. Hand the `cursor` of the last answer back, so that nothing is told"
        f" twice. An agent that is `blocked` waits with a `question`: answer it with send_input. {cut()}"
    ),
    properties={
        "ids": either(
            "The agents; without it all that you have started.",
            {"type": "array", "items": text("An id.")},
            text("An id."),
        ),
        "timeout_ms": number("How long to wait, in milliseconds.", low=0, high=LONGEST_MS),
        "cursor": text("The cursor of the last answer."),
    },
    synonyms={"targets": "ids", "id": "ids", "timeout": "timeout_ms"},
    other_names=("wait_agent",),
    run=_wait,
    read_only=True,
)
