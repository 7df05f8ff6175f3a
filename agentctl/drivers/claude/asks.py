"""Handles the `control_request` lines of Claude Code: calls about to be made, requests for permission, and questions.

Whether the program asks for permission is decided by its person's settings, by hooks, and by the mode that its model
has entered. So it is given a hook of ours, which it calls before each call of a tool (`HOOKS`): what that denies is not
done, whatever else is allowed. The hook itself waits for the person: if it had the program ask, their own hooks could
answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.agent.permissions import Rules
from agentctl.domain.question import ALLOW, ALLOW_ALWAYS, DENY
from agentctl.drivers.claude.calls import INNER, LEAVING_PLAN, lasting, places_of, read_by
from agentctl.drivers.claude.rows import ClaudeTranscript
from agentctl.drivers.dialogue import Action, Ask, Note, Say, Withdraw
from agentctl.drivers.values import bounded_text, line_of, list_in, object_in, text_in

QUESTION_TOOL = "AskUserQuestion"
_ALLOW, _ALWAYS, _DENY, _LEAVE = "allow", "allow_always", "deny", "leave"
_MEANS = {_ALLOW: ALLOW, _ALWAYS: ALLOW_ALWAYS, _DENY: DENY}
_EVENT, _HOOK = "PreToolUse", "agentctl"
_PROMPT_EVENT, _PROMPT_HOOK = "UserPromptSubmit", "agentctl-prompt"
#: The longest that a timer of the program's runtime is sure to wait: nearly 25 days. After that it refuses the call.
_HOOK_TIMEOUT_S = 2_147_483
#: Has the program call us before each call of a tool. It goes on by default where our answer is not valid. That it does
#: call hooks is seen with each prompt, before its model can do anything.
HOOKS = {
    _PROMPT_EVENT: [{"matcher": None, "hookCallbackIds": [_PROMPT_HOOK]}],
    _EVENT: [{"matcher": None, "hookCallbackIds": [_HOOK], "timeout": _HOOK_TIMEOUT_S, "onFailure": "block"}],
}


class _OpenRequest:
    """A request of the program that has no answer yet.

    Args:
        keys: The keys under which it was asked; more than one if it has several questions.
        call: The id of the call that is about to be made, where our hook was called for it.
    """

    def __init__(
        self, arguments: dict[str, Any], keys: Sequence[str], *, call: str | None = None,
        questions: Sequence[dict[str, Any]] = (),
    ) -> None:  # fmt: skip
        self.arguments, self.keys, self.call, self.questions = arguments, keys, call, questions
        #: The questions' keys -> the answers so far.
        self.answers: dict[str, str] = {}


class ClaudeRequests:
    """The requests of the program that have no answer yet.

    Args:
        transcript: Knows the sub-agents.
        is_offered: Returns whether a tool may be used at all; None: any tool may.
    """

    def __init__(self, transcript: ClaudeTranscript, is_offered: Callable[[str], bool] | None) -> None:
        self.transcript = transcript
        self.is_offered = is_offered
        #: The ids of the calls for which our hook was called.
        self.seen: set[str] = set()
        #: Whether any hook of ours was called.
        self.are_hooks_called = False
        #: The calls that it has allowed: their ids and arguments.
        self._allowed: dict[str, dict[str, Any]] = {}
        self._open: dict[str, _OpenRequest] = {}
        self._by_key: dict[str, str] = {}

    def requested(self, line: Mapping[str, Any]) -> Iterable[Action]:
        """Handle a `control_request`; an unknown one is answered too, or the program would wait forever."""
        request_id, request = text_in(line.get("request_id")), object_in(line.get("request"))
        subtype, tool = text_in(request.get("subtype")), text_in(request.get("tool_name"))
        if not request_id:
            self.transcript.unknown["control_request without an id"] += 1
            return []
        if subtype == "hook_callback" and request.get("callback_id") in (_HOOK, _PROMPT_HOOK):
            self.are_hooks_called = True
            is_prompt = request["callback_id"] == _PROMPT_HOOK
            return [_respond(request_id, {})] if is_prompt else self._before_call(request_id, request)
        if subtype != "can_use_tool":
            self.transcript.unknown[f"control_request {subtype}"] += 1
            row = Row(RowType.NOTE, request_id, text=bounded_text(f"an unknown request was refused: {subtype}"))
            return [Note(row), _refuse(request_id, f"{subtype!r} is not supported")]
        if self._is_closed(tool):
            return [_closed_row(request_id, tool), _respond(request_id, _denial(_closed(tool)))]
        arguments = object_in(request.get("input"))
        if self._allowed.get(text_in(request.get("tool_use_id"))) == arguments:
            # A rule of the person's own has it ask once more; with other arguments it is another question.
            return [_respond(request_id, _permitted(arguments))]
        if tool == QUESTION_TOOL and (asks := list(self._questions(request_id, request))):
            return asks
        self._keep(request_id, _OpenRequest(arguments, [request_id]))
        # Where it suggests nothing for good, it would ask again.
        rules = lasting(tool, arguments) if request.get("permission_suggestions") else []
        return [self._permission(request_id, tool, arguments, request, rules)]

    def _before_call(self, request_id: str, request: Mapping[str, Any]) -> Iterable[Action]:
        hooked = object_in(request.get("input"))
        tool, arguments = text_in(hooked.get("tool_name")), object_in(hooked.get("tool_input"))
        call = text_in(request.get("tool_use_id")) or text_in(hooked.get("tool_use_id"))
        self.seen.add(call)
        if self._is_closed(tool):
            return [_closed_row(request_id, tool), _respond(request_id, _hook_answer(_DENY, _closed(tool)))]
        self._keep(request_id, _OpenRequest(arguments, [request_id], call=call))
        return [
            self._permission(request_id, tool, arguments, hooked, lasting(tool, arguments))._replace(
                leave=_LEAVE,
                harmless=_LEAVE,
                reads=[] if tool == LEAVING_PLAN else read_by(tool, arguments, text_in(hooked.get("cwd"))),
                places=places_of(text_in(hooked.get("transcript_path")), os.getuid()),
            )
        ]

    def _is_closed(self, tool: str) -> bool:
        return self.is_offered is not None and tool not in INNER and not self.is_offered(tool)

    def _permission(
        self, key: str, tool: str, arguments: dict[str, Any], request: Mapping[str, Any], rules: Rules
    ) -> Ask:
        options = [(_ALLOW, "Allow"), (_DENY, "Deny")]
        if rules:
            options.insert(1, (_ALWAYS, f"Allow from now on: {_described(tool, rules[0]['pattern'])}"))
        agent, agent_type = self.transcript.agent_of(text_in(request.get("agent_id")))
        return Ask(
            key,
            _wording(request),
            options,
            tool=tool,
            arguments=arguments,
            means=_MEANS,
            lasting=rules,
            asked_by=agent,
            asked_by_type=agent_type or text_in(request.get("agent_type")) or None,
        )

    def _questions(self, request_id: str, request: Mapping[str, Any]) -> Iterator[Ask]:
        arguments = object_in(request.get("input"))
        questions = [object_in(question) for question in list_in(arguments.get("questions"))]
        agent, agent_type = self.transcript.agent_of(text_in(request.get("agent_id")))
        keys = [f"{request_id}#{number}" for number in range(len(questions))]
        self._keep(request_id, _OpenRequest(arguments, keys, questions=questions))
        for key, question in zip(keys, questions, strict=True):
            yield Ask(
                key,
                text_in(question.get("question")) or text_in(question.get("header")),
                _options(question),
                asked_by=agent,
                asked_by_type=agent_type,
                multiple=question.get("multiSelect") is True,
                other=True,
            )

    def _keep(self, request_id: str, request: _OpenRequest) -> None:
        self._open[request_id] = request
        self._by_key.update(dict.fromkeys(request.keys, request_id))

    def answered(self, key: str, answer: str, denial: str) -> Sequence[Action]:
        """Pass on an answer; several questions of one request are answered together.

        Args:
            denial: What the model reads if the answer is a denial.
        """
        request_id = self._by_key.pop(key, "")
        request = self._open.get(request_id)
        if request is None:
            return ()
        if request.questions:
            request.answers[key] = answer
            if len(request.answers) < len(request.questions):
                return ()
        del self._open[request_id]
        if request.questions:
            return [_respond(request_id, _replies(request))]
        if request.call is None:
            return [_respond(request_id, _decision(request.arguments, answer, denial))]
        if answer in {_ALLOW, _ALWAYS}:
            self._allowed[request.call] = request.arguments
        return [_respond(request_id, _hook_answer(answer, denial))]

    def taken_back(self, line: Mapping[str, Any]) -> Iterable[Action]:
        """Handle a `control_cancel_request`."""
        return self._withdraw(text_in(line.get("request_id")))

    def withdrawn(self) -> list[Action]:
        """Withdraw all open requests."""
        return [action for request_id in list(self._open) for action in self._withdraw(request_id)]

    def _withdraw(self, request_id: str) -> list[Action]:
        request = self._open.pop(request_id, None)
        keys = request.keys if request else []
        return [Withdraw(key) for key in keys if self._by_key.pop(key, None)]


def _wording(request: Mapping[str, Any]) -> str:
    """Return what the model and the program say about a call."""
    said = (text_in(request.get(key)) for key in ("description", "decision_reason"))
    return bounded_text("; ".join(filter(None, said)))


def _described(tool: str, pattern: str) -> str:
    return tool if pattern == "*" else f"{tool}({pattern})"


def _labels(question: Mapping[str, Any]) -> list[str]:
    return [text_in(object_in(option).get("label")) for option in list_in(question.get("options"))]


def _ids(labels: Sequence[str]) -> list[str]:
    """Return the options' ids: their labels, or numbers if the labels are ambiguous or cannot be typed."""
    names = [label.strip() for label in labels]
    is_plain = len(set(names)) == len(names) and all(name.isprintable() and name and "," not in name for name in names)
    return names if is_plain else [str(number + 1) for number in range(len(labels))]


