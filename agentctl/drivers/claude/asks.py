"""Handles the `control_request` lines of Claude Code: requests for permission, and questions to the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.answers import ALLOW, ALLOW_ALWAYS, DENY
from agentctl.drivers.claude.rows import ClaudeTranscript
from agentctl.drivers.dialogue import Action, Ask, Note, Say, Withdraw
from agentctl.drivers.values import bounded, line_of, list_in, object_in, text_in

QUESTION_TOOL = "AskUserQuestion"
_ALLOW, _ALWAYS, _DENY = "allow", "allow_always", "deny"
_MEANS = {_ALLOW: ALLOW, _ALWAYS: ALLOW_ALWAYS, _DENY: DENY}


class _OpenRequest:
    """A request of the program that has no answer yet.

    Args:
        keys: The keys under which it was asked; more than one if it has several questions.
        suggestions: The permission updates that the answer "always" applies.
    """

    def __init__(
        self, arguments: dict[str, Any], keys: Sequence[str], *, suggestions: Sequence[dict[str, Any]] = (),
        questions: Sequence[dict[str, Any]] = (),
    ) -> None:  # fmt: skip
        self.arguments, self.keys, self.suggestions, self.questions = arguments, keys, suggestions, questions
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
        self._open: dict[str, _OpenRequest] = {}
        self._by_key: dict[str, str] = {}

    def requested(self, line: Mapping[str, Any]) -> Iterable[Action]:
        """Handle a `control_request`; an unknown one is answered too, or the program would wait forever."""
        request_id, request = text_in(line.get("request_id")), object_in(line.get("request"))
        subtype, tool = text_in(request.get("subtype")), text_in(request.get("tool_name"))
        if not request_id:
            self.transcript.unknown["control_request without an id"] += 1
            return []
        if subtype != "can_use_tool":
            self.transcript.unknown[f"control_request {subtype}"] += 1
            row = Row(RowType.NOTE, request_id, text=bounded(f"an unknown request was refused: {subtype}"))
            return [Note(row), _refuse(request_id, f"{subtype!r} is not supported")]
        if self.is_offered is not None and not self.is_offered(tool):
            row = Row(RowType.NOTE, request_id, name="permission", text=bounded(f"deny: {tool} is not offered"))
            return [Note(row), _respond(request_id, _denial(f"{tool} may not be used by this agent."))]
        if tool == QUESTION_TOOL and (asks := list(self._questions(request_id, request))):
            return asks
        return [self._permission(request_id, request)]

    def _permission(self, request_id: str, request: Mapping[str, Any]) -> Ask:
        tool, arguments = text_in(request.get("tool_name")), object_in(request.get("input"))
        suggestions = _suggestions(request)
        self._keep(request_id, _OpenRequest(arguments, [request_id], suggestions=suggestions))
        options = [(_ALLOW, "Allow"), (_DENY, "Deny")]
        if suggestions:
            options.insert(1, (_ALWAYS, f"Allow from now on: {_describe(suggestions)}"))
        agent, agent_type = self.transcript.agent_of(text_in(request.get("agent_id")))
        return Ask(
            request_id,
            _wording(request),
            options,
            tool=tool,
            arguments=arguments,
            means=_MEANS,
            asked_by=agent,
            asked_by_type=agent_type,
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
        return [_respond(request_id, _replies(request) if request.questions else _decision(request, answer, denial))]

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
    return bounded("; ".join(filter(None, said)))


def _suggestions(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the updates for "always", for this session only: a worker must not write the project's settings."""
    given = [object_in(one) for one in list_in(request.get("permission_suggestions"))]
    # A rule for such calls is enough; a mode that is also suggested would allow more than was asked for.
    rules = [one for one in given if one.get("type") == "addRules"] or [one for one in given if one]
    return [{**one, "destination": "session"} for one in rules]


def _describe(suggestions: Iterable[Mapping[str, Any]]) -> str:
    words: list[str] = []
    for one in suggestions:
        for rule in map(object_in, list_in(one.get("rules"))):
            content = text_in(rule.get("ruleContent"))
            words.append(text_in(rule.get("toolName")) + (f"({content})" if content else ""))
        words += [text_in(folder) for folder in list_in(one.get("directories"))]
        words.append(text_in(one.get("mode")))
    return bounded(", ".join(filter(None, words)) or "what the program suggests")


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


def _decision(request: _OpenRequest, answer: str, denial: str) -> dict[str, Any]:
    if answer == _ALLOW or (answer == _ALWAYS and request.suggestions):
        allowed = {"behavior": "allow", "updatedInput": request.arguments}
        return allowed if answer == _ALLOW else {**allowed, "updatedPermissions": request.suggestions}
    return _denial(denial if answer in {_DENY, ""} else answer)


def _denial(message: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": message, "interrupt": False}


def _respond(request_id: str, response: Mapping[str, Any]) -> Say:
    return _say({"subtype": "success", "request_id": request_id, "response": response})


def _refuse(request_id: str, error: str) -> Say:
    return _say({"subtype": "error", "request_id": request_id, "error": error})


def _say(response: Mapping[str, Any]) -> Say:
    return Say(line_of({"type": "control_response", "response": response}))
