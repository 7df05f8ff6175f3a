"""`send`, `inbox`: messages to a worker, and the worker's side of it."""

from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.render import plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode
from agentctl.operations.talk.messaging import deliver_message as send_message
from agentctl.operations.talk.messaging import receive

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
    call: opt.InTask,
    instance: opt.Instance,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")] = "",
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="Interrupt the agent instead of waiting for its next turn.")
    ] = False,
    close: Annotated[bool, typer.Option("--close", help="Let an agent that was kept (--keep) end afterwards.")] = False,
) -> None:
    """Send a message to a worker.

    An agent gets it in its next turn. Any other worker reads it with `agentctl inbox`; until then it is kept on disk.
    """
    sent = send_message(call.task(), instance, text, interrupt=interrupt, close=close)
    call.show(sent, [f"message {sent['messageId']} sent to {sent['agentInstance']}"])


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
    call: opt.Anywhere,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a message if there is none.")] = False,
    timeout_seconds: opt.WaitSeconds = None,
) -> int:
    """Read the next message, from inside a worker.

    Each is given once. If there is none, nothing is printed and the exit code is 6.
    """
    message = receive(wait=wait, timeout_s=timeout_seconds)
    texts = [] if message is None else [message["text"]]
    call.show(message, texts, lambda: print(*(plain(text, keep="\n\t") for text in texts), sep="\n"))
    return ExitCode.NOTHING_LEFT if message is None else ExitCode.DONE
