"""The interface of a runner: what agentctl needs of an engine that places workers on nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agentctl.domain.placement import Placement
from agentctl.domain.worker.sightings import Sighting
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple, Protocol

#: Begins the names of launches in an engine that has names: by these they are found, and never by the engine's numbers.
PREFIX = "agentctl-"


class EngineDown(AgentctlError):
    """The engine does not answer, or not understandably: nothing is known, and nothing is proven."""


class Rejected(AgentctlError):
    """The engine will not carry this launch out: a wrong partition, more than there is, a limit of the account."""


class LaunchOrder(NamedTuple):
    """A launch: a program that is to run once, on some node."""

    #: 16 hex digits, new for each attempt of a worker.
    id: str
    #: The program and its arguments.
    argv: Sequence[str]
    #: What it prints before it has its own files goes here.
    log: str
    #: Whose it is, for people who look at the engine: TASK/INSTANCE.
    what: str
    placement: Placement

    @property
    def name(self) -> str:
        """Its name in the engine."""
        return f"{PREFIX}{self.id}"


class Remark(NamedTuple):
    """What is worth telling of an engine's own set-up."""

    #: `ok`, `note` or `warning`.
    severity: str
    what: str
    #: What a person can do about it.
    next: str = ""


class Runner(Protocol):
    """An engine. Every method may block for up to half a minute, and raises `EngineDown` where the engine is silent.

    `agentctl.runners.loopback` is the reference: what an engine does, done by processes of this machine.
    """

    name: str

    def check(self, placement: Placement) -> None:
        """Raise `UsageError` or `Refused` where no launch can succeed: no such program, an argument that is ours."""

    def launch(self, launch: LaunchOrder) -> str:
        """Have the engine run a launch; return the engine's own name for it.

        A launch that is given twice may be run twice by the engine: the second one finds that the worker was claimed,
        and ends. So a caller that does not know whether it came through may say it again.

        Raises:
            Rejected: It will never run.
        """

    def poll(self) -> Mapping[str, Sighting]:
        """Return what the engine says of all launches of this person, by id: one question, however many there are."""

    def interrupt(self, launch_id: str) -> None:
        """Send SIGINT to the program of a launch, to that process alone; a launch that waits is taken out of the queue.

        It is not an error if there is none, or if it is over.
        """

    def kill(self, launch_id: str) -> None:
        """Have the engine end a launch with everything that belongs to it."""

    def reap(self, launch_id: str) -> None:
        """Remove what the engine keeps of a launch that is over; may be said again."""

    def reconcile(self, wanted: Collection[str]) -> list[str]:
        """Return the ids of launches that the engine carries out, and that are not among those wanted."""

    def remarks(self) -> Sequence[Remark]:
        """Return what of the engine's set-up a person should know; for `doctor`, after `check`."""
