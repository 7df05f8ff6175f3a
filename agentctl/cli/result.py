"""`result`: the result of a worker."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from agentctl.adapters.taskdir import TaskDir
from agentctl.cli import options as opt
from agentctl.cli.ends import because
from agentctl.cli.render import is_terminal, note, plain
from agentctl.cli.verb import FINDS, module, verb
from agentctl.cli.worktree_notes import worktree_notes
from agentctl.domain.ends import end_in_words
from agentctl.domain.limits import RESULT_BYTES
from agentctl.domain.states import TERMINAL, Status
from agentctl.errors import ExitCode
from agentctl.operations.show.results import read_result
from agentctl.operations.where.command_lines import command_line

app = module()


@verb(
    app,
    "result",
    exits=(*FINDS, ExitCode.UNSUCCESSFUL),
    examples="""
agentctl result explore-1
agentctl result explore-1 --max-bytes 100000 > explore-1.txt
agentctl wait explore-1 && agentctl result explore-1 --json
""",
)
def result(
    call: opt.InTask,
    instance: opt.Instance,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", metavar="N", min=0, help="How much of it to print.")
    ] = RESULT_BYTES,
) -> int:
    """Print the result of a worker.

    For an agent: what it declared with `agentctl report result`, then its last message. For a command: what it
    declared, otherwise the end of its stdout. If the text is cut, stderr says so and where the full text is. Exits with
    1 while the worker has not ended.
    """
    task = call.task_to_show()
    result = read_result(task, instance, max_bytes=max_bytes)
    call.show(result, _texts(result), notes=_notes(task, result))
    return _code(task, result)


def _texts(result: dict[str, Any]) -> Iterator[str]:
    """Yield what was declared and the text, each once, without the newline at its end."""
    for text in dict.fromkeys(part for part in (result.get("summary"), result.get("text")) if part):
        yield (plain(text, keep="\n\t") if is_terminal(sys.stdout) else text).removesuffix("\n")


def _notes(task: TaskDir, result: dict[str, Any]) -> Iterator[str]:
    for what, text, cut in (
        ("summary cut", "summary", result.get("summaryCut") if result["source"] != "declared" else None),
        ("cut", "text", result if result.get("truncated") else None),
    ):
        if cut:
            command = command_line(task, "result", result["agentInstance"], "--max-bytes", str(cut["size"]))
            whole = plain(cut["path"]) if cut.get("path") else command
            yield f"[{what}: {len((result[text] or '').encode())} of {cut['size']} bytes; whole: {whole}]"
    for file in result.get("files") or []:
        yield f"file: {plain(file['path'])} ({file.get('size')} bytes)"
    if result.get("openSession") and is_terminal(sys.stdout):
        yield f"its session, opened by hand: {plain(result['openSession'])}"
    yield from worktree_notes(result.get("worktree") or {})


def _code(task: TaskDir, result: dict[str, Any]) -> int:
    status, instance = result["status"], result["agentInstance"]
    if status not in TERMINAL:
        note(f"error: {instance} is {status}: it has not ended")
        is_blocked = status == Status.BLOCKED
        way = command_line(task, "interact", "list") if is_blocked else command_line(task, "wait", instance)
        note(f"hint: {way}")
        return ExitCode.REFUSED
    if status == Status.COMPLETED:
        return ExitCode.DONE
    note(f"{instance} {end_in_words(status, result.get('reason'))}{because(result.get('message'))}")
    return ExitCode.UNSUCCESSFUL
