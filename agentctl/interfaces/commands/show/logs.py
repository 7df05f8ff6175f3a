"""`logs`, `events`: what a worker printed, and what happened in a task."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode, UsageError
from agentctl.interfaces.commands.model.command_model import (
    FLAG,
    INSTANCES,
    TEXT,
    WHOLE,
    Command,
    Parameter,
    Raw,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import BY_LINE_IN_TASK, FOLLOW, INSTANCE
from agentctl.interfaces.commands.parts.json_text import as_json
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.event import event_line
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_events, follow_logs
from agentctl.operations.where.locating import find_worker

if TYPE_CHECKING:
    from agentctl.domain.documents.views import BadEvent, EventRow, LogPiece

Chunks = Iterable[tuple[str, bytes]]


def logs(
    call: Invocation,
    *,
    instance: str,
    follow: bool = False,
    tail: int | None = None,
    stdout: bool = False,
    stderr: bool = False,
    raw: bool = False,
) -> Showing[LogPiece]:
    """Print the output of a worker.

    For an agent this is a transcript: what it and its sub-agents said, called and returned; --raw, --stdout or
    --stderr print the output of its program instead. For a command this is what it printed: on a terminal control
    characters are shown, not obeyed; to a pipe every byte is passed unchanged. With -f it continues until the worker
    has ended.
    """
    if raw and call.json:
        raise UsageError("--raw and --json exclude each other")
    streams = ("stdout", "stderr") if stdout == stderr else ("stdout",) if stdout else ("stderr",)
    task = call.task_to_show()
    if not (raw or stdout or stderr) and has_transcript(find_worker(task, instance)):
        for entry in follow_transcript(task, instance, follow=follow, tail=tail):
            text = paragraph(entry)
            yield Shown({"stream": "transcript", "text": text}) if call.json else Raw(text)
        return ExitCode.DONE
    chunks = follow_logs(task, instance, streams=streams, follow=follow, tail=tail)
    if call.json:
        for stream, text in decoded(chunks):
            yield Shown({"stream": stream, "text": text})
    elif raw or not call.draws:
        yield from (Raw(chunk) for _, chunk in chunks)
    else:
        yield from (Raw(plain(text, keep="\n\t")) for _, text in decoded(chunks))
    return ExitCode.DONE


def decoded(chunks: Chunks) -> Iterator[tuple[str, str]]:
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
            INSTANCE,
            FOLLOW,
            Parameter("tail", WHOLE, "Only the last N lines.", "N", least=0),
            Parameter("stdout", FLAG, "Only its stdout."),
            Parameter("stderr", FLAG, "Only its stderr."),
            Parameter("raw", FLAG, "The bytes unchanged: no transcript, and control characters pass."),
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
