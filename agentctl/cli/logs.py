"""`logs`, `events`: what a worker printed, and what happened in a task."""

import codecs
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import NOTHING, as_json, is_terminal, note_foreign, out, out_json, plain, warn
from agentctl.cli.transcript import paragraph
from agentctl.cli.verb import module, verb
from agentctl.domain.activity.transcript import TranscriptEntry
from agentctl.errors import UsageError
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_events, follow_logs
from agentctl.operations.where.locating import find_task, find_worker

app = module()

Chunks = Iterable[tuple[str, bytes]]


@verb(
    app,
    "logs",
    examples="""
agentctl logs explore-1 --tail 20
agentctl logs -f explore-1
agentctl logs explore-1 --stderr > errors.txt
""",
)
def logs(
    instance: opt.Instance,
    follow: opt.Follow = False,
    tail: Annotated[int | None, typer.Option(metavar="N", min=0, help="Only the last N lines.")] = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Only its stdout.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only its stderr.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="The bytes as they are: no transcript, and control characters pass.")
    ] = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.JsonLines = False,
) -> None:
    """Print the output of a worker.

    Of an agent it is a transcript: what it said, called and brought, with its sub-agents; --raw, --stdout or
    --stderr give what its program printed instead. Of a command it is what that printed: on a terminal control
    characters are shown, not obeyed; to a pipe every byte is passed as it is. With -f it goes on until the worker
    has ended.
    """
    if raw and json:
        raise UsageError("--raw and --json exclude each other")
    streams = ("stdout", "stderr") if stdout == stderr else ("stdout",) if stdout else ("stderr",)
    place = note_foreign(find_task(task, root=root, force=force))
    if not (raw or stdout or stderr) and has_transcript(find_worker(place, instance)):
        _tell(follow_transcript(place, instance, follow=follow, tail=tail), json=json)
        return
    chunks = follow_logs(place, instance, streams=streams, follow=follow, tail=tail)
    if json:
        _decoded(chunks, lambda stream, text: out_json({"stream": stream, "text": text}))
    elif raw or not is_terminal(sys.stdout):
        _pass_on(chunks)
    else:
        _decoded(chunks, lambda _, text: _write(plain(text, keep="\n\t")))


def _tell(entries: Iterable[TranscriptEntry], *, json: bool) -> None:
    for entry in entries:
        text = paragraph(entry)
        out_json({"stream": "transcript", "text": text}) if json else _write(text)


def _pass_on(chunks: Chunks) -> None:
    for _, chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _decoded(chunks: Chunks, write: Callable[[str, str], object]) -> None:
    """Give each stream's text to `write`; a character may lie across two chunks."""
    make = codecs.getincrementaldecoder("utf-8")
    decoders: dict[str, codecs.IncrementalDecoder] = {}
    for stream, chunk in chunks:
        text = decoders.setdefault(stream, make("backslashreplace")).decode(chunk)
        if text:
            write(stream, text)
    for stream, decoder in decoders.items():
        rest = decoder.decode(b"", final=True)
        if rest:
            write(stream, rest)


@verb(
    app,
    "events",
    examples="""
agentctl events
agentctl events -f --json
agentctl events explore-1
""",
)
def events(
    instance: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help="Only of this worker.", autocompletion=opt.complete_instances),
    ] = None,
    follow: opt.Follow = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.JsonLines = False,
) -> None:
    """Print the events of a task.

    A line each: seq, time, type, instance, who did it, payload, with tabs between. With -f it goes on until
    Ctrl-C.
    """
    place = note_foreign(find_task(task, root=root, force=force))
    for event in follow_events(place, follow=follow, instance=instance):
        if "problem" in event:
            warn([f"{place.events.name}:{event['seq']}: {event['problem']}"])
        if json:
            out(as_json(event))
        elif "problem" not in event:
            out(_line(event))
        if follow:
            sys.stdout.flush()


def _line(event: dict[str, Any]) -> str:
    fields = (
        event.get("seq"),
        event.get("ts"),
        event.get("type"),
        event.get("agentInstance"),
        event.get("by"),
    )
    told = [NOTHING if field is None else plain(field) for field in fields]
    return "\t".join([*told, as_json(event.get("payload") or {}, shown=True)])
