"""`report progress|message|result`: what a worker says about itself. Without --json it prints nothing."""

from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.invocation import Invocation
from agentctl.cli.verb import family, verb
from agentctl.domain.plaintext import plain
from agentctl.errors import UsageError
from agentctl.operations.talk.reporting import report_message, report_progress, report_result

app = family(
    "Report progress, a message or a result from inside a worker.",
    examples="""
agentctl report progress 40 "reading the tests"
agentctl report message "the cache was cold"
agentctl report result --summary "12 findings" --file report.md
""",
)


@verb(
    app,
    "progress",
    exits=(),
    examples="""
agentctl report progress 40 "reading the tests"
agentctl report progress 80%
agentctl report progress 1/4 "step 1"
agentctl report progress "almost there"
""",
)
def progress(
    call: opt.Anywhere,
    words: Annotated[
        list[str],
        typer.Argument(metavar="[PERCENT] [TEXT]", help="How far: 0 to 100, or 1/4; what it is doing."),
    ],
) -> None:
    """Report how far this worker has got; `list` shows the latest report."""
    percent = percent_in(words[0])
    rest = words[1:] if percent is not None else words
    if len(rest) > 1:
        raise _too_many(words[0], rest, has_percent=percent is not None)
    _show(call, report_progress(percent, rest[0] if rest else None))


def percent_in(word: str) -> float | None:
    """Return how far a word says that it is, in percent: `40`, `40%` or `2/5`; None if it says something else.

    Raises:
        UsageError: It is a fraction of nothing.
    """
    part, slash, whole = word.removesuffix("%").partition("/")
    try:
        return 100 * float(part) / float(whole) if slash else float(part)
    except ValueError:
        return None
    except ZeroDivisionError:
        what = f"{plain(word)} is not a fraction of a whole"
        raise UsageError(what, hint="agentctl report progress 1/4 TEXT") from None


def _too_many(first: str, rest: list[str], *, has_percent: bool) -> UsageError:
    if has_percent:
        said = f"after {plain(first)} there is more than one text: {plain(' '.join(map(repr, rest)))}"
    else:
        said = f"{plain(repr(first))} is neither a percentage nor a fraction, and two words need quotes"
    return UsageError(said, hint='for example: agentctl report progress 40 "reading the tests"')


@verb(
    app,
    "message",
    exits=(),
    examples='agentctl report message "the cache was cold"\nagentctl report message "1 of 3"',
)
def message(call: opt.Anywhere, text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")]) -> None:
    """Leave a message in this worker's activity."""
    _show(call, report_message(text))


@verb(
    app,
    "result",
    exits=(),
    examples="""
agentctl report result --summary "12 findings"
agentctl report result --summary "12 findings" --file report.md
""",
)
def declare_result(
    call: opt.Anywhere,
    summary: Annotated[str | None, typer.Option("--summary", metavar="TEXT", help="The result in a few words.")] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help="The file with the full result.")] = None,
) -> None:
    """Declare the result of this worker; `agentctl result` prints it."""
    _show(call, report_result(summary, file))


def _show(call: Invocation, report: dict[str, Any]) -> None:
    call.show(report, ())  # Its stdout is its own.
