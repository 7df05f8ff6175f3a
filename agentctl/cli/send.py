"""`send`, `inbox`: messages to a worker, and the worker's side of it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, out, out_json, out_now, plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode
from agentctl.operations.locating import find_task
from agentctl.operations.messaging import receive
from agentctl.operations.messaging import send as send_message

app = module()


@verb(
    app,
    "send",
    examples='agentctl send explore-1 "look into tests/ too"\nagentctl send explore-1 stop --json',
)
def send(
    instance: opt.Instance,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")],
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Send a message to a worker.

    It waits on disk until the worker reads it with `agentctl inbox`.
    """
    told = send_message(find_task(task, root=root, force=force), instance, text)
    if json:
        out_json(told)
    else:
        out(f"message {told['messageId']} sent to {told['agentInstance']}")


@verb(
    app,
    "inbox",
    exits=(ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT),
    examples="""
agentctl inbox
agentctl inbox --wait --timeout-seconds 60
""",
)
def inbox(
    wait: Annotated[bool, typer.Option("--wait", help="Wait for one where none is there.")] = False,
    timeout_seconds: opt.WaitSeconds = None,
    json: opt.Json = False,
) -> int:
    """Read the next message, from inside a worker.

    Each is given once. Where none is there, nothing is printed and the exit code is 6.
    """
    message = receive(wait=wait, timeout_s=timeout_seconds)
    if json:
        out_json(message)
    elif message is not None:
        text = message["text"]
        out_now(plain(text, keep="\n\t") if is_terminal(sys.stdout) else text)
    return ExitCode.NOTHING_LEFT if message is None else ExitCode.DONE
