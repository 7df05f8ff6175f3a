"""The tool `wait`: reports ends and questions of agents, with a cursor so that nothing is reported twice."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

from agentctl.domain.names import WorkerId
from agentctl.domain.states import Status
from agentctl.operations.wait.keys import TURN, Seen, Sight, gather
from agentctl.tools.agents_below import started_agents
from agentctl.tools.awaited_worker import Target
from agentctl.tools.definition import CAREFUL_S, Arguments, Call, Tool, either, number, text
from agentctl.tools.descriptions import cut_sentence, short
from agentctl.tools.results import question_for_model, question_of, result_of, share_of
from agentctl.tools.scope import Scope, Situation

DEFAULT_MS, LONGEST_MS = 30_000, 3_600_000
#: The most ends and questions in one answer; the next call, with the answer's cursor, reports more.
_MOST_TOLD = 40
#: The most names in one answer: of agents still at work, and of unknown ones.
_MOST_NAMED = 200
_MOST_IDS = 1000
#: The most cursors that are kept; an older one counts as none, and what it covered is reported again.
_MOST_CURSORS = 1000

Given = frozenset[tuple[WorkerId, int]]


class Cursors:
    """What was reported up to each cursor. It is lost with this process: then everything is reported again."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Given] = OrderedDict()
        self._lock = threading.Lock()

    def given(self, cursor: str | None) -> Given:
        """Return what was reported up to a cursor."""
        with self._lock:
            return self._known.get(cursor or "", frozenset())

    def after(self, given: Given) -> str:
        """Return a new cursor for what was reported."""
        token = os.urandom(6).hex()
        with self._lock:
            self._known[token] = given
            while len(self._known) > _MOST_CURSORS:
                self._known.popitem(last=False)
        return token


_cursors = Cursors()
_STRANDED = (
    "nobody will start those that are stranded: everything was killed, or the machine was restarted. Tell the user, who"
    " alone can have what is lost or stranded go on"
)
_HELD = (
    "those that are held stay in the queue until their queue is let go: go on with what does not need them, or tell the"
    " user, who is shown who holds it"
)
_NOBODY = "there is no agent to wait for: nothing was started"


def _wait(scope: Scope, given: Arguments, call: Call) -> Any:
    with TURN:
        targets, unknown = _targets(scope, given.get("ids"))
    reported = _cursors.given(given.get("cursor"))
    keys = [target.key for target in targets]
    timeout_s = call.within(given.get("timeout_ms", DEFAULT_MS) / 1000)
    seen: Sight = {}
    if keys:
        call.waits_for(scope, targets)
        seen = gather(
            scope.task, keys, is_enough=lambda sight: bool(unknown) or has_something_new(sight, reported),
            timeout_s=timeout_s, broken=call.broken,
        )  # fmt: skip
    return _answer(scope, targets, seen, reported, unknown)


def _targets(scope: Scope, ids: list[str] | str | None) -> tuple[list[Target], list[str]]:
    """Return the workers to wait for, and the ids that are unknown."""
    if ids is None:
        return started_agents(scope), []
    return scope.targets(_named(ids))


def _named(ids: list[str] | str) -> list[str]:
    return list(dict.fromkeys([ids] if isinstance(ids, str) else ids))


def _without_task(given: Arguments) -> Any:
    """Return the answer if there is no task yet, and so no agent to wait for."""
    return _nobody_known(_named(given.get("ids") or []))


def _nobody_known(unknown: list[str]) -> dict[str, Any]:
    status = dict.fromkeys(map(short, unknown[:_MOST_NAMED]), "not_found")
    answer: dict[str, Any] = {"status": status, "timed_out": False, "still_running": []}
    return answer if unknown else answer | {"note": _NOBODY}


def has_something_new(sight: Sight, reported: Given) -> bool:
    """Return whether there is something new to report, or nothing more can come."""
    fresh = any(seen.is_news and (key, seen.seq) not in reported for key, seen in sight.items())
    return fresh or all(seen.is_final for seen in sight.values())


