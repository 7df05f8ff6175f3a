"""How a worker's question is put to the user of a client, and what the client's reply means as an answer.

A request for permission becomes a dialog of the protocol, with the answers that are offered where so much of the call
is shown (`domain.question`). Another question becomes a form; for a client without forms, a dialog with its options,
or a text. What no dialog or form answers becomes a text: the turn ends with it, and the next prompt is the answer.
"""

from __future__ import annotations

import shlex
from typing import Any

from agentctl.adapters.files import read_known
from agentctl.domain.agent.telling_argument import DESCRIPTION
from agentctl.domain.answers import answers_in_words, check_answer
from agentctl.domain.question import (
    ALLOW,
    DENY,
    LONGEST_LABEL,
    AnswerOption,
    Question,
    ShownQuestion,
    offered,
    question_within,
    safe,
)
from agentctl.domain.text.plaintext import beginning, distinct, plain, whole
from agentctl.errors import AtTerminal, Refused
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.interfaces.editor.updates.client_bounds import bounded_json
from agentctl.interfaces.editor.updates.contents import (
    Content,
    code_content,
    code_span,
    fenced,
    look_content,
    text_content,
)
from agentctl.interfaces.editor.updates.html_as_text import html_as_text
from agentctl.interfaces.editor.updates.tool_cards import title_of
from agentctl.interfaces.words.looks.call_kinds import tool_kind
from agentctl.interfaces.words.looks.call_look import CallLook, call_look, is_of_tabs
from agentctl.interfaces.words.question_pieces import kind_of_asker
from agentctl.interfaces.words.value_words import shown_json
from agentctl.lean import NamedTuple

FIELD, OTHER = "answer", "other"
#: In characters as shown.
_LONGEST = 4000
_NOT_ALLOWED = "This is not the whole call, so it cannot be allowed here. The whole call:"
_KINDS = {ALLOW: "allow_once", DENY: "reject_once"}


class Choice(NamedTuple):
    """A dialog with buttons: the parameters of `session/request_permission`, without the session."""

    tool_call: dict[str, Any]
    options: list[dict[str, str]]


class _Passage(NamedTuple):
    """A passage of a question: Markdown, or code, which it is to stay however the question is cut into pieces."""

    text: str
    is_code: bool = False


def dialog_words(question: EditorQuestion) -> str:
    """Return a question as a text, with the call that it is about."""
    between = "\n" if question.asked.is_permission else "\n\n"
    return between.join(fenced(one.text) if one.is_code else one.text for one in _passages(question))


def _passages(question: EditorQuestion) -> list[_Passage]:
    asked, seen = question.asked, part_shown(question)
    if asked.is_permission:
        words = f"in its own words: {safe(asked, asked.described)}" if asked.described else ""
        shown_of_it = "\n".join(part for part in (seen.text, seen.call, words) if part)
        not_whole = [] if seen.is_whole else [_Passage(_NOT_ALLOWED), _Passage(_whole_command(question), is_code=True)]
        return [_Passage(f"{_asker(question)} asks:"), _Passage(shown_of_it, is_code=True), *not_whole]
    text = html_as_text(seen.text)
    apart = "\n\n" if "\n" in text or not text[:1].isalnum() else " "
    options = "\n".join(f"{_in_a_line(asked, one.id)}: {_in_a_line(asked, one.label)}" for one in asked.options)
    said = _Passage(f"{_asker(question)} asks:{apart}{text}")
    return [said, _Passage(options, is_code=True)] if options else [said]


def _asker(question: EditorQuestion) -> str:
    kind = kind_of_asker(question.asked) if question.asked.asked_by_type else ""
    return question.worker.instance + (f" ({code_span(kind)})" if kind else "")


def _in_a_line(asked: Question, text: str) -> str:
    """Return a text of an option without line breaks: it could look like two options."""
    return safe(asked, text).replace("\n", " ")


def _dialog_content(question: EditorQuestion) -> list[Content]:
    """Return a question as the content of its dialog: of a call that is shown whole, what it would do."""
    asked = question.asked
    look = call_look(asked.tool or "", asked.arguments) if asked.is_permission else None
    if look is None or not part_shown(question).is_whole:
        shown = ((code_content if one.is_code else text_content)(one.text) for one in _passages(question))
        return [content for contents in shown for content in contents]
    rest = {**look.rest, **({DESCRIPTION: look.said} if look.said else {})}
    words = asked.described if asked.described != look.said else None
    cwd = str(read_known(question.worker.spec).get("cwd") or "/")
    return [
        *text_content(f"{_asker(question)} asks:\n{fenced(safe(asked, asked.text))}"),
        *(content for part in look.parts for content in _asked_content(look._replace(parts=(part,)), cwd)),
        *(code_content(safe(asked, shown_json(rest)), "json") if rest else ()),
        *(code_content(safe(asked, f"in its own words: {words}")) if words else ()),
    ]


def _asked_content(look: CallLook, cwd: str) -> list[Content]:
    """Return what a call would do to one thing, with what nobody sees spelled out."""
    keep = "" if is_of_tabs(look.parts[0].lines) else "\t"
    return look_content(look, cwd, lambda line: distinct(whole(plain(line, keep=keep))))


