"""`answer`: the open questions, one of them whole, and its answer, as each is asked for."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.errors import AgentctlError, Argument, AtTerminal, Next, Refused, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    ANSWER,
    QUESTIONS,
    TEXT,
    TEXTS,
    Carried,
    Command,
    Parameter,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import HOSTS, IN_ALL_TASKS, PLAIN
from agentctl.interfaces.commands.parts.question_lines import answer_command, can_ask_back, question_lines
from agentctl.interfaces.commands.steer.interact import (
    RAW_CALLS,
    answer_shown,
    list_questions_command,
    question_line,
    respond,
)
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.talk.interacting import OpenQuestion, list_questions, only_question
from agentctl.operations.where.command_lines import root_words

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost
    from agentctl.domain.documents.workers.questions import AcceptedAnswer, HostQuestionRow, QuestionRow

#: Of more open questions, the further ones are not named in a hint.
_MOST_NAMED = 3


def answer_questions(
    call: Invocation,
    *,
    words: list[str] | None = None,
    question_id: str | None = None,
    reason: str | None = None,
    hosts: str | None = None,
    raw: bool = False,
    plain_text: bool = False,
) -> Carried[AcceptedAnswer | Iterable[QuestionRow | HostQuestionRow | FailedHost]]:
    """Show the open questions of workers, and answer them.

    Alone it lists the open questions of all tasks, each with the line that answers it. With a WORKER it shows the
    question of that worker, whole, and on a terminal reads your answer there. With an ANSWER it gives that: with the
    --id, as every list names it, exactly that question is answered, never one that was asked later; without it a
    terminal shows the question and asks you to confirm, and in any other case the answer is refused.

    The first valid answer counts. A request for permission takes allow, deny and, if it offers that, allow_always,
    whatever the program calls them. Several answers are separated by commas.

    At a terminal what an agent wrote is drawn, which is Markdown; --plain and a pipe have its source.
    """
    if not words:
        if question_id is not None or reason is not None:
            raise UsageError(
                WithArguments(Argument("id"), " and ", Argument("reason"), " are about the question of a worker"),
                hint=Next("help", "answer"),
            )
        return list_questions_command(call, hosts=hosts, raw=raw, plain_text=plain_text)
    if len(words) > 1:
        return respond(call, words=words, question_id=question_id, reason=reason, hosts=hosts)
    if hosts is not None:
        raise UsageError(
            WithArguments("with ", Argument("hosts"), " the answer follows the worker"), hint=Next("help", "answer")
        )
    asked = _question_of(call, words[0], question_id)
    return _read_answer(call, asked, reason, is_raw=raw, is_source=plain_text)


def _question_of(call: Invocation, instance: str, question_id: str | None) -> OpenQuestion:
    """Return the only open question of a worker or a sub-task.

    Raises:
        AgentctlError: It has none, or several; the hint has the lines that answer what is open.
    """
    root, task = call.root(), call.named_task()
    known = list_questions(root, task)
    its_own = [
        one
        for one in known
        if instance in (one.instance, one.task_id) and question_id in (None, one.question.id)
    ]  # fmt: skip
    found = [one for one in its_own if not one.question.idle] or its_own
    if len(found) == 1:
        return found[0]
    hint = "; ".join(answer_command(one, root=root_words(root)) for one in (found or known)[:_MOST_NAMED])
    if found:
        raise UsageError(f"{len(found)} questions of {instance} are open", hint=AtTerminal(hint))
    try:
        return only_question(root, task, instance, question_id)
    except AgentctlError as error:
        error.hint = hint or error.hint
        raise


def _read_answer(
    call: Invocation, asked: OpenQuestion, reason: str | None, *, is_raw: bool, is_source: bool
) -> Shown[AcceptedAnswer | list[QuestionRow]]:
    """Show a question, and answer it with what is typed then, where somebody sits at a terminal."""
    root = root_words(call.root())
    lines = question_lines(asked, root=root, is_raw=is_raw, is_source=is_source)
    if asked.question.idle or not can_ask_back(call):
        return Shown([asked.to_json()], [question_line(asked)], lambda: lines)
    call.note_all(lines)
    typed = call.typed("your answer:")
    if not typed.strip():
        raise Refused("nothing was answered", hint=AtTerminal(answer_command(asked, root=root)))
    return answer_shown(call, asked, typed, reason)


COMMANDS = (
    Command(
        "answer",
        answer_questions,
        IN_ALL_TASKS,
        """
agentctl answer
agentctl answer fix
agentctl answer fix --id q1 allow
agentctl answer fix --task login --id q1 deny --reason "not on a Friday: only prepare it"
""",
        (
            Parameter(
                "words",
                TEXTS,
                "Who asked (a worker or a sub-task); the answer.",
                "[WORKER] [ANSWER]",
                is_argument=True,
                completes=ANSWER,
            ),
            Parameter("question_id", TEXT, "Which of its questions.", "ID", typed="id", completes=QUESTIONS),
            Parameter("reason", TEXT, "Why a permission is denied; the agent reads it.", "TEXT"),
            HOSTS,
            RAW_CALLS,
            PLAIN,
        ),
    ),
)
