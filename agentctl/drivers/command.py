"""The `command` driver: any program that takes a prompt and prints its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from agentctl.domain.states import Reason
from agentctl.drivers.complaints import Complaining
from agentctl.drivers.dialogue import Action, AgentOutcome, Driver, HangUp, Say
from agentctl.drivers.order import Order

#: The end of the output is the answer; the beginning of an answer longer than this is cut off.
_KEPT = 256 * 1024


class CommandDialogue(Complaining):
    """Passes the prompt to the program, and takes the program's output as the answer.

    No message has its last line: that is read from its files, as for a command.
    """

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._was_cut = False

    def begin(self) -> Sequence[Action]:
        """Write the prompt to stdin, if the definition says so."""
        prompt = role_and_prompt(self.order).encode("utf-8", "surrogateescape")  # The bytes that were typed.
        return [Say(prompt), HangUp()] if self.order.prompt_on_stdin else [HangUp()]

    def received(self, line: bytes) -> Sequence[Action]:
        """Keep the end of the output."""
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > _KEPT and len(self._lines) > 1:
            self._size -= len(self._lines.popleft()) + 1
            self._was_cut = True
        return ()

    def answered(self, key: str, answer: str, reason: str = "", *, by_rule: bool = False) -> Sequence[Action]:
        """Do nothing: such a program asks with `agentctl interact ask`."""
        return ()

    def told(self, text: str, *, interrupt: bool) -> Sequence[Action]:
        """Do nothing: such a program reads its messages itself, with `agentctl inbox`."""
        return ()

    def interrupted(self) -> Sequence[Action]:
        """Do nothing: without a protocol of the program's own, the host sends SIGINT."""
        return ()

    def ended(self, code: int) -> AgentOutcome:
        """Return the outcome: exit code 0 is a natural end."""
        text = b"\n".join(self._lines).decode(errors="replace").strip("\n")
        reason = Reason.EXIT_CODE if code > 0 else Reason.SIGNAL if code < 0 else None
        message = f"it exited with code {code}" if code > 0 else f"signal {-code} ended it" if code < 0 else None
        if self._was_cut:
            text = f"[cut: the end of a longer output]\n{text}"
        return AgentOutcome(reason=reason, message=message, final_message=text)


def role_and_prompt(order: Order) -> str:
    """Return the role and the prompt as one text."""
    return f"{order.instructions.strip()}\n\n{order.prompt}" if order.instructions.strip() else order.prompt


def command_argv(order: Order) -> list[str]:
    """Return the command line; the prompt is its last argument unless it goes to stdin."""
    argv = list(order.argv or [order.program])
    return argv if order.prompt_on_stdin else [*argv, role_and_prompt(order)]


def command_environ(_: Order, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's environment as it is."""
    return dict(environ)


DRIVER = Driver(
    name="command",
    program="",
    version_argv=(),
    tested="",
    install="the definition names its argv",
    honours=frozenset(),
    argv=command_argv,
    environ=command_environ,
    dialogue=CommandDialogue,
)
