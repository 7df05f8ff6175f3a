"""`interact ask|list|respond`: the questions of workers, and their answers."""

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.question_lines import ASKER_GONE, TypedAnswer, answer_command, confirm, question_lines
from agentctl.cli.render import fields, is_terminal, plain, report_unreadable, warn
from agentctl.cli.verb import FINDS, family, verb
from agentctl.domain.names import is_name
from agentctl.domain.plaintext import distinct
from agentctl.domain.question import EVERYTHING, Question, offered, question_within
from agentctl.errors import ExitCode, UsageError
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

app = family(
    "Ask, list and answer the questions of workers.",
    exits=(*FINDS, ExitCode.TIMED_OUT),
    examples="""
agentctl interact list
agentctl interact respond explore-1 --id q1 yes
agentctl interact ask --kind confirm "Go on?"
""",
)


_NONE = "no open question"
#: Of more questions of a worker, the further ones are not named in a hint.
_MOST_NAMED = 3


class Kind(StrEnum):
    """What an answer can be."""

    SELECT = "select"
    CONFIRM = "confirm"
    INPUT = "input"


@verb(
    app,
    "ask",
    exits=(ExitCode.TIMED_OUT,),
    examples="""
agentctl interact ask --kind confirm --default no "Delete the branch?"
agentctl interact ask --option api=Backend --option web=Frontend "Which part first?"
agentctl interact ask --timeout-seconds 60 "What is the ticket's number?"
""",
)
def ask(
    call: opt.Anywhere,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="select with --option, confirm for yes or no, input for any text.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="ID=LABEL", help="One to select from; repeatable.")
    ] = None,
    default: Annotated[
        str | None, typer.Option("--default", metavar="ANSWER", help="The answer if the time runs out.")
    ] = None,
    timeout_seconds: Annotated[
        float | None,
        typer.Option("--timeout-seconds", metavar="N", parser=opt.seconds, help="How long to wait for the answer."),
    ] = None,
    deadline_seconds: Annotated[
        float | None, typer.Option("--deadline-seconds", parser=opt.seconds, hidden=True)
    ] = None,
    question_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The question's id; if already asked, wait for its answer again."),
    ] = None,
) -> None:
    """Ask a question from inside a worker; wait for the answer and print it alone.

    The worker is blocked meanwhile; its clock stands still as long as it does nothing else. After --timeout-seconds
    the default is the answer; without a default the exit code is 4.
    """
    options = [_option(text) for text in option or []]
    chosen = kind or (Kind.SELECT if options else Kind.INPUT)
    answered = ask_question(
        question,
        kind=chosen.value,
        options=options,
        default=default,
        deadline_s=deadline_seconds if timeout_seconds is None else timeout_seconds,
        question_id=question_id,
    )
    answer = answered["answer"]
    call.show(answered, [plain(answer, keep="\n\t") if is_terminal(sys.stdout) else answer])


def _option(text: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not name:
        raise UsageError(f"--option {text!r} is not of the form ID=LABEL")
    return name, label if equals else name


@verb(
    app,
    "list",
    examples="""
agentctl interact list
agentctl interact list --recursive --task survey-auth --json
agentctl interact list --hosts all
""",
)
def list_questions_command(
    call: opt.InTask,
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Of the task and its sub-tasks; by default of all tasks.")
    ] = False,
    hosts: opt.Hosts = None,
) -> int:
    """List the open questions of all tasks.

    To a pipe, one line each: task, instance, id, kind, question, then a field ID=LABEL for each option; with --hosts
    the host stands in front.
    """
    if hosts is not None:
        return _list_across(call, hosts, recursive=recursive)
    looked = find_questions_below(call.task()) if recursive else find_questions(call.root(), call.named_task())
    warn(looked.warnings)
    found = looked.questions
    lines = [line for one in found for line in question_lines(one, root=root_words(call.root()))]
    call.show([one.to_json() for one in found], map(_line, found), lambda: print(*(lines or [_NONE]), sep="\n"))
    return report_unreadable(looked.unreadable)


