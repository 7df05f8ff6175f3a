"""`interact ask|list|respond`: the questions of workers, and their answers."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentctl.domain.answers import check_answer
from agentctl.domain.names import is_name
from agentctl.domain.question import EVERYTHING, KINDS, Question, offered, question_within
from agentctl.domain.text.plaintext import distinct, plain
from agentctl.errors import Argument, AtTerminal, ExitCode, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    ANSWER,
    CHOICE,
    FINDS,
    FLAG,
    QUESTIONS,
    SECONDS,
    TEXT,
    TEXTS,
    Carried,
    Command,
    Family,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANYWHERE, HOSTS, IN_ALL_TASKS, PLAIN
from agentctl.interfaces.commands.parts.question_lines import (
    ASKER_GONE,
    TypedAnswer,
    accepted_line,
    answer_command,
    check_offered,
    confirm,
    question_lines,
)
from agentctl.interfaces.words.outline import fields
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.talk.asking import ask_as_caller as ask_question
from agentctl.operations.talk.interacting import (
    OpenQuestion,
    find_questions,
    find_questions_below,
    only_question,
    questions_of,
)
from agentctl.operations.talk.interacting import answer_open_question as answer_question
from agentctl.operations.where.command_lines import root_words

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost
    from agentctl.domain.documents.workers.questions import AcceptedAnswer, GivenAnswer, HostQuestionRow, QuestionRow

_NONE = "no open question"
RAW_CALLS = Parameter("raw", FLAG, "Of a call its arguments as they are, and not what it would do.")
#: Of more questions of a worker, the further ones are not named in a hint.
_MOST_NAMED = 3


def ask(
    call: Invocation,
    *,
    question: str,
    kind: str | None = None,
    option: list[str] | None = None,
    default: str | None = None,
    timeout_seconds: float | None = None,
    deadline_seconds: float | None = None,
    question_id: str | None = None,
) -> Shown[GivenAnswer]:
    """Ask a question from inside a worker; wait for the answer and print it alone.

    The worker is blocked meanwhile; its clock stands still as long as it does nothing else. After --timeout-seconds
    the default is the answer; without a default the exit code is 4.
    """
    options = [_option(text) for text in option or []]
    chosen = kind or ("select" if options else "input")
    answered = ask_question(
        question,
        kind=chosen,
        options=options,
        default=default,
        deadline_s=deadline_seconds if timeout_seconds is None else timeout_seconds,
        question_id=question_id,
    )
    answer = answered["answer"]
    return Shown(answered, [answer], lambda: [plain(answer, keep="\n\t")])


def _option(text: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not name:
        raise UsageError(WithArguments(Argument("option"), f" {text!r} is not of the form ID=LABEL"))
    return name, label if equals else name


def list_questions_command(
    call: Invocation,
    *,
    recursive: bool = False,
    hosts: str | None = None,
    raw: bool = False,
    plain_text: bool = False,
) -> Showing[Iterable[QuestionRow | HostQuestionRow | FailedHost]]:
    """List the open questions of all tasks.

    On a command line:
        To a pipe, one line each: task, instance, id, kind, question, then a field ID=LABEL for each option; with
        --hosts the host comes first. At a terminal what agents wrote is drawn, which is Markdown; --plain has its
        source.
    """
    if hosts is not None:
        return (yield from _list_across(call, hosts, recursive=recursive, is_raw=raw, is_source=plain_text))
    looked = find_questions_below(call.task()) if recursive else find_questions(call.root(), call.named_task())
    call.warn(looked.warnings)
    found = looked.questions

    def lines() -> list[str]:
        root = root_words(call.root())
        return _numbered([question_lines(one, root=root, is_raw=raw, is_source=plain_text) for one in found])

    yield Shown([one.to_json() for one in found], map(question_line, found), lambda: lines() or [_NONE])
    return call.report_unreadable(looked.unreadable)


def _list_across(
    call: Invocation, hosts: str, *, recursive: bool, is_raw: bool, is_source: bool
) -> Showing[list[HostQuestionRow | FailedHost]]:
    from agentctl.interfaces.commands.model.far_line import far_line
    from agentctl.interfaces.commands.parts.merged_rows import Merged, ask_hosts, asked_there

    argv = far_line("interact list", call, recursive=recursive, json=True)
    merged: Merged[HostQuestionRow] = Merged(
        ask_hosts(hosts, argv), lambda row: (f"{fields(row['host'])}\t{question_line(asked_there(row))}", row)
    )

    def lines() -> list[str]:
        asked = [(asked_there(row), row["host"]) for _, row in merged.shown]
        return _numbered([question_lines(one, host, is_raw=is_raw, is_source=is_source) for one, host in asked])

    yield Shown(merged.document(), [line for line, _ in merged.shown], lambda: lines() or [_NONE])
    return merged.report(call)


def _numbered(questions: list[list[str]]) -> list[str]:
    """Return the lines of all questions; of several, each begins with its number."""
    numbers = [f"{number}. " if len(questions) > 1 else "" for number in range(1, len(questions) + 1)]
    return [line for number, (first, *rest) in zip(numbers, questions, strict=True) for line in (number + first, *rest)]


def question_line(asked: OpenQuestion) -> str:
    """Return a question as one line for a pipe."""
    one = asked.question
    known = (asked.task_id, asked.instance, one.id, one.kind, _asked(one))
    return fields(*known, *(f"{option.id}={option.label}" for option in offered(one, question_within(one, EVERYTHING))))


def _asked(question: Question) -> str:
    """Return a question in one line: that for a permission with the call that it is about."""
    if not question.is_permission or not question.arguments:
        return question.text
    cut = " [cut]" if question.is_cut else ""
    return distinct(f"{question.text} {json.dumps(question.arguments, ensure_ascii=False)}{cut}")


def respond(
    call: Invocation,
    *,
    words: list[str],
    question_id: str | None = None,
    reason: str | None = None,
    hosts: str | None = None,
) -> Carried[AcceptedAnswer]:
    """Answer a question.

    With the worker and the --id, as every list names them, exactly that question is answered, never one that was asked
    later. Without these, a terminal shows the only open question and asks you to confirm; in any other case the answer
    is refused.

    The first valid answer counts; a second one is refused. A request for permission takes allow, deny and, if it
    offers that, allow_always, whatever the program calls them. Several answers are separated by commas.
    """
    if len(words) > 2:
        raise UsageError(f"{len(words)} words were given for INSTANCE and ANSWER", hint="put the answer in quotes")
    instance, answer = words[0] if len(words) == 2 else None, words[-1]
    if hosts is not None:
        from agentctl.interfaces.commands.parts.merged_rows import respond_across

        return respond_across(call, hosts, TypedAnswer(instance, question_id, answer, reason))
    if instance is None:
        _refuse_forgotten(call, answer)
    if instance is None or question_id is None:
        asked = only_question(call.root(), call.named_task(), instance, question_id)
        confirm(call, asked, answer)
        return answer_shown(call, asked, answer, reason)
    done = answer_question(
        call.root(), task=call.named_task(), instance=instance, question_id=question_id, answer=answer, reason=reason,
    )  # fmt: skip
    return _accepted(done)


def answer_shown(call: Invocation, asked: OpenQuestion, answer: str, reason: str | None) -> Shown[AcceptedAnswer]:
    """Answer a question as it was shown; if it is another one by now, or its call was not shown whole, do not."""
    check_offered(asked, check_answer(asked.question, answer), answer_command(asked))
    done = answer_question(
        call.root(), task=call.root().task(asked.task_id), instance=asked.instance, question_id=asked.question.id,
        answer=answer, reason=reason, shown=asked.question,
    )  # fmt: skip
    return _accepted(done)


def _accepted(done: AcceptedAnswer) -> Shown[AcceptedAnswer]:
    return Shown(done, [accepted_line(done)], notes=[] if done["waiting"] else [ASKER_GONE])


def _refuse_forgotten(call: Invocation, word: str) -> None:
    """Raise `UsageError` where the only word names a worker that asks: its answer was forgotten."""
    found = [one for one in questions_of(call.root(), call.named_task(), word) if not one.question.idle]
    if is_name(word) and found:
        raise UsageError(
            f"no answer to {word} was given", hint=AtTerminal("; ".join(map(answer_command, found[:_MOST_NAMED])))
        )


_LIST = Command(
    "list",
    list_questions_command,
    IN_ALL_TASKS,
    """
