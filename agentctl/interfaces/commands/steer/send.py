"""`send`, `inbox`: messages to a worker, and the worker's side of it."""

from __future__ import annotations

from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode
from agentctl.interfaces.commands.model.command_model import FINDS, FLAG, TEXT, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import ANYWHERE, IN_TASK, INSTANCE, KEY, TIMEOUT
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.talk.messaging import deliver_message as send_message
from agentctl.operations.talk.messaging import receive

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.messages import ReceivedMessage, SentMessage


def send(
    call: Invocation,
    *,
    instance: str,
    text: str = "",
    interrupt: bool = False,
    close: bool = False,
    key: str | None = None,
) -> Shown[SentMessage]:
    """Send a message to a worker.

    An agent gets it in its next turn. For any other worker it is kept on disk until that reads it.

    On a command line:
        A worker reads it with `agentctl inbox`.
    """
    sent = send_message(call.task(), instance, text, interrupt=interrupt, close=close, key=key)
    return Shown(sent, [f"message {sent['messageId']} sent to {sent['agentInstance']}"])


def inbox(
    call: Invocation, *, wait: bool = False, timeout_seconds: float | None = None
) -> Shown[ReceivedMessage | None]:
    """Read the next message, from inside a worker.

    Each is given once. If there is none, nothing is printed and the exit code is 6.
    """
    message = receive(wait=wait, timeout_s=timeout_seconds)
    texts = [] if message is None else [message["text"]]
    code = ExitCode.NOTHING_LEFT if message is None else ExitCode.DONE
    return Shown(message, texts, lambda: [plain(text, keep="\n\t") for text in texts], code=code)


COMMANDS = (
    Command(
        "send",
        send,
        IN_TASK,
        """
agentctl send explore-1 "look into tests/ too"
agentctl send explore-1 --interrupt "stop that: only src/ matters"
agentctl send explore-1 --close
""",
        (
            INSTANCE,
            Parameter("text", TEXT, "The message.", "TEXT", default="", is_argument=True),
            Parameter("interrupt", FLAG, "Interrupt the agent instead of waiting for its next turn."),
            Parameter("close", FLAG, "Let an agent that was kept end afterwards."),
            KEY,
        ),
        exits=(*FINDS, ExitCode.CONFLICT),
        names_task=True,
    ),
    Command(
        "inbox",
        inbox,
        ANYWHERE,
        """
agentctl inbox
agentctl inbox --wait --timeout-seconds 60
""",
        (
            Parameter("wait", FLAG, "Wait for a message if there is none."),
            TIMEOUT,
        ),
        exits=(ExitCode.TIMED_OUT, ExitCode.NOTHING_LEFT),
    ),
)
