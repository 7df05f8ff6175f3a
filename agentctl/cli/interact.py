"""`interact ask|list|respond`: the questions of workers, and their answers."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, note, out, out_fields, out_json, out_now, outline, plain, warn
from agentctl.cli.verb import FINDS, family, verb
from agentctl.errors import ExitCode, UsageError
from agentctl.operations.talk.asking import ask as ask_question
from agentctl.operations.talk.interacting import list_questions, list_questions_below
from agentctl.operations.talk.interacting import respond as answer_question
from agentctl.operations.where.locating import find_root, find_task

app = family(
    "Ask, list and answer the questions of workers.",
    exits=(*FINDS, ExitCode.TIMED_OUT),
    examples="""
agentctl interact list
agentctl interact respond explore-1 yes
agentctl interact ask --kind confirm "Go on?"
""",
)


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
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    kind: Annotated[
        Kind | None, typer.Option(help="select with --option, confirm for yes or no, input for any text.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="ID=LABEL", help="One to select from; repeatable.")
    ] = None,
    default: Annotated[str | None, typer.Option(metavar="ANSWER", help="Taken when the time is over.")] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option(metavar="N", parser=opt.seconds, help="How long to wait for the answer.")
    ] = None,
    deadline_seconds: Annotated[float | None, typer.Option(parser=opt.seconds, hidden=True)] = None,
    question_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Name the question; a known one is taken up again."),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Ask a question from inside a worker; wait for the answer and print it alone.

    The worker is blocked meanwhile; its clock stands still as long as it does nothing else. After
    --timeout-seconds the default is the answer; without one the exit code is 4.
    """
    options = [_option(text) for text in option or []]
    chosen = kind or (Kind.SELECT if options else Kind.INPUT)
    told = ask_question(
        question,
        kind=chosen.value,
        options=options,
        default=default,
        deadline_s=deadline_seconds if timeout_seconds is None else timeout_seconds,
        question_id=question_id,
    )
    if json:
        out_json(told)
    else:
        answer = told["answer"]
        out_now(plain(answer, keep="\n\t") if is_terminal(sys.stdout) else answer)


def _option(text: str) -> tuple[str, str]:
    name, equals, label = text.partition("=")
    if not name:
        raise UsageError(f"--option {text!r} is not of the form ID=LABEL")
    return name, label if equals else name


@verb(app, "list", examples="agentctl interact list\nagentctl interact list --recursive --task survey-auth --json")
def list_command(
    recursive: Annotated[
        bool, typer.Option("--recursive", help="Of the task, and of the sub-tasks below it; else of all.")
    ] = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """List the open questions of all tasks.

    To a pipe, a line each: task, instance, id, kind, question, then a field ID=LABEL for each option.
    """
    found, only = _places(task, root, force)
    warnings: list[str] = []
    if recursive:
        rows = list_questions_below(only or find_task(None, root=root, force=force), warnings)
    else:
        rows = list_questions(found, only, warnings)
    warn(warnings)
    if json:
        out_json(rows)
    elif is_terminal(sys.stdout):
        for row in rows:
            _show(row)
        if not rows:
            out("no open question")
    else:
        for row in rows:
            fields = (row["taskId"], row["agentInstance"], row["id"], row["kind"], row["question"])
            out_fields(*fields, *(f"{one['id']}={one['label']}" for one in row["options"] or ()))


def _places(task: str | None, root: str | None, force: bool) -> tuple[Root, TaskDir | None]:
    """Return the root, and the task where one is named: questions are everybody's."""
    found = find_root(root, force=force)
    return found, find_task(task, root=root, force=force) if task is not None else None


def _show(row: dict[str, Any]) -> None:
    by = f" ({plain(row.get('askedByType') or 'a sub-agent')})" if row.get("askedBy") else ""
    out(f"{row['agentInstance']}{by} in {row['taskId']} asks: {plain(row['question'])}")
    if row.get("idle"):
        out(f"    (it has answered, and is kept: agentctl send {row['agentInstance']} TEXT, or --close)")
        return
    arguments = row.get("arguments") or {}
    for line in outline(arguments if isinstance(arguments, Mapping) else {"arguments": arguments}, "    | "):
        out(line)
    if row.get("isCut"):
        whole = f"agentctl logs {row['agentInstance']} --task {row['taskId']} --raw"
        out(f"    warning: there is more than is shown: {whole}")
    for one in row["options"] or ():
        out(f"    {plain(one['id'])}  {plain(one['label'])}")
    if row.get("multiple"):
        out("    several may be chosen, with commas between them")
    if row.get("default") is not None:
        out(f"    default: {plain(row['default'])}")
    if not row.get("waiting", True):
        out("    its asker is gone; the answer is kept for when it asks again")
    out(f"    agentctl interact respond {row['agentInstance']} --task {row['taskId']} --id {row['id']} ANSWER")


@verb(
    app,
    "respond",
    examples="""
agentctl interact respond yes
agentctl interact respond explore-1 api
agentctl interact respond explore-1 --id q2 "42"
agentctl interact respond fix allow
agentctl interact respond fix deny --reason "not on a Friday: only prepare it"
""",
)
def respond(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[INSTANCE] ANSWER", help="Whose question, or which sub-task's, where several are open; the answer."
        ),
    ],
    question_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Which of its questions.")] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why a permission is denied: its agent reads it.")
    ] = None,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Answer a question.

    The first valid answer counts; a second one is refused. A request for permission takes allow, deny and, where it
    offers that, allow_always, whatever the program calls them; a question with several answers takes them with commas.
    """
    if len(words) > 2:
        raise UsageError(f"here are {len(words)} words for INSTANCE and ANSWER", hint="put the answer into quotes")
    found, only = _places(task, root, force)
    instance = words[0] if len(words) == 2 else None
    done = answer_question(
        found, task=only, instance=instance, question_id=question_id, answer=words[-1], reason=reason
    )
    if json:
        out_json(done)
    else:
        out(f"answered {done['id']} of {done['agentInstance']} in {done['taskId']}: {plain(done['answer'])}")
        if not done["waiting"]:
            note("its asker is gone; the answer is kept for when it asks again")
