"""`result`: what a worker has brought."""

import sys
from typing import Annotated, Any

import typer

from agentctl.cli import options as opt
from agentctl.cli.ends import because
from agentctl.cli.render import how_it_ended, is_terminal, note, note_foreign, out_json, plain
from agentctl.cli.verb import FINDS, module, verb
from agentctl.domain.states import TERMINAL, Status
from agentctl.errors import ExitCode
from agentctl.operations.show.results import read_result
from agentctl.operations.where.locating import find_task

app = module()

_BYTES = 4000


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
    instance: opt.Instance,
    max_bytes: Annotated[int, typer.Option(metavar="N", min=0, help="How much of it to print.")] = _BYTES,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> int:
    """Print what a worker has brought.

    What an agent has said last, behind what it declared with `agentctl report result`; of a command what it declared,
    or else the end of its stdout. Where it is cut, stderr says so, and where the whole is. Exits with 1 while the
    worker has not ended.
    """
    told = read_result(note_foreign(find_task(task, root=root, force=force)), instance, max_bytes=max_bytes)
    if json:
        out_json(told)
    else:
        _print(told)
    return _code(told)


def _print(told: dict[str, Any]) -> None:
    parts = [part for part in (told.get("summary"), told.get("text")) if part]
    for part in dict.fromkeys(parts):
        shown = plain(part, keep="\n\t") if is_terminal(sys.stdout) else part
        sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")
    for what, text, cut in (
        ("summary cut", "summary", told.get("summaryCut") if told["source"] != "declared" else None),
        ("cut", "text", told if told.get("truncated") else None),
    ):
        if cut:
            command = f"agentctl result {told['agentInstance']} --max-bytes {cut['size']}"
            whole = plain(cut["path"]) if cut.get("path") else command
            note(f"[{what}: {len((told[text] or '').encode())} of {cut['size']} bytes; whole: {whole}]")
    for file in told.get("files") or []:
        note(f"file: {plain(file['path'])} ({file.get('size')} bytes)")
    if (told.get("worktree") or {}).get("next"):
        note(f"what it changed in its worktree was not recorded; {plain(told['worktree']['next'])} does it")


def _code(told: dict[str, Any]) -> int:
    status, instance = told["status"], told["agentInstance"]
    if status not in TERMINAL:
        note(f"error: {instance} is {status}: this is not its end")
        note(f"hint: agentctl wait {instance}")
        return ExitCode.REFUSED
    if status == Status.COMPLETED:
        return ExitCode.DONE
    note(f"{instance} {how_it_ended(status, told.get('reason'), None, None)}{because(told.get('message'))}")
    return ExitCode.UNSUCCESSFUL
