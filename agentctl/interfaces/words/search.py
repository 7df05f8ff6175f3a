"""A hit of a search in a line: where, when, and an excerpt of which the part that was found may be marked."""

from __future__ import annotations

from collections.abc import Iterable

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.words.value_words import local_time
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.operations.show.searching import Hit


def hit_of(hit: Hit) -> str:
    """Return whose hit it is: `task/instance`, or the task."""
    return plain(hit.task_id if hit.instance is None else f"{hit.task_id}/{hit.instance}")


def excerpt_parts(hit: Hit) -> tuple[str, str, str]:
    """Return the excerpt in three parts: before what was found, that, and after it."""
    if hit.excerpt is None:
        return "", "", ""
    text, begin, end = hit.excerpt
    return plain(text[:begin]), plain(text[begin:end]), plain(text[end:])


def hit_line(hit: Hit) -> str:
    """Return a hit as a person reads it: `login/fix  said  14:03  ...the lock is never released...`."""
    at = local_time(hit.at) if hit.at else "-"
    return f"{hit_of(hit)}  {hit.source}  {at}  {''.join(excerpt_parts(hit))}"


def more_line(hit: Hit, most_counted: int) -> str:
    """Return how many lines of a worker were left out."""
    count = f"{hit.more:,} or more" if hit.more >= most_counted else f"{hit.more:,}"
    return f"{hit_of(hit)}: {count} more {'line' if hit.more == 1 else 'lines'}"


def found_words(hits: Iterable[Hit]) -> str:
    """Return what was found, as the page says it: `37 lines in 4 workers`. The title of a task is a line of it."""
    lines, workers, tasks = 0, set(), set()
    for hit in hits:
        lines += hit.more or 1
        if hit.instance is None:
            tasks.add(hit.task_id)
        else:
            workers.add((hit.task_id, hit.instance))
    places = [_counted(len(one), noun) for one, noun in ((workers, "worker"), (tasks, "task")) if one]
    return f"{_counted(lines, 'line')} in {' and '.join(places)}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
