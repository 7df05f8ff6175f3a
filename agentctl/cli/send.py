"""`send`, `inbox`: messages to a worker, and the worker's side of it."""

import sys
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import is_terminal, out, out_json, out_now, plain, warn
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode
from agentctl.operations.talk.messaging import receive
from agentctl.operations.talk.messaging import send as send_message
from agentctl.operations.where.locating import find_task

app = module()


@verb(
    app,
    "send",
    examples="""
agentctl send explore-1 "look into tests/ too"
agentctl send explore-1 --interrupt "stop that: only src/ matters"
agentctl send explore-1 --close
""",
)
def send(
    instance: opt.Instance,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")] = "",
    interrupt: Annotated[bool, typer.Option("--interrupt", help="Now, and not in the agent's next turn.")] = False,
    close: Annotated[bool, typer.Option("--close", help="Let an agent that was kept (--keep) end after it.")] = False,
    task: opt.Task = None,
    root: opt.Root = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Send a message to a worker.

    An agent gets it in its next turn. Any other worker reads it with `agentctl inbox`; until then it waits on disk.
    """
    told = send_message(find_task(task, root=root, force=force), instance, text, interrupt=interrupt, close=close)
    if json:
        out_json(told)
    else:
        out(f"message {told['messageId']} sent to {told['agentInstance']}")
    warn(filter(None, [told["warning"]]))


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
