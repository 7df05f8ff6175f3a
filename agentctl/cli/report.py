"""`report progress|message|result`: what a worker tells of itself. Prints nothing: its stdout is its own."""

from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import out_json
from agentctl.cli.verb import family, verb
from agentctl.errors import UsageError
from agentctl.operations.talk.reporting import report_message, report_progress, report_result

app = family(
    "Tell progress, a message or a result from inside a worker.",
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
agentctl report progress "almost there"
""",
)
def progress(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[PERCENT] [TEXT]", help="How far, from 0 to 100; what is being done."),
    ],
    json: opt.Json = False,
) -> None:
    """Tell how far this worker is; `list` shows the last word."""
    percent = _percent(words[0])
    rest = words[1:] if percent is not None else words
    if len(rest) > 1:
        raise UsageError("more than a percentage and a text", hint="put the text into quotes")
    _tell(report_progress(percent, rest[0] if rest else None), json)


def _percent(word: str) -> float | None:
    try:
        return float(word.removesuffix("%"))
    except ValueError:
        return None


@verb(
    app,
    "message",
    exits=(),
    examples='agentctl report message "the cache was cold"\nagentctl report message "1 of 3"',
)
def message(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is to be kept.")],
    json: opt.Json = False,
) -> None:
    """Leave a message in this worker's activity."""
    _tell(report_message(text), json)


@verb(
    app,
    "result",
    exits=(),
    examples="""
agentctl report result --summary "12 findings"
agentctl report result --summary "12 findings" --file report.md
""",
)
def result(
    summary: Annotated[str | None, typer.Option(metavar="TEXT", help="The result in a few words.")] = None,
    file: Annotated[str | None, typer.Option(metavar="PATH", help="Where the whole is.")] = None,
    json: opt.Json = False,
) -> None:
    """Declare what this worker brings; `agentctl result` prints it."""
    if summary is None and file is None:
        raise UsageError("a result has a --summary, a --file, or both")
    _tell(report_result(summary, file), json)


def _tell(told: dict[str, Any], json: bool) -> None:
    if json:
        out_json(told)
