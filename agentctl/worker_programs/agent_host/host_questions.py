"""Puts the questions of an agent program on disk as interactions, which can be answered from any terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_json, set_aside
from agentctl.adapters.paths import FilePath
from agentctl.adapters.realpath import Resolver
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.agent.permissions import Rules, answer_by, first_matching, is_for_all
from agentctl.domain.question import ALLOW_ALWAYS, AnswerOption, Question, meaning, wording
from agentctl.domain.states import OWN
from agentctl.domain.text.containment import lies_in
from agentctl.domain.text.nesting import is_too_deep
from agentctl.domain.text.plaintext import beginning
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.order import ALLOWING, Order
from agentctl.errors import Damaged
from agentctl.lean import NamedTuple
from agentctl.operations.talk.asking import Asked, close_question, leave, put_again, put_question
from agentctl.operations.where.ownership import take_answer
from agentctl.worker_programs.agent_host.records.full_disk import when_there_is_room

#: How somebody may tamper with a request for permission: with its answer, or with its question.
FORGED, CHANGED = "forged", "changed"
#: Longer texts are cut: nobody reads more of a request's arguments.
_LONGEST_ARGUMENTS = 20_000
_LONGEST_QUESTION = 10_000
#: A removal of the folder is done by then.
_REMOVAL_S = 1.0
#: What is left to the program, and what is harmless: no rule allows it, and nobody needs to know.
_LEAVE, _HARMLESS = "leave", "harmless"
_STRICTEST_FIRST = ("deny", "ask", _LEAVE, _HARMLESS, "allow")


class Decided(NamedTuple):
    """The policy's answer to a permission. It is an action, so that it is carried out after those that led to it."""

    key: str
    answer: str
    #: {answer, tool, askedBy}, as it is shown and recorded; empty where no rule decides.
    policy: Mapping[str, Any]


def decided_by(order: Order, ask: Ask, lasting: Sequence[Mapping[str, str]] = ()) -> Decided | None:
    """Return the policy's answer to a permission; None if a person has to answer. Call it in the worker's folder.

    Args:
        lasting: The rules by which a person has allowed calls for good: they count instead of asking again.
    """
    if ask.tool is None:
        return None
    real = Resolver(os.getcwd())
    is_harmless = _is_harmless(ask, real)

    def answer_of(rule: Mapping[str, str] | None) -> str:
        if rule is not None and not is_for_all(rule):
            return rule["answer"]
        if is_harmless:
            return _HARMLESS  # A policy as a whole is about what else it does.
        policy = "ask" if rule is None else rule["answer"]
        return (_LEAVE if ask.leave else "ask") if policy == OWN else policy

    def strictest(rules: Rules) -> str:
        names = [name for name in (ask.tool, ask.claimed) if name is not None]
        found = (answer_of(first_matching(rules, name, ask.arguments, real, ask.own_name)) for name in names)
        return min(found, key=_STRICTEST_FIRST.index)

    answer = strictest(order.permissions)
    if answer == "ask" and answer_by(lasting, ask.tool, ask.arguments, real, ask.own_name) == "allow":
        answer = "allow"
    if any(strictest(rules) == "deny" for rules in order.denied_above):
        answer = "deny"
    if answer in {_LEAVE, _HARMLESS}:
        return Decided(ask.key, ask.leave if answer == _LEAVE else ask.harmless, {})
    if answer == "ask" or (answer == "allow" and not _may_be_allowed(order, ask)):
        return None
    policy = {"answer": answer, "tool": ask.tool, "askedBy": ask.asked_by}
    return Decided(ask.key, ask.allow if answer == "allow" else ask.deny, policy)


def _may_be_allowed(order: Order, ask: Ask) -> bool:
    """Return whether a rule can allow a call at all; else a person chooses."""
    # A rule allows just this once, for which some programs have no answer. What is not told of a call may be just what
    # the rule is not for.
    return bool(ask.allow) and (not ask.is_cut or order.stance == ALLOWING)


def _is_harmless(ask: Ask, real: Resolver) -> bool:
    """Return whether a call does nothing but read in the agent's folder and the program's own places, by any links."""
    if not ask.harmless or ask.reads is None:
        return False
    folders = [real("."), *(real(place) for place in ask.places if _leads_to_its_like(place, real))]
    return all(
        found is not None and any(folder and (found == folder or lies_in(found, folder)) for folder in folders)
        for found in map(real, ask.reads)
    )


def _leads_to_its_like(place: str, real: Resolver) -> bool:
    """Return whether a place of the program's is what it is called, behind whatever links.

    One of them lies in /tmp, where another user may have put a link to any folder: but the name of a session is random.
    """
    found = real(place)
    return found is not None and found.endswith(f"/{'/'.join(place.split('/')[-2:])}")


