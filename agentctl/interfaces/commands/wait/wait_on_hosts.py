"""`wait-any --hosts`: one wait over several hosts, each of which keeps by itself what its consumer was given.

An end is printed first, then its host is told so and marks it as given; the others let go of what they were about to
give out. So an end may be given again where this process, a host or the connection dies in between; none is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence

from agentctl.adapters.clock import monotonic
from agentctl.domain.hosts import CommandHost
from agentctl.domain.names import first_of
from agentctl.domain.states import EndStatus
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, AtTerminal, ExitCode, NothingLeft, Refused, WaitTimedOut
from agentctl.interfaces.commands.model.command_model import Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.parts.told_ends import ended_line
from agentctl.interfaces.hosts.host_names import hosts_named
from agentctl.interfaces.hosts.hosts_asked import refusal_in
from agentctl.interfaces.hosts.hosts_followed import BACK, END, LINE, LOST, NOTE, OFFER, WARNING, Following, HostWord
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.wait.waiting import WaitedEnd
from agentctl.operations.where.lineage import shown_caller

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.ends import EndedElsewhere

#: How many lines of an error are kept.
_MOST_SAID = 20
_KEYS = {
    "agentInstance": "agent_instance", "status": "status", "reason": "reason", "exitCode": "exit_code",
    "signal": "signal", "message": "message", "lastLine": "last_line", "taskId": "task_id",
    "uncollected": "uncollected", "until": "until", "window": "window", "redelivered": "redelivered",
}  # fmt: skip


def wait_any_across(
    call: Invocation, words: str, line: Callable[..., list[str]], timeout_s: float | None
) -> Iterator[Shown[EndedElsewhere]]:
    """Yield the first end that any of the hosts gives out.

    Args:
        line: Returns the line for a host, given the `timeout_seconds` that are left.

    Raises:
        WaitTimedOut: Nothing came in time.
        NothingLeft: All hosts say that nothing is left.
        Refused: Some say so, and others do not answer, or refuse.
    """
    deadline = None if timeout_s is None else monotonic() + timeout_s
    hosts = hosts_named(words)
    with Following(
        hosts, lambda: line(timeout_seconds=_left(deadline)), is_worker=shown_caller() is not None
    ) as following:
        yield from _HostsWait(call, hosts, following, deadline, timeout_s).first_end()


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


class _HostsWait:
    """What the hosts of one wait have said so far."""

    def __init__(
        self,
        call: Invocation,
        hosts: Sequence[CommandHost],
        following: Following,
        deadline: float | None,
        timeout_s: float | None,
    ) -> None:
        self._call, self._hosts, self._following = call, hosts, following
        self._deadline, self._timeout_s = deadline, timeout_s
        self._printed: dict[str, str] = {}
        self._said: dict[str, list[str]] = {host.name: [] for host in hosts}
        #: Host -> the exit code of its wait; why it does not take part.
        self._codes: dict[str, int] = {}
        self._silent: dict[str, AgentctlError] = {}

    def first_end(self) -> Iterator[Shown[EndedElsewhere]]:
        """Yield the first end; once that returns, it was printed."""
        for word in self._following.words(until=self._deadline):
            if word is None:
                raise self._nothing_came()
            if (yield from self._take(word)):
                return
            if len(self._codes.keys() | self._silent.keys()) == len(self._hosts):
                raise self._outcome()

    def _take(self, word: HostWord) -> Generator[Shown[EndedElsewhere], None, bool]:
        """Take what a host says; return whether an end was printed."""
        name = word.host.name
        if word.kind == LINE:
            self._printed[name] = word.text
        elif word.kind == OFFER:
            return (yield from self._deliver(word.host, self._printed.get(name, "")))
        elif word.kind == NOTE:
            self._take_note(name, word.text)
        elif word.kind == WARNING:
            self._call.note(f"warning: {word.text}")
        elif word.kind == BACK:
            self._silent.pop(name, None)
            self._call.note(f"{plain(name)} answers again")
        elif word.kind == LOST:
            self._lose(word)
        elif word.kind == END:
            self._end(word)
        return False

    def _take_note(self, name: str, text: str) -> None:
        if text.startswith(("error: ", "hint: ")):
            self._said[name] = [*self._said[name], text][-_MOST_SAID:]
        else:
            self._call.note(f"{plain(name)}: {plain(text)}")

    def _deliver(self, host: CommandHost, text: str) -> Generator[Shown[EndedElsewhere], None, bool]:
        """Yield an end, then tell its host; return whether it was one."""
        name = plain(host.name)
        try:
            document: Any = json.loads(text)
            document.pop("host", None)
            known = {field: document[key] for key, field in _KEYS.items() if key in document}
            end = WaitedEnd(**{**known, "status": EndStatus(document["status"])})
            line = ended_line(end) + (" [given again]" if end.redelivered else "")
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            self._following.drop(host)
            self._silent[host.name] = AgentctlError(f"{name} does not answer as agentctl does ({type(error).__name__})")
            self._call.note(f"warning: {self._silent[host.name].message}")
            return False
        shown: Any = {"host": host.name, **document}  # As the host has printed it, further keys too.
        yield Shown(shown, [f"{name}: {line}"])
        self._following.printed(host)
        return True

    def _lose(self, word: HostWord) -> None:
        problem = word.problem or AgentctlError("it is gone")
        self._silent[word.host.name] = problem
        again = "; it is tried again" if word.is_tried_again else ""
        self._call.note(f"warning: {plain(problem.message)}{again}")

    def _end(self, word: HostWord) -> None:
        """Take the end of a wait that has given nothing out."""
        name = word.host.name
        if word.code in {ExitCode.NOTHING_LEFT, ExitCode.TIMED_OUT}:
            self._codes[name] = word.code
            return
        problem, hint = refusal_in("\n".join(self._said[name]))
        error = AgentctlError(f"{plain(name)}: {problem or f'exit code {word.code}'}", hint)
        self._silent[name] = error
        self._call.note(f"warning: {error.message}" + (f" ({plain(hint)})" if hint else ""))

    # -- where no end came

    def _nothing_came(self) -> AgentctlError:
        return WaitTimedOut(
            f"nothing ended within {self._timeout_s:g} s{self._without()}", hint="no worker was stopped; wait again"
        )

    def _outcome(self) -> AgentctlError:
        """Return the outcome of a wait in which no host has anything to give out."""
        if ExitCode.TIMED_OUT in self._codes.values():
            if self._timeout_s is not None:
                return self._nothing_came()
            return WaitTimedOut(f"nothing ended in time{self._without()}", hint="no worker was stopped; wait again")
        if not self._silent:
            return NothingLeft("nothing is left to wait for on any host", hint=AtTerminal("agentctl list --hosts all"))
        if not self._codes:
            return Refused(f"no host takes part: {self._names()}", hint=next(iter(self._silent.values())).steps)
        return Refused(
            f"nothing is left to wait for on the others, but {self._names()} may have more",
            hint="an end counts as given only once it is printed, so none is lost: wait again when they answer",
        )

    def _names(self) -> str:
        return plain(first_of(list(self._silent)))

    def _without(self) -> str:
        return f"; without an answer from {self._names()}" if self._silent else ""