def _options(question: Mapping[str, Any]) -> list[tuple[str, str]]:
    labels = _labels(question)
    about = [text_in(object_in(option).get("description")) for option in list_in(question.get("options"))]
    return [
        (key, f"{label}: {more}" if more else label)
        for key, label, more in zip(_ids(labels), labels, about, strict=True)
    ]


def _replies(request: _OpenRequest) -> dict[str, Any]:
    answers = {
        text_in(question.get("question")): _reply(question, request.answers[key])
        for key, question in zip(request.keys, request.questions, strict=True)
    }
    return {"behavior": "allow", "updatedInput": {**request.arguments, "answers": answers}}


def _reply(question: Mapping[str, Any], answer: str) -> str:
    """Return the answer, with ids replaced by the labels that the model gave."""
    labels = _labels(question)
    by_id = dict(zip(_ids(labels), labels, strict=True))
    if question.get("multiSelect") is not True:
        return by_id.get(answer, answer)
    return ", ".join(by_id.get(part.strip(), part.strip()) for part in answer.split(","))


def _decision(arguments: Mapping[str, Any], answer: str, denial: str) -> dict[str, Any]:
    if answer in {_ALLOW, _ALWAYS}:
        return _permitted(arguments)
    return _denial(denial if answer in {_DENY, ""} else answer)


def _permitted(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"behavior": "allow", "updatedInput": arguments}


def _denial(message: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": message, "interrupt": False}


def _hook_answer(answer: str, denial: str) -> dict[str, Any]:
    if answer == _LEAVE:
        return {}
    if answer in {_ALLOW, _ALWAYS}:
        decision, why = "allow", "agentctl"
    else:
        decision, why = "deny", denial if answer in {_DENY, ""} else answer
    decided = {"hookEventName": _EVENT, "permissionDecision": decision, "permissionDecisionReason": why}
    return {"hookSpecificOutput": decided}


def _closed(tool: str) -> str:
    return f"{tool} may not be used by this agent."


def _closed_row(request_id: str, tool: str) -> Note:
    return Note(Row(RowType.NOTE, request_id, name="permission", text=bounded_text(f"deny: {tool} is not offered")))


def _respond(request_id: str, response: Mapping[str, Any]) -> Say:
    return _say({"subtype": "success", "request_id": request_id, "response": response})


def _refuse(request_id: str, error: str) -> Say:
    return _say({"subtype": "error", "request_id": request_id, "error": error})


def _say(response: Mapping[str, Any]) -> Say:
    return Say(line_of({"type": "control_response", "response": response}))
