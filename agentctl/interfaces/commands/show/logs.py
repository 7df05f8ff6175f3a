"""`logs`, `events`: what a worker printed, and what happened in a task."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from functools import partial

from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode, UsageError
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
from agentctl.interfaces.commands.show.drawn_words import drawn_entry
from agentctl.interfaces.words.activity import paragraph
from agentctl.interfaces.words.event import event_line
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_events, follow_logs
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
    --stderr print the output of its program instead. For a command this is what it printed: on a terminal control
    characters are shown, not obeyed; to a pipe every byte is passed unchanged. With -f it continues until the worker
    has ended. Of several workers one stands after the other, each below its name.
    """
    if raw and call.json:
        raise UsageError("--raw and --json exclude each other")
    streams = ("stdout", "stderr") if stdout == stderr else ("stdout",) if stdout else ("stderr",)
    task = call.task_to_show()
    chosen = workers_chosen(task, instances, Selection(failed, status, agent, words))
    if follow and len(chosen) > 1:
        raise UsageError("--follow is for one worker", hint="name one of them, or leave -f out")
    for name in chosen:
        if (heading := headed(name, instances)) and not call.json:
            yield Raw(f"{heading}\n")
        owner = name if heading else None
        if not (raw or stdout or stderr) and has_transcript(find_worker(task, name)):
            entries = follow_transcript(task, name, follow=follow, tail=tail)
            if call.draws and not plain_text:
                yield from (Shown(table=partial(_picture, entry)) for entry in entries)
                continue
            texts = map(paragraph, entries)
            yield from (Shown(_piece("transcript", text, owner)) if call.json else Raw(text) for text in texts)
            continue
        yield from _output(call, follow_logs(task, name, streams=streams, follow=follow, tail=tail), owner, raw=raw)
    return ExitCode.DONE


def _picture(entry: TranscriptEntry) -> Picture:
    """Return what a terminal shows of an entry: Markdown drawn, and calls as what they do."""
    return Picture(drawn_entry(entry))


def _output(call: Invocation, chunks: Chunks, owner: str | None, *, raw: bool) -> Iterator[Shown[LogPiece] | Raw]:
    """Yield what one worker printed.

    Args:
        owner: Its name, where there are several.
    """
    if call.json:
        yield from (Shown(_piece(stream, text, owner)) for stream, text in decoded(chunks))
    elif raw or not call.draws:
        yield from (Raw(chunk) for _, chunk in chunks)
    else:
        yield from (Raw(plain(text, keep="\n\t")) for _, text in decoded(chunks))


def _piece(stream: str, text: str, owner: str | None) -> LogPiece:
    piece: LogPiece = {"stream": stream, "text": text}
    return piece if owner is None else {**piece, "agentInstance": owner}


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
            NAMED_INSTANCES,
            FOLLOW,
            Parameter("tail", WHOLE, "Only the last N lines.", "N", least=0),
            Parameter("stdout", FLAG, "Only its stdout."),
            Parameter("stderr", FLAG, "Only its stderr."),
            Parameter("raw", FLAG, "The bytes unchanged: no transcript, and control characters pass."),
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