def _answer(
    scope: Scope, targets: Collection[Target], sight: Sight, reported: Given, unknown: list[str]
) -> dict[str, Any]:
    if not targets:
        return _nobody_known(unknown) | {"cursor": _cursors.after(reported)}
    seen = {target: one for target in targets if (one := sight.get(target.key)) is not None}
    news = {target: one for target, one in seen.items() if one.is_news}
    fresh = {target: one for target, one in news.items() if (target.key, one.seq) not in reported}
    if not fresh and all(one.is_terminal for one in seen.values()):
        fresh = news  # Nothing more can come: report once more how all have ended.
    now = _first_of(fresh)
    status: dict[str, str] = {target.id: str(one.status) for target, one in now.items()}
    status |= dict.fromkeys(map(short, unknown[:_MOST_NAMED]), "not_found")
    left = {target: one for target, one in seen.items() if not one.is_terminal and target not in now}
    is_late = not status and any(not one.is_stranded for one in left.values())
    answer: dict[str, Any] = {"status": status, "timed_out": is_late}
    if now:
        share = share_of(len(now))
        answer["results"] = {target.id: _result(scope, target, one, share) for target, one in now.items()}
    if len(fresh) > len(now):
        answer |= {"more": len(fresh) - len(now), "hint": "wait with this cursor reports the next of those that ended"}
    answer["still_running"] = [target.id for target in left][:_MOST_NAMED]
    if len(left) > _MOST_NAMED:
        answer["more_running"] = len(left) - _MOST_NAMED
    answer |= told_at_rest(left)
    questions = _open_questions(scope, left)
    if questions:  # Reported before, and still open: a caller that has lost one would wait for ever.
        answer["questions"] = questions
    known = reported | {(target.key, one.seq) for target, one in now.items()}
    return answer | {"cursor": _cursors.after(known if len(known) > len(reported) else reported)}


def told_at_rest(seen: Mapping[Target, Seen]) -> dict[str, Any]:
    """Return what an answer says of workers in the queue that start only once a person sees to it; mostly nothing."""
    held = [target.id for target, one in seen.items() if one.is_held][:_MOST_NAMED]
    stranded = [target.id for target, one in seen.items() if one.is_stranded][:_MOST_NAMED]
    said: dict[str, Any] = {"held": held, "note": _HELD} if held else {}
    return said | ({"stranded": stranded, "note": _STRANDED} if stranded else {})


def _first_of(fresh: Mapping[Target, Seen]) -> dict[Target, Seen]:
    """Return as much news as one answer has room for: first the questions, then the latest ends."""
    ordered = sorted(fresh.items(), key=lambda item: (item[1].is_terminal, -item[1].seq))
    chosen = {target for target, _ in ordered[:_MOST_TOLD]}
    return {target: one for target, one in fresh.items() if target in chosen}


def _open_questions(scope: Scope, left: Mapping[Target, Seen]) -> dict[str, Any]:
    asking = [target for target, one in left.items() if one.status is Status.BLOCKED][:_MOST_TOLD]
    found = {target.id: question_of(scope.agent_of(target.key)) for target in asking}
    return {name: question_for_model(one) for name, one in found.items() if one is not None and not one.idle}


def _result(scope: Scope, target: Target, seen: Seen, max_bytes: int) -> dict[str, Any]:
    worker = scope.agent_of(target.key)
    result = result_of(worker, seen.status, max_bytes)
    if target.id != target.key.instance:
        result["instance"] = target.key.instance
    question = question_of(worker) if seen.status is Status.BLOCKED else None
    return result | ({"question": question_for_model(question)} if question is not None else {})


def _about(situation: Situation) -> str:
    return (
        "Wait for agents: answers at once with all that have ended or need an answer, otherwise as soon as one does."
        f" A time limit stops no agent: call again. {_longest(situation.call_s)} Pass the `cursor` of the last answer:"
        " without it, all that was reported is reported again, at once. A `blocked` agent waits with a `question`:"
        f" answer it with send_input. {cut_sentence()}"
    )


def _longest(call_s: float | None) -> str:
    """Return the sentence about how long one call takes at most."""
    if call_s == 0:
        return "One call waits as long as you say."
    if call_s is not None:
        return f"One call takes {call_s:g} s at most."
    return f"One call takes {CAREFUL_S:g} s at most, unless your client is known to wait longer."


WAIT = Tool(
    name="wait",
    describe=_about,
    properties={
        "ids": either(
            "The agents, each by its id, task_id or taskId. Default: all that this session has started, and none that"
            " a person started by hand.",
            {"type": "array", "items": text("An id, task_id or taskId."), "maxItems": _MOST_IDS},
            text("An id, task_id or taskId."),
        ),
        "timeout_ms": number(
            f"How long to wait, in milliseconds; default: {DEFAULT_MS}, at most {LONGEST_MS}.", low=0, high=LONGEST_MS
        ),
        "cursor": text("The cursor of the last answer."),
    },
    synonyms={"targets": "ids", "id": "ids", "timeout": "timeout_ms"},
    other_names=("wait_agent",),
    without_task=_without_task,
    run=_wait,
    answers="AgentsNews",
    read_only=True,
)
