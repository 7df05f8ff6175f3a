"""Keeps a command going on several hosts at once, and takes what they say in the order in which it comes.

A host that does not answer is told once and tried again, with longer and longer pauses, as long as others are asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Full, Queue

from agentctl.adapters.clock import monotonic
from agentctl.adapters.lines import TOO_LONG, LineBuffer
from agentctl.domain.hosts import CommandHost
from agentctl.errors import AgentctlError
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_order import order_for
from agentctl.interfaces.hosts.frames import code_of
from agentctl.interfaces.hosts.host_link import HostError, Link
from agentctl.lean import NamedTuple

#: What a `Word` is: the command has printed something and asks whether it has arrived; a line of its stdout, of its
#: stderr; it has ended; its host is gone, or there again; a warning about it.
OFFER, LINE, NOTE, END, LOST, BACK, WARNING = "offer", "line", "note", "end", "lost", "back", "warning"

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _TURN_S, _LETTING_GO_S, _LATER_S = 1.0, 30.0, 0.5, 2.0, 1.0
#: The longest line, and how many words may wait to be taken.
_MOST, _MOST_WORDS = 1 << 20, 1000


class HostWord(NamedTuple):
    """Something that a host has said, or that became of it."""

    host: CommandHost
    kind: str
    text: str = ""
    code: int = 0
    problem: AgentctlError | None = None
    #: It will be tried again.
    is_tried_again: bool = False


class Following:
    """A command on several hosts.

    Args:
        argv: Returns the command line, each time that it is begun.
    """

    def __init__(self, hosts: Sequence[CommandHost], argv: Callable[[], Sequence[str]], *, is_worker: bool) -> None:
        self._words: Queue[HostWord] = Queue(_MOST_WORDS)
        self._one_by_name = {host.name: _One(host, argv, self._words, is_worker=is_worker) for host in hosts}

    def __enter__(self) -> Following:
        for one in self._one_by_name.values():
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all: what they have not been told to be printed counts as not given out."""
        ones = self._one_by_name.values()
        for one in ones:
            one.let_go()
        until = monotonic() + _LETTING_GO_S
        for one in ones:
            one.join(max(0.0, until - monotonic()))
        for one in ones:
            one.cut()

    def words(self, until: float | None = None) -> Iterator[HostWord | None]:
        """Yield what is said, until the caller has enough; None once the monotonic clock has reached `until`.

        The hosts have the same limit and some more time to say so: what they give out in the last moment is taken.
        """
        limit = None if until is None else until + _LATER_S
        while limit is None or monotonic() < limit:
            with suppress(Empty):  # Without a time limit, Ctrl-C would not end the sleep on every system.
                yield self._words.get(timeout=_TURN_S)
        yield None

    def drop(self, host: CommandHost) -> None:
        """Let go of one host."""
        self._one_by_name[host.name].let_go()

    def printed(self, host: CommandHost) -> None:
        """Tell a host that what it has offered is printed; wait until it has recorded that, or is gone."""
        one = self._one_by_name[host.name]
        one.printed()
        one.join(host.silent_s)


class _One(threading.Thread):
    """The command on one host."""

    def __init__(
        self, host: CommandHost, argv: Callable[[], Sequence[str]], words: Queue[HostWord], *, is_worker: bool
    ) -> None:
        super().__init__(daemon=True)
        self._host, self._argv, self._words, self._is_worker = host, argv, words, is_worker
        self._link: Link | None = None
        self._lock = threading.Lock()
        self._is_over, self._is_answered = threading.Event(), False

    def run(self) -> None:
        """Carry the command out; try again where the host does not answer."""
        pause_s, was_lost = _FIRST_PAUSE_S, False
        while not self._is_over.is_set():
            try:
                with Link(self._host) as link:
                    with self._lock:
                        self._link = link
                    self._begin(link)
                    if was_lost:
                        self._say(BACK)
                    pause_s, was_lost = _FIRST_PAUSE_S, False
                    self._follow(link)
                    return
            except AgentctlError as error:
                may_return = isinstance(error, HostError) and error.may_return and not self._is_answered
                if not was_lost or not may_return:
                    self._say(LOST, problem=error, is_tried_again=may_return)
                was_lost = True
                if not may_return:
                    return
            except (OSError, ValueError) as error:  # Cut off from outside, or no more processes to be had.
                self._say(LOST, problem=AgentctlError(f"{self._host.name}: {error}"))
                return
            self._is_over.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _say(
        self, kind: str, text: str = "", code: int = 0, problem: AgentctlError | None = None, *,
        is_tried_again: bool = False,
    ) -> None:  # fmt: skip
        word = HostWord(self._host, kind, text, code, problem, is_tried_again)
        while not self._is_over.is_set():
            with suppress(Full):
                self._words.put(word, timeout=_TURN_S)
                return

    def _begin(self, link: Link) -> None:
        for _ in link.greet():
            pass
        if (warning := link.other_version()) is not None:
            self._say(WARNING, warning)
        link.post(frames.ORDER, order_for(self._host, self._argv(), is_worker=self._is_worker).encoded())
        if self._is_over.is_set():
            link.post(frames.DECLINED)

    def _follow(self, link: Link) -> None:
        streams = {frames.OUT: LineBuffer(_MOST), frames.ERR: LineBuffer(_MOST)}
        kinds = {frames.OUT: LINE, frames.ERR: NOTE}
        while True:
            for kind, content in link.receive():
                if kind in streams:
                    for line in streams[kind].feed(content):
                        if line == TOO_LONG:
                            raise HostError("a host prints a line without end", None, may_return=False)
                        self._say(kinds[kind], line.decode("utf-8", "surrogateescape"))
                elif kind == frames.PRINT:
                    self._say(OFFER)
                elif kind == frames.WANT:
                    link.post(frames.IN)
                elif kind == frames.EXIT:
                    self._say(END, code=code_of(content))
                    return

    def printed(self) -> None:
        """Say that what was offered is printed."""
        with self._lock:
            self._is_answered = True
            if self._link is not None:
                self._link.post(frames.PRINTED)

    def let_go(self) -> None:
        """Have the command end: nothing that it prints from now on will be printed here."""
        self._is_over.set()
        with self._lock:
            if self._link is not None:
                self._link.post(frames.DECLINED)

    def cut(self) -> None:
        """End the connection, whatever it does."""
        if self.is_alive() and self._link is not None:
            self._link.kill()
