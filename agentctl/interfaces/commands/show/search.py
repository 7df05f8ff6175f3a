"""`search`: where words occur in all tasks."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

from agentctl.domain.text.textquery import WIDE, WIDTH, TextQuery
from agentctl.errors import Argument, ExitCode, Next, NotFound, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    FINDS,
    FLAG,
    TEXTS,
    WHOLE,
    Command,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ALL_TASKS
from agentctl.interfaces.words.outline import fields
from agentctl.interfaces.words.search import excerpt_parts, hit_line, hit_of, more_line
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.searching import MOST, MOST_COUNTED, Hit, Search

if TYPE_CHECKING:
    from agentctl.domain.documents.views import SearchHit


def search(
    call: Invocation,
    *,
    terms: list[str],
    logs: bool = False,
    regex: bool = False,
    case_sensitive: bool = False,
    archived: bool = False,
    most: int = MOST,
) -> Showing[Iterable[SearchHit]]:
    """Find where words occur in all tasks, the newest first.

    It searches titles, names, agents, commands, prompts, questions, answers, transcripts, results and messages of
    failures. Several words in quotes are one phrase.

    On a command line:
        With --task it searches only that task, with --archived what `agentctl archive` has put away. To a pipe, one
        line each: task/instance, source, time, excerpt. It exits with 3 if nothing is found.
    """
    try:
        query = TextQuery(terms, is_regex=regex, is_case_sensitive=case_sensitive)
    except ValueError as error:
        raise UsageError(f"cannot search for {' '.join(terms)!r}: {error}", hint=Next("help", "search")) from error
    if archived and call.task_named is not None:
        raise UsageError(
            WithArguments(Argument("archived"), " searches all that was put away"),
            hint=WithArguments("leave ", Argument("task"), " out"),
        )
    task = call.named_task()
    root, tasks = call.root(), None if task is None else [task]
    if archived:
        from agentctl.operations.discard.archiving import archived_tasks

        tasks = archived_tasks(root)
    width = WIDE if call.json else WIDTH
    found = Search(root, query, tasks=tasks, with_logs=logs, most=most, width=width)
    count = yield from _as_json(found.hits()) if call.json else _as_lines(call, found.hits(), most)
    call.warn(found.warnings)
    if not count:
        raise NotFound(
            "nothing was found", hint=None if logs else WithArguments(Argument("logs"), " searches the raw output too")
        )
    return ExitCode.DONE


def _as_json(hits: Iterable[Hit]) -> Generator[Shown[Iterable[SearchHit]], None, int]:
    """Yield all hits as one document; return how many there were."""
    count = 0

    def rows() -> Iterator[SearchHit]:
        nonlocal count
        for hit in hits:
            count += 1
            yield hit.to_json()

    yield Shown(rows())
    return count


def _as_lines(call: Invocation, hits: Iterable[Hit], most: int) -> Generator[Shown[Iterable[SearchHit]], None, int]:
    """Yield each hit as it comes, and note how many more there are; return how many there were."""
    count = 0
    for count, hit in enumerate(hits, 1):  # noqa: B007 - how many there were
        if hit.more:
            call.note(f"{more_line(hit, MOST_COUNTED)} (--most {most + hit.more} prints them)")
        else:
            line = fields(hit_of(hit), hit.source, hit.at, "".join(excerpt_parts(hit)))
            yield Shown(None, [line], lambda hit=hit: [hit_line(hit)])  # type: ignore[misc]
    return count


COMMANDS = (
    Command(
        "search",
        search,
        IN_ALL_TASKS,
        """
agentctl search deadlock
agentctl search "no such file" config --logs
agentctl search --regex 'E[0-9]{4}' --most 50 --json
""",
        (
            Parameter(
                "terms", TEXTS, "All of these must be in one text.", "TEXT...", is_argument=True, is_required=True
            ),
            Parameter("logs", FLAG, "Search the raw output of workers too."),
            Parameter("regex", FLAG, "Each TEXT is a regular expression. Ctrl-C stops one that takes too long."),
            Parameter("case_sensitive", FLAG, "Tell upper from lower case."),
            Parameter("archived", FLAG, "Search the tasks that were put away instead."),
            Parameter("most", WHOLE, "How many hits of one worker to print.", "N", default=MOST, least=1),
        ),
        exits=FINDS,
    ),
)