class ProgramQuestions:
    """The questions whose answers the program waits for, by the program's keys."""

    def __init__(self, worker: WorkerDir, marks: str, attempt: int = 1, permissions: str | None = None) -> None:
        self.worker, self.marks, self.permissions = worker, marks, permissions
        #: Ids are used once, also by a later attempt, and also where the worker has removed the files of an earlier
        #: question: who has read one and answers by its id never answers another.
        self._used: set[str] = set()
        self._stem = "q" if attempt == 1 else f"q{attempt}-"
        self._open: dict[str, tuple[Ask, Asked]] = {}
        self._gone_since: dict[str, float] = {}
        #: The rules by which a person has allowed calls for good, in this run of the program.
        self.lasting: list[Mapping[str, str]] = []
        #: (FORGED or CHANGED, the question's id) of each tampering -> whether it has been reported.
        self._tampered: dict[tuple[str, str], bool] = {}

    def put(self, ask: Ask) -> None:
        """Put a question on disk; the worker is blocked from now on."""
        if ask.key not in self._open:
            question = question_for(ask, self.permissions)
            asked = when_there_is_room(lambda: put_question(self.worker, question, self._used, self._stem))
            self._used.add(asked.question_id)
            self._open[ask.key] = (ask, asked)

    def answered(self) -> Iterator[tuple[Ask, str, str]]:
        """Yield new answers, each with its reason if there is one; their questions are no longer open."""
        for key, (ask, asked) in list(self._open.items()):
            if ask.tool is not None and not self._is_just_gone(asked) and put_again(self.worker, asked):
                self._tampered.setdefault((CHANGED, asked.question_id), False)
            answer = _read(self.worker.answer(asked.question_id))
            if answer is None:
                continue
            if not self._counts(ask, asked, answer):
                set_aside(self.worker.answer(asked.question_id))
                self._tampered.setdefault((FORGED, asked.question_id), False)
            else:
                del self._open[key]
                leave(self.worker, asked)
                if not answer.get("expired"):
                    if ask.tool is not None and asked.question.meaning(str(answer.get("answer"))) == ALLOW_ALWAYS:
                        self.lasting += ask.lasting
                    yield ask, str(answer.get("answer")), str(answer.get("reason") or "") if ask.tool else ""

    def _is_just_gone(self, asked: Asked) -> bool:
        """Return whether a question's file was there until now: its folder may be about to be removed.

        A removal would fail if a file came back into a folder that it has just emptied.
        """
        name, now = asked.question_id, monotonic()
        if os.path.lexists(self.worker.question(name)):
            self._gone_since.pop(name, None)
            return False
        return now - self._gone_since.setdefault(name, now) < _REMOVAL_S

    def take_tampered(self) -> list[tuple[str, str]]:
        """Return the unreported cases of tampering: how, and with which question."""
        fresh = [what for what, is_reported in self._tampered.items() if not is_reported]
        self._tampered |= dict.fromkeys(fresh, True)
        return fresh

    def _counts(self, ask: Ask, asked: Asked, answer: Mapping[str, Any]) -> bool:
        """Return whether an answer is to the question as it was asked here, not as a worker changed it on disk.

        An answer to a permission must come through agentctl, which checks who may give it. Only a driver withdraws one.
        """
        return bool(answer) and (ask.tool is None or take_answer(self.marks, self.worker, asked.content, answer))

    def close(self, key: str, why: str) -> None:
        """Close a question that needs no answer any more."""
        ask, asked = self._open.pop(key, (None, None))
        if ask is not None and asked is not None:
            name = asked.question_id
            when_there_is_room(lambda: close_question(self.worker, name, None, why))
            leave(self.worker, asked)

    def close_all(self, why: str) -> None:
        """Close all open questions."""
        for key in list(self._open):
            self.close(key, why)


def _read(file: FilePath) -> Mapping[str, Any] | None:
    """Return the answer in a file; {} if the file is not a valid one, None if there is no file."""
    try:
        return read_json(file)
    except Damaged:
        return {}
    except OSError:
        return None


def question_for(ask: Ask, permissions: str | None) -> Question:
    """Return what an `Ask` asks a person: a permission names its call, and what is said about it stands beside."""
    said, arguments = _cut(ask.question, _LONGEST_QUESTION), _bounded(ask.arguments)
    options = tuple(AnswerOption(*option) for option in ask.options)
    question = Question(
        "",
        "select" if options else "input",
        said or "(an empty question)",
        options,
        arguments=arguments,
        is_cut=ask.is_cut or said != ask.question or arguments != ask.arguments,
        asked_by=ask.asked_by,
        asked_by_type=ask.asked_by_type,
        multiple=ask.multiple,
        other=ask.other,
    )
    if ask.tool is None:
        return question
    return question._replace(
        text=wording(ask.tool, ask.arguments, permissions),
        tool=ask.tool,
        means={option.id: meaning(ask.means, option.id) for option in options},
        described=said or None,
        permissions=permissions,
    )


def _bounded(arguments: Any) -> Any:
    """Return the arguments, cut if they are longer than anybody reads; the raw output is complete.

    What is nested deeper than a file of ours may be becomes the text of its JSON.
    """
    import json

    if is_too_deep([arguments]):  # The question is one level more.
        arguments = _as_text(arguments)
    if len(json.dumps(arguments)) <= _LONGEST_ARGUMENTS:
        return arguments
    if isinstance(arguments, dict):
        share = _LONGEST_ARGUMENTS // max(1, len(arguments))
        cut = {str(key): _cut(value, share) for key, value in arguments.items()}
        if len(json.dumps(cut)) <= 2 * _LONGEST_ARGUMENTS:
            return cut
    return _cut(arguments, _LONGEST_ARGUMENTS)  # Too many keys, or too long ones.


def _as_text(arguments: Any) -> Any:
    import json

    if not isinstance(arguments, dict):
        return json.dumps(arguments)
    return {key: json.dumps(value) if is_too_deep([[value]]) else value for key, value in arguments.items()}


def _cut(value: Any, limit: int) -> Any:
    import json

    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= limit else beginning(text, limit)
