"""`logs`, `events`: what a worker printed, and what happened in a task."""

import codecs
import sys
from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import as_json, is_terminal, out_json, plain, warn
from agentctl.cli.verb import module, verb
from agentctl.errors import UsageError
from agentctl.operations.show.activity import follow_transcript, has_transcript
from agentctl.operations.show.logs import follow_events, follow_logs
from agentctl.operations.where.locating import find_worker
from agentctl.text.activity import paragraph
from agentctl.text.event import event_line

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
    call: opt.InTaskByLine,
    instance: opt.Instance,
    follow: opt.Follow = False,
    tail: Annotated[int | None, typer.Option("--tail", metavar="N", min=0, help="Only the last N lines.")] = None,
    stdout: Annotated[bool, typer.Option("--stdout", help="Only its stdout.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Only its stderr.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="The bytes unchanged: no transcript, and control characters pass.")
    ] = False,
) -> None:
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
            out_json({"stream": "transcript", "text": text}) if call.json else _write(text)
        return
    chunks = follow_logs(task, instance, streams=streams, follow=follow, tail=tail)
    if call.json:
        decode_streams(chunks, lambda stream, text: out_json({"stream": stream, "text": text}))
    elif raw or not is_terminal(sys.stdout):
        _pass_on(chunks)
    else:
        decode_streams(chunks, lambda _, text: _write(plain(text, keep="\n\t")))


def _pass_on(chunks: Chunks) -> None:
    for _, chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def decode_streams(chunks: Chunks, write: Callable[[str, str], object]) -> None:
    """Give each stream's text to `write`; a character may be split across two chunks."""
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
    call: opt.InTaskByLine,
    instance: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help="Only of this worker.", autocompletion=opt.complete_instances),
    ] = None,
    follow: opt.Follow = False,
) -> None:
    """Print the events of a task.

    One line each: seq, time, type, instance, who did it, payload, separated by tabs. With -f it continues until Ctrl-C.
    """
    task = call.task_to_show()
    for event in follow_events(task, follow=follow, instance=instance):
        if "problem" in event:
            warn([f"{task.events.name}:{event['seq']}: {event['problem']}"])
        if call.json:
            print(as_json(event))
        elif "problem" not in event:
            print(event_line(event, as_json))
        if follow:
            sys.stdout.flush()
