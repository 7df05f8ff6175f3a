"""`result`: the result of a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.states import TERMINAL, Status
from agentctl.domain.text.plaintext import plain
from agentctl.domain.tree.limits import RESULT_BYTES
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import FINDS, WHOLE, Command, Parameter, Picture, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, NAMED_INSTANCES, PLAIN
from agentctl.interfaces.commands.parts.selection import SELECT, Selection, headed, one_or_all, workers_chosen
from agentctl.interfaces.commands.parts.told_ends import because
from agentctl.interfaces.commands.parts.worktree_notes import worktree_notes
from agentctl.interfaces.commands.show.drawn_words import drawn_markdown
from agentctl.interfaces.commands.show.logs import drawn_text
from agentctl.interfaces.words.why import last_lines_shown
from agentctl.operations.show.result_files import CHANGED, GONE, compared
from agentctl.operations.show.results import read_result
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import CutText, WorkerResult

#: What is said of a file that is not what the worker has named any more.
_NOW = {CHANGED: "; changed since the result was given", GONE: "; not there any more"}


def result(
    call: Invocation,
    *,
    instances: list[str] | None = None,
    max_bytes: int = RESULT_BYTES,
    plain_text: bool = False,
    failed: bool = False,
    status: str | None = None,
    agent: str | None = None,
    words: str | None = None,
) -> Showing[WorkerResult | list[WorkerResult]]:
    """Print the result of a worker.

    For an agent: what it declared as its result, then its last message. For a command: what it declared, otherwise the
    end of its stdout.

    On a command line:
        `agentctl report result` declares one. If the text is cut, stderr says so and where the full text is. It exits
        with 1 while the worker has not ended. Of several workers each result stands below the name of its worker.

        At a terminal the Markdown of an agent is drawn, and what a command printed is shown as a terminal shows it; a
        pipe has the source, and so has --plain.
    """
    task = call.task_to_show()
    chosen = workers_chosen(task, instances, Selection(failed, status, agent, words))
    results = [compared(task, read_result(task, one, max_bytes=max_bytes)) for one in chosen]
    if call.json:
        yield Shown(one_or_all(results, instances))
    codes = []
    for name, one in zip(chosen, results, strict=True):
        if not call.json:
            heading = [*filter(None, [headed(name, instances)])]
            is_drawn = call.draws and not plain_text and one["source"] != "none"
            drawing = _printed if one["source"] == "stdout" else _picture
            picture = partial(drawing, heading, one) if is_drawn else None
            yield Shown(lines=chain(heading, _texts(call, one)), table=picture, notes=_notes(call, task, one))
        codes.append(_code(call, task, one))
    return next((code for code in (ExitCode.REFUSED, ExitCode.UNSUCCESSFUL) if code in codes), ExitCode.DONE)


def _picture(heading: Sequence[str], result: WorkerResult) -> Picture:
    """Return what a terminal shows of an agent's words."""
    texts = dict.fromkeys(part for part in (result["summary"], result["text"]) if part)
    return Picture(chain(([(line, "text")] for line in heading), drawn_markdown("\n\n".join(texts))))


def _printed(heading: Sequence[str], result: WorkerResult) -> list[str]:
    """Return what a terminal shows of what a command has printed."""
    return [*heading, *(drawn_text(result["text"] or "", is_end=result["truncated"]) or [""])]


def _texts(call: Invocation, result: WorkerResult) -> Iterator[str]:
    """Yield what was declared and the text, each once, without the newline at its end."""
    for text in dict.fromkeys(part for part in (result["summary"], result["text"]) if part):
        yield (plain(text, keep="\n\t") if call.draws else text).removesuffix("\n")


def _notes(call: Invocation, task: TaskDir, result: WorkerResult) -> Iterator[str]:
    parts: list[tuple[str, str | None, CutText | None]] = [
        ("summary cut", result["summary"], result.get("summaryCut") if result["source"] != "declared" else None),
        ("cut", result["text"], result if result["truncated"] else None),
    ]
    for what, text, cut in parts:
        if cut:
            command = command_line(task, "result", result["agentInstance"], "--max-bytes", str(cut["size"]))
            whole = plain(cut["path"]) if cut["path"] else command
            yield f"[{what}: {len((text or '').encode())} of {cut['size']} bytes; whole: {whole}]"
    yield from last_lines_shown(result, without=result["source"])  # stdout may be the text already.
    for file in result["files"]:
        now = _NOW.get(file.get("now", ""), "")
        yield f"file: {plain(file['path'])} ({file.get('size')} bytes{now})"
    if result["openSession"] and call.draws:
        yield f"its session, opened by hand: {plain(result['openSession'])}"
    yield from worktree_notes(result["worktree"] or {})


def _code(call: Invocation, task: TaskDir, result: WorkerResult) -> int:
    status, instance = result["status"], result["agentInstance"]
    if status not in TERMINAL:
        call.note(f"error: {instance} is {status}: it has not ended")
        is_blocked = status == Status.BLOCKED
        way = command_line(task, "interact", "list") if is_blocked else command_line(task, "wait", instance)
        call.note(f"hint: {way}")
        return ExitCode.REFUSED
    if status == Status.COMPLETED:
        return ExitCode.DONE
    how = end_in_words(status, result["reason"], result["exitCode"], result["signal"])
    call.note(f"{instance} {how}{because(*said_at_end(result['message'], result['lastLine']))}")
    return ExitCode.UNSUCCESSFUL


COMMANDS = (
    Command(
        "result",
        result,
        IN_TASK,
        """
agentctl result explore-1
agentctl result explore-1 --max-bytes 100000 > explore-1.txt
agentctl wait explore-1 && agentctl result explore-1 --json
""",
        (
            NAMED_INSTANCES,
            Parameter("max_bytes", WHOLE, "How much of it to print.", "N", default=RESULT_BYTES, least=0),
            PLAIN,
            *SELECT,
        ),
        exits=(*FINDS, ExitCode.UNSUCCESSFUL),
    ),
)
