"""How a worker's question is put to the user of a client, and what the client's reply means as an answer.

A request for permission becomes a dialog of the protocol. It can allow only a call that it shows whole: for a longer
one it offers only denials, and says where the rest is. Another question becomes a form; for a client without forms, a
dialog with its options, or a text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from agentctl.acp.bounds import bounded_json
from agentctl.acp.calls import kind_of, title_of
from agentctl.acp.conversation import EditorQuestion
from agentctl.acp.updates import text_content
from agentctl.domain.answers import ALLOW, DENY, meaning
from agentctl.domain.plaintext import beginning, distinct, plain, whole
from agentctl.lean import NamedTuple

FIELD, OTHER = "answer", "other"
#: In characters as shown.
_LONGEST, _LONGEST_LABEL = 4000, 1000
_KINDS = {ALLOW: "allow_once", DENY: "reject_once"}


class Choice(NamedTuple):
    """A dialog with buttons: the parameters of `session/request_permission`, without the session."""

    tool_call: dict[str, Any]
    options: list[dict[str, str]]


def words_of(question: EditorQuestion) -> str:
    """Return a question as a text, with the call that it is about."""
    shown, show = question.shown, _shown_of_call if question.shown.get("tool") else _shown
    by = shown.get("askedByType")
    who = question.worker.instance + (f" ({show(str(by))})" if by else "")
    lines = [f"{who} asks: {beginning(show(shown['question']), _LONGEST)}", beginning(_call_of(question), _LONGEST)]
    if shown.get("tool") and not is_whole(question):
        lines.append("This is not the whole call, so it cannot be allowed here.")
    lines += [
        f"- {show(one['id'])}: {show(one['label'])}" for one in shown.get("options") or [] if not shown.get("tool")
    ]
    return "\n".join(line for line in lines if line)


def is_for_chat(question: EditorQuestion, *, shows_forms: bool) -> bool:
    """Return whether a question is put as a text that the next prompt answers: its agent only waits for that."""
    has_options = bool(question.shown.get("options")) or question.shown.get("kind") == "confirm"
    return question.is_own and not shows_forms and not question.shown.get("tool") and not has_options


def way_to_answer(question: EditorQuestion) -> str:
    """Return the command that answers a question at a terminal."""
    worker, root = question.worker, shlex.quote(str(question.worker.task.root.path))
    where = f"--task {worker.task.id} --root {root} --id {plain(question.shown['id'])}"
    return f"agentctl interact respond {worker.instance} ANSWER {where}"


def is_whole(question: EditorQuestion) -> bool:
    """Return whether the whole call can be shown that a question is about."""
    asked = _shown_of_call(question.shown["question"])
    return not question.shown.get("isCut") and max(len(asked), len(_call_of(question))) <= _LONGEST


def _call_of(question: EditorQuestion) -> str:
    tool, arguments = question.shown.get("tool"), question.shown.get("arguments")
    if not tool:
        return ""
    return (
        f"{_shown_of_call(str(tool))} {_shown_of_call(json.dumps(arguments, ensure_ascii=False)) if arguments else ''}"
    )


def _shown(text: str) -> str:
    return whole(plain(text, keep="\n"))


def _shown_of_call(text: str) -> str:
    """Return a text of a call as it is allowed by its looks: also what nobody would see is seen."""
    return distinct(whole(plain(text)))


# -- dialogs with buttons ----------------------------------------------------------------------------------------------


def choice_of(question: EditorQuestion, call: str) -> Choice | None:
    """Return a question as a dialog with buttons; None if nothing can be chosen.

    Args:
        call: The id of the tool call that the dialog is about.
    """
    options = [_button(question, one) for one in _options_of(question)]
    if not options:
        return None
    shown = question.shown
    tool, arguments = shown.get("tool"), shown.get("arguments")
    title = title_of(str(tool), arguments if isinstance(arguments, dict) else None) if tool else ""
    asked = title or beginning(_shown(shown["question"]), _LONGEST_LABEL)
    fields: dict[str, Any] = {
        "toolCallId": call, "status": "pending", "kind": kind_of(str(tool)) if tool else "other",
        "title": asked if question.is_own else f"{question.worker.instance}: {asked}",
        "content": text_content(words_of(question)),
    }  # fmt: skip
    if arguments:
        fields["rawInput"] = bounded_json(arguments)
    return Choice(fields, options)


def _options_of(question: EditorQuestion) -> list[Mapping[str, Any]]:
    """Return the options that are offered: those that allow a call only if the user sees the whole of it."""
    shown = question.shown
    if shown.get("kind") == "confirm":
        return [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]
    options = list(shown.get("options") or [])
    if not shown.get("tool"):
        return options
    can_allow = is_whole(question)
    return [
        one
        for one in options
        if meaning(shown.get("means"), one["id"]) == DENY or (can_allow and len(one["label"]) <= _LONGEST_LABEL)
    ]


def _button(question: EditorQuestion, option: Mapping[str, Any]) -> dict[str, str]:
    shown = question.shown
    if shown.get("tool"):
        kind = _KINDS.get(meaning(shown.get("means"), option["id"]), "allow_always")
        name = _shown_of_call(option["label"])
    else:
        kind = "reject_once" if shown.get("kind") == "confirm" and option["id"] == "no" else "allow_once"
        name = _shown(option["label"])
    return {"optionId": whole(option["id"]), "name": beginning(name, _LONGEST_LABEL) or option["id"], "kind": kind}


def chosen(choice: Choice, reply: object) -> str | None:
    """Return the option that a client's reply names; None if it chose none that was offered."""
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    known = {one["optionId"] for one in choice.options}
    option = outcome.get("optionId")
    return option if isinstance(option, str) and option in known else None


# -- forms -------------------------------------------------------------------------------------------------------------


def form_of(question: EditorQuestion) -> dict[str, Any]:
    """Return the schema of a question's form; what is asked goes with it as the message."""
    shown = question.shown
    options = [{"const": whole(one["id"]), "title": _label(one)} for one in shown.get("options") or []]
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if shown.get("kind") == "confirm":
        field = {"type": "boolean", "title": "Yes?"}
    elif options and shown.get("multiple"):
        field = {"type": "array", "title": "Answers", "items": {"anyOf": options}}
    elif options:
        field["oneOf"] = options
    properties = {FIELD: field}
    if shown.get("other") and options:
        properties[OTHER] = {"type": "string", "title": "Another answer"}
        return {"type": "object", "properties": properties}
    return {"type": "object", "properties": properties, "required": [FIELD]}


def _label(option: Mapping[str, Any]) -> str:
    return beginning(_shown(option["label"]), _LONGEST_LABEL) or str(option["id"])


def filled(question: EditorQuestion, reply: object) -> str | None:
    """Return the answer in a form that a client's user has filled in; None if there is none."""
    content = reply.get("content") if isinstance(reply, dict) and reply.get("action") == "accept" else None
    if not isinstance(content, dict):
        return None
    other, value = content.get(OTHER), content.get(FIELD)
    if question.shown.get("other") and isinstance(other, str) and other.strip():
        return other
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return value if isinstance(value, str) and value.strip() else None
