"""Whether a worker that asked something truly waits for the answer: only then does its clock stand still.

A question alone proves nothing, since it can be asked in the background. Of a plain worker nothing may be alive but who
asks, those above it up to the first process, and who only reads what these print (`agentctl interact ask | tee`). All
of them but who asks must have slept without a moment's work; who asks may look at its files now and then. The program
of an agent may have processes that live as long as it does; there it must have put nothing out. And neither may have
used the processor worth mentioning.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from agentctl.adapters import processes
from agentctl.adapters.processes import Identity
from agentctl.supervision.life.process_tree import Member, ProcessTree

#: What sleeping processes need of one processor, with those that look after something now and then.
_MOST_CPU = 0.05
#: What those who ask in a plain worker may need of a processor: to begin with, and then (4 looks a second take 0.1 %).
_ASKING_S, _ASKING_CPU = 0.1, 0.005
#: A program that has put something out while it was asked for goes on for at least so long.
_QUIET_S = 10.0

#: Pid and start of a process.
_Key = tuple[int, int]


class Waiting:
    """What a worker's tree did since the last look; made when it begins to be blocked."""

    def __init__(self, tree: ProcessTree, of_agent: bool, now: float) -> None:
        self._tree, self._of_agent = tree, of_agent
        self._looked, self._cpu = now, _cpu_of(tree.living()) if processes.LINUX else 0.0
        self._began = now
        #: How often who does not ask was at work, and what those who ask had used of the processor when first seen.
        self._switches: dict[_Key, int | None] = {}
        self._asking: dict[_Key, int] = {}
        self._output: int | None = None
        self._loud_until = now
        self._did_wait = False

    def look(self, now: float, askers: Collection[Identity], output: int) -> bool:
        """Tell whether it only waited since the last look.

        Args:
            askers: The processes that wait for answers.
            output: How much it has put out by now.
        """
        if not processes.LINUX:
            return True  # What the tree does is not told cheaply: a question is believed.
        members = self._tree.living()
        is_quiet = self._is_quiet(now, output)
        self._did_wait = is_quiet if self._of_agent else self._sleeps(now, members, askers)
        return self._is_idle(now, members) and self._did_wait

    def end(self, now: float) -> bool:
        """Tell the same when the question is over: by now who asked is gone, and its answer has been heard."""
        return not processes.LINUX or (self._did_wait and self._is_idle(now, self._tree.living()))

    def _is_idle(self, now: float, members: Iterable[Member]) -> bool:
        """Tell whether it has hardly used the processor since the last look. Fewer seconds: some are lost to view."""
        cpu, before, passed = _cpu_of(members), self._cpu, now - self._looked
        self._cpu, self._looked = cpu, now
        return 0 <= cpu - before <= _MOST_CPU * passed

    def _sleeps(self, now: float, members: Collection[Member], askers: Collection[Identity]) -> bool:
        """Tell whether a plain worker's tree only waits, and all but who asks slept on since the last look."""
        waiting = {(asker.pid, asker.start) for asker in askers}
        before = self._switches
        self._switches = {_key(one): processes.switches_of(one.pid) for one in members if _key(one) not in waiting}
        asking = [one for one in members if _key(one) in waiting]
        used = sum(one.cpu - self._asking.setdefault(_key(one), one.cpu) for one in asking) / os.sysconf("SC_CLK_TCK")
        return (
            self._switches == before
            and None not in before.values()
            and used <= _ASKING_S + _ASKING_CPU * (now - self._began)
            and _only_waits(members, askers)
        )

    def _is_quiet(self, now: float, output: int) -> bool:
        """Tell whether nothing was put out of late. What came with the question itself does not count."""
        if self._output is not None and output != self._output:
            self._loud_until = now + _QUIET_S
        self._output = output
        return now >= self._loud_until


def _key(member: Member) -> _Key:
    return member.pid, member.start


def _cpu_of(members: Iterable[Member]) -> float:
    """Return the seconds of the processor that a tree has used up: the living, and those that were waited for."""
    times = os.times()  # Orphans are waited for by this process.
    ticks = os.sysconf("SC_CLK_TCK")
    return times.children_user + times.children_system + sum(member.cpu for member in members) / ticks


def _only_waits(members: Iterable[Member], askers: Collection[Identity]) -> bool:
    """Tell whether a plain worker's tree is nothing but who asks, those above, and those that read what they print."""
    others = {member.pid: member for member in members}
    line: list[int] = []
    for asker in askers:
        member = others.get(asker.pid)
        if member is not None and member.start != asker.start:
            continue
        while member is not None:
            line.append(member.pid)
            del others[member.pid]
            member = others.get(member.parent)
    return bool(line) and _only_read(list(others), line)


def _only_read(others: list[int], line: list[int]) -> bool:
    """Tell whether all others read from a pipe into which only somebody of the line, or another reader, prints."""
    printed = {_file_of(pid, fd) for pid in line for fd in (1, 2)}
    left = others
    while left:
        readers = [pid for pid in left if _file_of(pid, 0).startswith("pipe:") and _file_of(pid, 0) in printed]
        if not readers:
            return False
        printed |= {_file_of(pid, fd) for pid in readers for fd in (1, 2)}
        left = [pid for pid in left if pid not in readers]
    return True


def _file_of(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""
