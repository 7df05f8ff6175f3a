"""`interact ask|list|respond`: the questions of workers, and their answers."""

import json
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, is_terminal, outline, plain, warn
from agentctl.cli.verb import FINDS, family, verb
from agentctl.domain.names import WorkerId
from agentctl.domain.plaintext import distinct
from agentctl.errors import ExitCode, UsageError
from agentctl.operations.talk.asking import ask as ask_question
from agentctl.operations.talk.interacting import list_questions, list_questions_below
from agentctl.operations.talk.interacting import respond as answer_question
from agentctl.text.worker import respond_command

app = family(
    "Ask, list and answer the questions of workers.",
    exits=(*FINDS, ExitCode.TIMED_OUT),
    examples="""
agentctl interact list
agentctl interact respond explore-1 yes
agentctl interact ask --kind confirm "Go on?"
""",
)


_PROGRAM = "agentctl"
_ASKER_GONE = "its asker is gone; the answer is kept for when it asks again"


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
def list_command(
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
    warnings: list[str] = []
    if recursive:
        rows = list_questions_below(call.task(), warnings)
    else:
        rows = list_questions(call.root(), call.named_task(), warnings)
    warn(warnings)
    call.show(rows, map(_line, rows), lambda: print(*(_shown(rows) or ["no open question"]), sep="\n"))
    return ExitCode.DONE


def _list_across(call: Invocation, hosts: str, *, recursive: bool) -> int:
    from agentctl.cli.across import Merged, ask_hosts, place_of

    argv = ["interact", "list", "--json", *["--recursive"] * recursive, *place_of(call)]
    merged = Merged(ask_hosts(hosts, argv), lambda row: (f"{fields(row['host'])}\t{_line(row)}", _shown([row])))
    lines = [line for _, shown in merged.shown for line in shown] or ["no open question"]
    call.show(merged.document(), [line for line, _ in merged.shown], lambda: print(*lines, sep="\n"))
    return merged.report()


def _line(row: dict[str, Any]) -> str:
    known = (row["taskId"], row["agentInstance"], row["id"], row["kind"], _asked(row))
    return fields(*known, *(f"{one['id']}={one['label']}" for one in row["options"] or ()))


def _asked(row: dict[str, Any]) -> str:
    """Return a question in one line: that for a permission with the call that it is about."""
    if not row.get("tool") or not row.get("arguments"):
        return str(row["question"])
    cut = " [cut]" if row.get("isCut") else ""
    return distinct(f"{row['question']} {json.dumps(row['arguments'], ensure_ascii=False)}{cut}")


def _shown(rows: list[dict[str, Any]]) -> list[str]:
    """Return what each question is: of a call, which is allowed by its looks, also what nobody would see."""
    return [distinct(line) if row.get("tool") else line for row in rows for line in _paragraph(row)]


def _paragraph(row: dict[str, Any]) -> Iterator[str]:
    by = f" ({plain(row.get('askedByType') or 'a sub-agent')})" if row.get("askedBy") else ""
    on, program = (
        (f" on {plain(row['host'])}", f"agentctl --host {plain(row['host'])}") if "host" in row else ("", _PROGRAM)
    )
    yield plain(f"{row['agentInstance']}{by} in {row['taskId']}{on} asks: ") + plain(row["question"])
    if row.get("idle"):
        yield plain(f"    (it has answered, and is kept: {program} send {row['agentInstance']} TEXT, or --close)")
        return
    arguments = row.get("arguments") or {}
    yield from outline(arguments if isinstance(arguments, Mapping) else {"arguments": arguments}, "    | ")
    if row.get("isCut"):
        whole = f"{program} logs {row['agentInstance']} --task {row['taskId']} --raw"
        yield plain(f"    warning: this is cut; for all of it: {whole}")
    for one in row["options"] or ():
        yield f"    {plain(one['id'])}  {plain(one['label'])}"
    if row.get("multiple"):
        yield "    several may be chosen, with commas between them"
    if row.get("other") and row["options"]:
        yield "    an answer in your own words is taken, too"
    if row.get("default") is not None:
        yield f"    default: {plain(row['default'])}"
    if not row.get("waiting", True):
        yield f"    {_ASKER_GONE}"
    command = respond_command(WorkerId(row["taskId"], row["agentInstance"]), row["id"])
    yield plain(f"    {program}{command.removeprefix(_PROGRAM)}")


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
    call: opt.InTask,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[INSTANCE] ANSWER",
            help="Who asked (a worker or a sub-task), if several questions are open; the answer.",
        ),
    ],
    question_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Which of its questions.")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why a permission is denied; the agent reads it.")
    ] = None,
    hosts: opt.Hosts = None,
) -> int:
    """Answer a question.

    The first valid answer counts; a second one is refused. A request for permission takes allow, deny and, if it
    offers that, allow_always, whatever the program calls them. Several answers are separated by commas.
    """
    if len(words) > 2:
        raise UsageError(f"{len(words)} words were given for INSTANCE and ANSWER", hint="put the answer in quotes")
    instance = words[0] if len(words) == 2 else None
    if hosts is not None:
        from agentctl.cli.across import respond_across

        given = [("--id", question_id), ("--reason", reason)]
        rest = [f"{option}={value}" for option, value in given if value is not None] + ["--json"] * call.json
        return respond_across(call, hosts, instance, question_id, [*rest, "--", *words])
    done = answer_question(
        call.root(),
        task=call.named_task(),
        instance=instance,
        question_id=question_id,
        answer=words[-1],
        reason=reason,
    )
    text = f"answered {done['id']} of {done['agentInstance']} in {done['taskId']}: {plain(done['answer'])}"
    call.show(done, [text], notes=[] if done["waiting"] else [_ASKER_GONE])
    return ExitCode.DONE