def part_shown(question: EditorQuestion) -> ShownQuestion:
    """Return how much of a question a client shows."""
    return question_within(question.asked, _LONGEST)


def is_for_chat(question: EditorQuestion, *, shows_forms: bool) -> bool:
    """Return whether a question is put as a text that the next prompt answers: its agent only waits for that."""
    asked = question.asked
    return question.is_own and not shows_forms and not asked.is_permission and not asked.choices


def written(question: EditorQuestion, said: str) -> str:
    """Return the answer that a user's text means, if it may be given where so much of the question is shown.

    Raises:
        UsageError: It is not one of the options.
        Refused: It would allow a call that is not shown whole.
    """
    asked = question.asked
    answer = check_answer(asked, said.strip() if asked.choices else said)
    if asked.is_permission and answer not in {one.id for one in offered(asked, part_shown(question))}:
        raise Refused(
            "this call was not shown whole, so it cannot be allowed here", hint=AtTerminal(way_to_answer(question))
        )
    return answer


def way_to_answer(question: EditorQuestion) -> str:
    """Return the command that answers a question at a terminal, with the answers that this one may be given here."""
    return f"{_answer_command(question)} (ANSWER: {_answers(question)})"


def answer_advice(question: EditorQuestion) -> str:
    """Return the same as Markdown: as code, from which the command can be copied."""
    return fenced(f"{_answer_command(question)}\nANSWER: {_answers(question)}")


def _answer_command(question: EditorQuestion) -> str:
    return f"agentctl answer {question.worker.instance} ANSWER {_place_of(question)} --id {question.asked.id}"


def _answers(question: EditorQuestion) -> str:
    return answers_in_words(question.asked, part_shown(question))


def _whole_command(question: EditorQuestion) -> str:
    """Return the command that shows all of a call at a terminal."""
    if question.asked.is_cut:
        return f"agentctl logs {question.worker.instance} {_place_of(question)} --raw"
    return f"agentctl interact list {_place_of(question)}"


def _place_of(question: EditorQuestion) -> str:
    task = question.worker.task
    return f"--task {task.id} --root {shlex.quote(str(task.root.path))}"


# -- dialogs with buttons ----------------------------------------------------------------------------------------------


def choice_of(question: EditorQuestion, call: str) -> Choice | None:
    """Return a question as a dialog with buttons; None if nothing can be chosen.

    Args:
        call: The id of the tool call that the dialog is about.
    """
    asked = question.asked
    options = [_button(asked, one) for one in offered(asked, part_shown(question))]
    if not options:
        return None
    tool, arguments = asked.tool, asked.arguments
    title = title_of(tool, arguments if isinstance(arguments, dict) else None) if tool else ""
    words = title or beginning(safe(asked, asked.text), LONGEST_LABEL)
    fields: dict[str, Any] = {
        "toolCallId": call, "status": "pending", "kind": tool_kind(tool) if tool else "other",
        "title": words if question.is_own else f"{question.worker.instance}: {words}",
        "content": _dialog_content(question),
    }  # fmt: skip
    if arguments:
        fields["rawInput"] = bounded_json(arguments)
    return Choice(fields, options)


def _button(asked: Question, option: AnswerOption) -> dict[str, str]:
    if asked.is_permission:
        kind = _KINDS.get(asked.meaning(option.id), "allow_always")
    else:
        kind = "reject_once" if asked.kind == "confirm" and option.id == "no" else "allow_once"
    return {"optionId": option.id, "name": _label(asked, option), "kind": kind}


def _label(asked: Question, option: AnswerOption) -> str:
    return beginning(_in_a_line(asked, option.label), LONGEST_LABEL) or option.id


def chosen_option(choice: Choice, reply: object) -> str | None:
    """Return the option that a client's reply names; None if it chose none that was offered."""
    outcome = reply.get("outcome") if isinstance(reply, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    known = {one["optionId"] for one in choice.options}
    option = outcome.get("optionId")
    return option if isinstance(option, str) and option in known else None


# -- forms -------------------------------------------------------------------------------------------------------------


def dialog_form(question: EditorQuestion) -> dict[str, Any]:
    """Return the schema of a question's form; what is asked goes with it as the message."""
    asked = question.asked
    options = [{"const": one.id, "title": _label(asked, one)} for one in asked.options]
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if asked.kind == "confirm":
        field = {"type": "boolean", "title": "Yes?"}
    elif options and asked.multiple:
        field = {"type": "array", "title": "Answers", "items": {"anyOf": options}}
    elif options:
        field["oneOf"] = options
    properties = {FIELD: field}
    if asked.other and options:
        properties[OTHER] = {"type": "string", "title": "Another answer"}
        return {"type": "object", "properties": properties}
    return {"type": "object", "properties": properties, "required": [FIELD]}


def filled(question: EditorQuestion, reply: object) -> str | None:
    """Return the answer in a form that a client's user has filled in; None if there is none."""
    content = reply.get("content") if isinstance(reply, dict) and reply.get("action") == "accept" else None
    if not isinstance(content, dict):
        return None
    other, value = content.get(OTHER), content.get(FIELD)
    if question.asked.other and isinstance(other, str) and other.strip():
        return other
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return value if isinstance(value, str) and value.strip() else None
