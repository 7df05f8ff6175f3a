"""`logs`, `events`: what a worker printed, and what happened in a task."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator

from agentctl.adapters.clock import monotonic
from agentctl.domain.text.terminal_output import TerminalOutput, TerminalRow, rows_of_text
from agentctl.errors import Argument, ExitCode, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    FLAG,
    INSTANCES,
    TEXT,
    WHOLE,
    Command,
    Parameter,
    Picture,
    Raw,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import BY_LINE_IN_TASK, FOLLOW, NAMED_INSTANCES, PLAIN
from agentctl.interfaces.commands.parts.json_text import as_json
from agentctl.interfaces.commands.parts.selection import SELECT, Selection, headed, workers_chosen
from agentctl.interfaces.commands.show.drawn_words import Rows, drawn_entries, drawn_entry
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.event import event_line
from agentctl.interfaces.words.looks.followed_output import FollowedOutput
from agentctl.interfaces.words.looks.printed_rows import printed_row
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_events, follow_logs, streams_by_time
from agentctl.operations.where.locating import find_worker

if TYPE_CHECKING:
    from agentctl.domain.activity.transcript import TranscriptEntry
    from agentctl.domain.documents.views import BadEvent, EventRow, LogPiece

Chunks = Iterable[tuple[str, bytes]]


def logs(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    follow: bool = False,
    tail: int | None = None,
    stdout: bool = False,
    stderr: bool = False,
    raw: bool = False,
    plain_text: bool = False,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Showing[LogPiece]:
    """Print the output of a worker.

    For an agent this is a transcript: what it and its sub-agents said, called and returned; --raw, --stdout or
    --stderr print the output of its program instead. For a command this is what it printed: on a terminal as a
    terminal shows it, in its colours (unless NO_COLOR is set), a progress bar with its present state, and nothing else
    that a terminal would obey; to a pipe every byte is passed unchanged. Nothing tells in which order two streams came:
    the one that was written to last stands last. With -f what comes is printed as it comes, on a terminal over what it
    changes there, until the worker has ended. Of several workers one stands after the other, each below its name.
    """
    if raw and call.json:
        raise UsageError(WithArguments(Argument("raw"), " and ", Argument("json"), " exclude each other"))
    streams = ("stdout", "stderr") if stdout == stderr else ("stdout",) if stdout else ("stderr",)
    task = call.task_to_show()
    chosen = workers_chosen(task, instances, Selection(failed, status, agent, words))
    if follow and len(chosen) > 1:
        raise UsageError(
            WithArguments(Argument("follow"), " is for one worker"),
            hint=WithArguments("name one of them, or leave ", Argument("follow"), " out"),
        )
    for name in chosen:
        if (heading := headed(name, instances)) and not call.json:
            yield Raw(f"{heading}\n")
        owner = name if heading else None
        if not (raw or stdout or stderr) and has_transcript(find_worker(task, name)):
            entries = follow_transcript(task, name, follow=follow, tail=tail)
            if call.draws and not plain_text:
                yield from map(drawn_transcript, entries) if follow else map(_as_drawn, drawn_entries(entries))
                continue
            texts = map(paragraph, entries)
            yield from (Shown(_piece("transcript", text, owner)) if call.json else Raw(text) for text in texts)
            continue
        is_drawn = call.draws and not raw
        order = streams_by_time(task, name, streams) if is_drawn else streams
        output = followed_output(is_seen=True)
        chunks = follow_logs(task, name, streams=order, follow=follow, tail=tail, within_s=output.within_s)
        if not is_drawn:
            yield from _output(call, chunks, owner)
        elif follow:
            yield from _followed(output, chunks)
        else:
            yield from map(Raw, filter(None, _drawn(chunks)))
    return ExitCode.DONE


def drawn_transcript(entry: TranscriptEntry) -> Shown[LogPiece]:
    """Return what a terminal shows of an entry: Markdown drawn, and calls as what they do."""
    return Shown(table=lambda: Picture(drawn_entry(entry)))


def _as_drawn(rows: Rows) -> Shown[LogPiece]:
    return Shown(table=lambda: Picture(rows))


def _output(call: Invocation, chunks: Chunks, owner: str | None) -> Iterator[Shown[LogPiece] | Raw]:
    """Yield what one worker printed, byte for byte, or as JSON.

    Args:
        owner: Its name, where there are several.
    """
    if call.json:
        yield from (Shown(_piece(stream, text, owner)) for stream, text in _decoded(chunks))
    else:
        yield from (Raw(chunk) for _, chunk in chunks)


def _piece(stream: str, text: str, owner: str | None) -> LogPiece:
    piece: LogPiece = {"stream": stream, "text": text}
    return piece if owner is None else {**piece, "agentInstance": owner}


def followed_output(*, is_seen: bool) -> FollowedOutput:
    """Return what an output is printed by as it comes, as a terminal shows it.

    Args:
        is_seen: A person sees it at a terminal, as it is printed.
    """
    size = _size_of_terminal if is_seen and _obeys() and os.isatty(1) else None
    return FollowedOutput(has_colours=is_seen and _has_colours(), size=size, now=monotonic)


def _size_of_terminal() -> os.terminal_size:
    """Return the size that the terminal has now: COLUMNS may be that of another one, or of before a resize."""
    columns, lines = os.get_terminal_size(1)
    return os.terminal_size((columns or 80, lines or 24))


def _followed(output: FollowedOutput, chunks: Chunks) -> Iterator[Raw]:
    try:
        for stream, chunk in chunks:
            if text := output.feed(stream, chunk):
                yield Raw(text)
    except KeyboardInterrupt:
        yield Raw(output.end())  # What was held back is not lost.
        raise
    yield Raw(output.end())


def _drawn(chunks: Chunks) -> Iterator[str]:
    """Yield what is printed of an output as it is by now; a stream begins in a line of its own."""
    terminal, last = TerminalOutput(), None
    for stream, chunk in chunks:
        if last not in (None, stream):
            yield _lines(terminal.rows())
            terminal = TerminalOutput()
        last = stream
        terminal.feed(chunk)
        yield _lines(terminal.settled())
    yield _lines(terminal.rows())


def _lines(rows: Iterable[TerminalRow]) -> str:
    return "".join(f"{printed_row(row, has_colours=_has_colours())}\n" for row in rows)


def drawn_text(text: str, *, is_end: bool) -> list[str]:
    """Return the lines that are printed of an output, or of an end that was cut off, for a person at a terminal."""
    return [printed_row(row, has_colours=_has_colours()) for row in rows_of_text(text, is_end=is_end)]


def _obeys() -> bool:
    """Return whether the terminal obeys sequences."""
    return os.environ.get("TERM", "dumb") != "dumb"


def _has_colours() -> bool:
    return _obeys() and not os.environ.get("NO_COLOR")


def _decoded(chunks: Chunks) -> Iterator[tuple[str, str]]:
    """Yield the text of each stream as it comes; a character may be split across two chunks."""
    make = codecs.getincrementaldecoder("utf-8")
    decoders: dict[str, codecs.IncrementalDecoder] = {}
    for stream, chunk in chunks:
        text = decoders.setdefault(stream, make("backslashreplace")).decode(chunk)
        if text:
            yield stream, text
    for stream, decoder in decoders.items():
        rest = decoder.decode(b"", final=True)
        if rest:
            yield stream, rest


def events(call: Invocation, *, instance: str | None = None, follow: bool = False) -> Showing[EventRow | BadEvent]:
    """Print the events of a task.

    One line each: seq, time, type, instance, who did it, payload, separated by tabs. With -f it continues until Ctrl-C.
    """
    task = call.task_to_show()
    for event in follow_events(task, follow=follow, instance=instance):
        if "problem" in event:
            call.warn([f"{task.events.name}:{event['seq']}: {event['problem']}"])
        yield Shown(event, [] if "problem" in event else [event_line(event, as_json)])
    return ExitCode.DONE


COMMANDS = (
    Command(
        "logs",
        logs,
        BY_LINE_IN_TASK,
        """
agentctl logs explore-1 --tail 20
agentctl logs -f explore-1
agentctl logs explore-1 --stderr > errors.txt
""",
        (
            NAMED_INSTANCES,
            FOLLOW,
            Parameter("tail", WHOLE, "Only the last N lines.", "N", least=0),
            Parameter("stdout", FLAG, "Only its stdout."),
            Parameter("stderr", FLAG, "Only its stderr."),
            Parameter("raw", FLAG, "The bytes unchanged: no transcript, and what a terminal would obey passes."),
            PLAIN,
            *SELECT,
        ),
    ),
    Command(
        "events",
        events,
        BY_LINE_IN_TASK,
        """
agentctl events
agentctl events -f --json
agentctl events explore-1
""",
        (
            Parameter("instance", TEXT, "Only of this worker.", "[INSTANCE]", is_argument=True, completes=INSTANCES),
            FOLLOW,
        ),
    ),
)
