"""`report progress|message|result`: what a worker says about itself. Without --json it prints nothing."""

from __future__ import annotations

from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, UsageError
from agentctl.interfaces.commands.model.command_model import TEXT, TEXTS, Command, Family, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANYWHERE
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.talk.reporting import report_message, report_progress, report_result

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker_reports import ReportedMessage, ReportedProgress, ReportedResult


def progress(call: Invocation, *, words: list[str]) -> Shown[ReportedProgress]:
    """Report how far this worker has got; `list` shows the latest report."""
    percent = percent_in(words[0])
    rest = words[1:] if percent is not None else words
    if len(rest) > 1:
        raise _too_many(words[0], rest, has_percent=percent is not None)
    return Shown(report_progress(percent, rest[0] if rest else None))


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
        what = f"{plain(word)} is not a fraction: the whole is 0"
        raise UsageError(what, hint=AtTerminal("agentctl report progress 1/4 TEXT")) from None


def _too_many(first: str, rest: list[str], *, has_percent: bool) -> UsageError:
    if has_percent:
        said = f"after {plain(first)} there is more than one text: {plain(' '.join(map(repr, rest)))}"
    else:
        said = f"{plain(repr(first))} is neither a percentage nor a fraction, and a text of several words needs quotes"
    return UsageError(said, hint=AtTerminal('for example: agentctl report progress 40 "reading the tests"'))


def message(call: Invocation, *, text: str) -> Shown[ReportedMessage]:
    """Leave a message in this worker's activity."""
    return Shown(report_message(text))


def declare_result(call: Invocation, *, summary: str | None = None, file: str | None = None) -> Shown[ReportedResult]:
    """Declare the result of this worker; `agentctl result` prints it."""
    return Shown(report_result(summary, file))


COMMANDS = (
    Family(
        "report",
        "Report progress, a message or a result from inside a worker.",
        """
agentctl report progress 40 "reading the tests"
agentctl report message "the cache was cold"
agentctl report result --summary "12 findings" --file report.md
""",
        (
            Command(
                "progress",
                progress,
                ANYWHERE,
                """
agentctl report progress 40 "reading the tests"
agentctl report progress 80%
agentctl report progress 1/4 "step 1"
agentctl report progress "almost there"
""",
                (
                    Parameter(
                        "words",
                        TEXTS,
                        "How far: 0 to 100, or 1/4; what it is doing.",
                        "[PERCENT] [TEXT]",
                        is_argument=True,
                        is_required=True,
                    ),
                ),
                exits=(),
            ),
            Command(
                "message",
                message,
                ANYWHERE,
                'agentctl report message "the cache was cold"\nagentctl report message "1 of 3"',
                (Parameter("text", TEXT, "The message.", "TEXT", is_argument=True, is_required=True),),
                exits=(),
            ),
            Command(
                "result",
                declare_result,
                ANYWHERE,
                """
agentctl report result --summary "12 findings"
agentctl report result --summary "12 findings" --file report.md
""",
                (
                    Parameter("summary", TEXT, "The result in a few words.", "TEXT"),
                    Parameter("file", TEXT, "The file with the full result.", "PATH"),
                ),
                exits=(),
            ),
        ),
    ),
)
