"""`search`: where words occur in all tasks."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import fields, is_terminal, note, warn
from agentctl.cli.verb import FINDS, module, verb
from agentctl.domain.textquery import TextQuery
from agentctl.errors import NotFound, UsageError
from agentctl.operations.show.searching import MOST, MOST_COUNTED, Hit, Search
from agentctl.text.search import excerpt_parts, hit_line, hit_of, more_line

app = module()


@verb(
    app,
    "search",
    exits=FINDS,
    examples="""
agentctl search deadlock
agentctl search "no such file" config --logs
agentctl search --regex 'E[0-9]{4}' --most 50 --json
""",
)
def search(
    call: opt.InTask,
    terms: Annotated[list[str], typer.Argument(metavar="TEXT...", help="All of these must be in one text.")],
    logs: Annotated[bool, typer.Option("--logs", help="Search the raw output of workers too.")] = False,
    regex: Annotated[
        bool, typer.Option("--regex", help="Each TEXT is a regular expression. Ctrl-C ends one that never ends.")
    ] = False,
    case_sensitive: Annotated[bool, typer.Option("--case-sensitive", help="Tell upper from lower case.")] = False,
    most: Annotated[
        int, typer.Option("--most", metavar="N", min=1, help="How many hits of one worker to print.")
    ] = MOST,
) -> None:
    """Find where words occur in all tasks, the newest first.

    It searches titles, names, agents, commands, prompts, questions, answers, transcripts, results and messages of
    failures; with --task only those of that task. Several words in quotes are one phrase. To a pipe, one line each:
    task/instance, source, time, excerpt. Exits with 3 if nothing is found.
    """
    try:
        query = TextQuery(terms, is_regex=regex, is_case_sensitive=case_sensitive)
    except ValueError as error:
        raise UsageError(f"cannot search for {' '.join(terms)!r}: {error}", hint="agentctl search --help") from error
    task = call.named_task()
    found = Search(call.root(), query, tasks=None if task is None else [task], with_logs=logs, most=most)
    count = _show_json(call, found.hits()) if call.json else _show_lines(found.hits(), most)
    warn(found.warnings)
    if not count:
        raise NotFound("nothing was found", hint=None if logs else "--logs searches the raw output too")


def _show_json(call: Invocation, hits: Iterable[Hit]) -> int:
    count = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal count
        for hit in hits:
            count += 1
            yield hit.to_json()

    call.show(rows(), ())
    return count


def _show_lines(hits: Iterable[Hit], most: int) -> int:
    """Print each hit as it comes; how many more there are goes to stderr."""
    count, for_terminal = 0, is_terminal(sys.stdout)
    for count, hit in enumerate(hits, 1):  # noqa: B007 - how many there were
        if hit.more:
            note(f"{more_line(hit, MOST_COUNTED)} (--most {most + hit.more} prints them)")
        elif for_terminal:
            print(hit_line(hit), flush=True)
        else:
            print(fields(hit_of(hit), hit.source, hit.at, "".join(excerpt_parts(hit))), flush=True)
    return count