agentctl interact list
agentctl interact list --recursive --task survey-auth --json
agentctl interact list --hosts all
""",
    (
        Parameter("recursive", FLAG, "Only those of the task and its sub-tasks."),
        HOSTS,
        RAW_CALLS,
        PLAIN,
    ),
)
COMMANDS = (
    Family(
        "interact",
        """Ask, list and answer the questions of workers.

Without a subcommand: `interact list`. A person lists and answers them with `answer`.
""",
        """
agentctl interact list
agentctl interact respond explore-1 --id q1 yes
agentctl interact ask --kind confirm "Go on?"
""",
        (
            Command(
                "ask",
                ask,
                ANYWHERE,
                """
agentctl interact ask --kind confirm --default no "Delete the branch?"
agentctl interact ask --option api=Backend --option web=Frontend "Which part first?"
agentctl interact ask --timeout-seconds 60 "What is the ticket's number?"
""",
                (
                    Parameter("question", TEXT, "What is asked.", "QUESTION", is_argument=True, is_required=True),
                    Parameter(
                        "kind",
                        CHOICE,
                        "select with --option, confirm for yes or no, input for any text.",
                        choices=KINDS,
                    ),
                    Parameter("option", TEXTS, "One to select from.", "ID=LABEL"),
                    Parameter("default", TEXT, "The answer if the time runs out.", "ANSWER"),
                    Parameter("timeout_seconds", SECONDS, "How long to wait for the answer.", "N"),
                    Parameter("deadline_seconds", SECONDS, "", is_hidden=True),
                    Parameter(
                        "question_id",
                        TEXT,
                        "The question's id; if already asked, wait for its answer again.",
                        "ID",
                        typed="id",
                    ),
                ),
                exits=(ExitCode.TIMED_OUT,),
            ),
            _LIST,
            Command(
                "respond",
                respond,
                IN_ALL_TASKS,
                """
agentctl interact respond explore-1 --id q1 api
agentctl interact respond explore-1 --id q2 "42"
agentctl interact respond fix --task login --id q1 allow
agentctl interact respond fix --id q1 deny --reason "not on a Friday: only prepare it"
agentctl interact respond deploy live
""",
                (
                    Parameter(
                        "words",
                        TEXTS,
                        "Who asked (a worker or a sub-task); the answer.",
                        "[INSTANCE] ANSWER",
                        is_argument=True,
                        is_required=True,
                        completes=ANSWER,
                    ),
                    Parameter("question_id", TEXT, "Which of its questions.", "ID", typed="id", completes=QUESTIONS),
                    Parameter("reason", TEXT, "Why a permission is denied; the agent reads it.", "TEXT"),
                    HOSTS,
                ),
            ),
        ),
        exits=(*FINDS, ExitCode.TIMED_OUT),
        without=_LIST,
    ),
)