def _list_across(call: Invocation, hosts: str, *, recursive: bool) -> int:
    from agentctl.cli.across import Merged, ask_hosts, asked_there, place_options

    argv = ["interact", "list", "--json", *["--recursive"] * recursive, *place_options(call)]
    merged = Merged(ask_hosts(hosts, argv), lambda row: (f"{fields(row['host'])}\t{_line(asked_there(row))}", row))
    lines = [line for _, row in merged.shown for line in question_lines(asked_there(row), row["host"])]
    call.show(merged.document(), [line for line, _ in merged.shown], lambda: print(*(lines or [_NONE]), sep="\n"))
    return merged.report()


def _line(asked: OpenQuestion) -> str:
    one = asked.question
    known = (asked.task_id, asked.instance, one.id, one.kind, _asked(one))
    return fields(*known, *(f"{option.id}={option.label}" for option in offered(one, question_within(one, EVERYTHING))))


def _asked(question: Question) -> str:
    """Return a question in one line: that for a permission with the call that it is about."""
    if not question.is_permission or not question.arguments:
        return question.text
    cut = " [cut]" if question.is_cut else ""
    return distinct(f"{question.text} {json.dumps(question.arguments, ensure_ascii=False)}{cut}")


@verb(
    app,
    "respond",
    examples="""
agentctl interact respond explore-1 --id q1 api
agentctl interact respond explore-1 --id q2 "42"
agentctl interact respond fix --task login --id q1 allow
agentctl interact respond fix --id q1 deny --reason "not on a Friday: only prepare it"
agentctl interact respond deploy live
""",
)
def respond(
    call: opt.InTask,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[INSTANCE] ANSWER",
            help="Who asked (a worker or a sub-task); the answer.",
        ),
    ],
    question_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Which of its questions.")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why a permission is denied; the agent reads it.")
    ] = None,
    hosts: opt.Hosts = None,
) -> int:
    """Answer a question.

    With the worker and the --id, as every list names them, exactly that question is answered, and never another that is
    open by now. Without these, a terminal shows the only open question and asks back; anything else is refused.

    The first valid answer counts; a second one is refused. A request for permission takes allow, deny and, if it
    offers that, allow_always, whatever the program calls them. Several answers are separated by commas.
    """
    if len(words) > 2:
        raise UsageError(f"{len(words)} words were given for INSTANCE and ANSWER", hint="put the answer in quotes")
    instance, answer = words[0] if len(words) == 2 else None, words[-1]
    if hosts is not None:
        from agentctl.cli.across import respond_across

        return respond_across(call, hosts, TypedAnswer(instance, question_id, answer, reason))
    if instance is None:
        _refuse_forgotten(call, answer)
    if instance is not None and question_id is not None:
        done = answer_question(
            call.root(), task=call.named_task(), instance=instance, question_id=question_id, answer=answer,
            reason=reason,
        )  # fmt: skip
    else:
        asked = only_question(call.root(), call.named_task(), instance, question_id)
        confirm(call, asked, answer)
        done = answer_question(
            call.root(), task=call.root().task(asked.task_id), instance=asked.instance, question_id=asked.question.id,
            answer=answer, reason=reason, shown=asked.question,
        )  # fmt: skip
    text = f"answered {done['id']} of {done['agentInstance']} in {done['taskId']}: {plain(done['answer'])}"
    call.show(done, [text], notes=[] if done["waiting"] else [ASKER_GONE])
    return ExitCode.DONE


def _refuse_forgotten(call: Invocation, word: str) -> None:
    """Raise `UsageError` where the only word names a worker that asks: its answer was forgotten."""
    found = [one for one in questions_of(call.root(), call.named_task(), word) if not one.question.idle]
    if is_name(word) and found:
        raise UsageError(f"no answer to {word} was given", hint="; ".join(map(answer_command, found[:_MOST_NAMED])))
